"""RDF: terms and their ids, reading and writing, change logs."""

from graphtide.rdf.broken import BrokenLine
from graphtide.rdf.change_log import read_changes, write_changes
from graphtide.rdf.changes import CHANGE_SCHEMA, ChangeBatch, concat_batches
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.patch import PatchReader
from graphtide.rdf.read import read_quads
from graphtide.rdf.term import BlankNode, Literal, NamedNode, Term
from graphtide.rdf.term_text import canonical_text, parse_term
from graphtide.rdf.write import write_quads

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
