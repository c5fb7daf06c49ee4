"""RDF: terms and their ids, changes, and the formats in which both are read and written."""

from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.rdf.changes import ChangeBatch, RejectedRow
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.terms import TripleTerm

if TYPE_CHECKING:
    from graphtide.rdf.formats.patch import PatchReader

__all__ = [
    "BlankNode",
    "ChangeBatch",
    "Literal",
    "NamedNode",
    "PatchReader",
    "RejectedRow",
    "TermDictionary",
    "TripleTerm",
    "read_changes",
    "write_changes",
]


def __getattr__(name: str) -> object:
    if name != "PatchReader":
        raise AttributeError(f"module 'graphtide.rdf' has no attribute {name!r}")
    from graphtide.rdf.formats.patch import PatchReader  # noqa: PLC0415 - few programs read patches

    return PatchReader
