"""The pipeline on Spark: changes in, deltas out, with the answers of the in-process engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.spark.explain_cells import explain
    from graphtide.spark.explain_keys import explain_reaction
    from graphtide.spark.pipeline import watch
    from graphtide.spark.run import run_program
    from graphtide.spark.session import make_session
    from graphtide.spark.windows import Clock

# Loaded when first asked for: a worker that only reads files should not wait for the engine.
_HOMES = {
    "Clock": "windows",
    "explain": "explain_cells",
    "explain_reaction": "explain_keys",
    "make_session": "session",
    "run_program": "run",
    "watch": "pipeline",
}

__all__ = ["Clock", "explain", "explain_reaction", "make_session", "run_program", "watch"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphtide.spark' has no attribute {name!r}")
    return getattr(import_module(f"graphtide.spark.{_HOMES[name]}"), name)
