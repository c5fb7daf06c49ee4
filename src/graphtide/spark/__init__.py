"""Standing queries, rules and patterns on Spark, with the deltas of the in-process engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.spark.api import find_hubs, watch
    from graphtide.spark.driver.rescale import evolve, rescale
    from graphtide.spark.driver.run import run
    from graphtide.spark.explanation import explain
    from graphtide.spark.kafka.admin import kafka_shards
    from graphtide.spark.kafka.changes import kafka_changes
    from graphtide.spark.kafka.deltas import TopicWriter, deltas_to_kafka, new_deltas
    from graphtide.spark.kafka.jars import kafka_settings
    from graphtide.spark.output import read_output
    from graphtide.spark.session import make_session

# Loaded on first use: a worker that only reads files should not wait for the engine.
_MODULES = {
    "TopicWriter": "kafka.deltas",
    "deltas_to_kafka": "kafka.deltas",
    "evolve": "driver.rescale",
    "explain": "explanation",
    "find_hubs": "api",
    "kafka_changes": "kafka.changes",
    "kafka_settings": "kafka.jars",
    "kafka_shards": "kafka.admin",
    "make_session": "session",
    "new_deltas": "kafka.deltas",
    "read_output": "output",
    "rescale": "driver.rescale",
    "run": "driver.run",
    "watch": "api",
}

__all__ = [
    "TopicWriter",
    "deltas_to_kafka",
    "evolve",
    "explain",
    "find_hubs",
    "kafka_changes",
    "kafka_settings",
    "kafka_shards",
    "make_session",
    "new_deltas",
    "read_output",
    "rescale",
    "run",
    "watch",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'graphtide.spark' has no attribute {name!r}")
    return getattr(import_module(f"graphtide.spark.{_MODULES[name]}"), name)
