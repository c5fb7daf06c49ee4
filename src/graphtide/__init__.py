"""Graphtide: standing questions over a graph that keeps changing, answered with exact deltas."""

from graphtide.engine import Delta, DeltaRow, LiveGraph, Transaction, Watch
from graphtide.errors import GraphtideError
from graphtide.rdf import (
    BlankNode,
    ChangeBatch,
    Literal,
    NamedNode,
    TermDictionary,
    read_changes,
)

__version__ = "0.1.0"

__all__ = [
    "BlankNode",
    "ChangeBatch",
    "Delta",
    "DeltaRow",
    "GraphtideError",
    "Literal",
    "LiveGraph",
    "NamedNode",
    "TermDictionary",
    "Transaction",
    "Watch",
    "__version__",
    "read_changes",
]
