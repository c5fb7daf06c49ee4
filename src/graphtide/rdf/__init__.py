"""RDF: terms and their ids, changes, and the formats in which both are read and written."""

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.rdf.changes import ChangeBatch, RejectedRow
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.patch import PatchReader
from graphtide.rdf.terms import TripleTerm

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
