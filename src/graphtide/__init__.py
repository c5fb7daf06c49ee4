"""Graphtide: standing queries over an RDF graph that changes, with exact deltas."""

from __future__ import annotations

import sys
from importlib import import_module
from logging import NullHandler, getLogger
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide import spark
    from graphtide.client import connect
    from graphtide.engine.results import Delta, DeltaRow, WindowResult
    from graphtide.engine.services import Services
    from graphtide.engine.transaction import Transaction
    from graphtide.engine.watch import Query
    from graphtide.errors import GraphtideError
    from graphtide.functions.user import function
    from graphtide.graph import LiveGraph
    from graphtide.lang.sparql.prefixes import with_prefixes
    from graphtide.lang.tide.program import Program
    from graphtide.limits import Limits
    from graphtide.rdf import (
        BlankNode,
        ChangeBatch,
        Literal,
        NamedNode,
        TripleTerm,
        read_changes,
        write_changes,
    )

__version__ = "0.1.0"

# Records go to the handlers of the program, if it has any, and otherwise nowhere.
getLogger("graphtide").addHandler(NullHandler())

# Loaded when first asked for: a command that only prints its help should not wait for a compiler.
_HOMES = {
    "BlankNode": "rdf",
    "ChangeBatch": "rdf",
    "Delta": "engine.results",
    "DeltaRow": "engine.results",
    "GraphtideError": "errors",
    "Limits": "limits",
    "Literal": "rdf",
    "LiveGraph": "graph",
    "NamedNode": "rdf",
    "Program": "lang.tide.program",
    "Query": "engine.watch",
    "Services": "engine.services",
    "Transaction": "engine.transaction",
    "TripleTerm": "rdf",
    "WindowResult": "engine.results",
    "connect": "client",
    "read_changes": "rdf",
    "function": "functions.user",
    "with_prefixes": "lang.sparql.prefixes",
    "write_changes": "rdf",
}

__all__ = [
    "BlankNode",
    "ChangeBatch",
    "Delta",
    "DeltaRow",
    "GraphtideError",
    "Limits",
    "Literal",
    "LiveGraph",
    "NamedNode",
    "Program",
    "Query",
    "Services",
    "Transaction",
    "TripleTerm",
    "WindowResult",
    "__version__",
    "connect",
    "function",
    "read_changes",
    "spark",
    "with_prefixes",
    "write_changes",
]


def __getattr__(name: str) -> object:
    if name == "spark":
        return import_module("graphtide.spark")
    if name not in _HOMES:
        raise AttributeError(f"module 'graphtide' has no attribute {name!r}")
    return getattr(import_module(f"graphtide.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


# In a notebook, queries and programs show themselves live.
_shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
if hasattr(_shell, "kernel"):
    import_module("graphtide.notebook").load_ipython_extension(_shell)
