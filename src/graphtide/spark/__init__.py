"""Standing queries, rules and patterns on Spark, with the deltas of the in-process engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.spark.api import find_hubs, watch
    from graphtide.spark.driver.run import run
    from graphtide.spark.explanation import explain
    from graphtide.spark.session import make_session

# Loaded on first use: a worker that only reads files should not wait for the engine.
_MODULES = {
    "explain": "explanation",
    "find_hubs": "api",
    "make_session": "session",
    "run": "driver.run",
    "watch": "api",
}

__all__ = ["explain", "find_hubs", "make_session", "run", "watch"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'graphtide.spark' has no attribute {name!r}")
    return getattr(import_module(f"graphtide.spark.{_MODULES[name]}"), name)
