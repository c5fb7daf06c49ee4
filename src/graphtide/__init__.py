"""Graphtide: standing questions over a graph that keeps changing, answered with exact deltas."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyoxigraph import BlankNode, Literal, NamedNode

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.transaction import Transaction
    from graphtide.engine.watch import Delta, DeltaRow, Watch
    from graphtide.errors import GraphtideError
    from graphtide.lang.tide.program import Program
    from graphtide.rdf.changes import ChangeBatch
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.formats.change_log import read_changes, write_changes

__version__ = "0.1.0"

# Loaded when first asked for: a command that only prints its help should not wait for a compiler.
_HOMES = {
    "BlankNode": "rdf",
    "ChangeBatch": "rdf",
    "Delta": "engine",
    "DeltaRow": "engine",
    "GraphtideError": "errors",
    "Literal": "rdf",
    "LiveGraph": "engine",
    "NamedNode": "rdf",
    "Program": "lang.tide.program",
    "TermDictionary": "rdf",
    "Transaction": "engine",
    "Watch": "engine",
    "read_changes": "rdf",
    "write_changes": "rdf",
}

__all__ = [
    "BlankNode",
    "ChangeBatch",
    "Delta",
    "DeltaRow",
    "GraphtideError",
    "Literal",
    "LiveGraph",
    "NamedNode",
    "Program",
    "TermDictionary",
    "Transaction",
    "Watch",
    "__version__",
    "read_changes",
    "write_changes",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphtide' has no attribute {name!r}")
    return getattr(import_module(f"graphtide.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
