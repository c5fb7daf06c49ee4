"""RDF: terms and their ids, reading and writing, change logs."""

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.rdf.changes import CHANGE_SCHEMA, ChangeBatch, concat_batches
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.patch import PatchReader
from graphtide.rdf.formats.read import read_quads, write_quads
from graphtide.rdf.problems import BrokenLine
from graphtide.rdf.terms import Term, canonical_text, parse_term

__all__ = [
    "CHANGE_SCHEMA",
    "BlankNode",
    "BrokenLine",
    "ChangeBatch",
    "Literal",
    "NamedNode",
    "PatchReader",
    "Term",
    "TermDictionary",
    "canonical_text",
    "concat_batches",
    "parse_term",
    "read_changes",
    "read_quads",
    "write_changes",
    "write_quads",
]
