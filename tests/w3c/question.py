"""A test's query with the data it is asked of, and the answer it must have, whatever its form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode, Quad
from w3c.expected import Table, expected_boolean, expected_graph, expected_table, table
from w3c.manifest import path_of, read_quads

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.queries import AskQuery, Query
from graphtide.lang.sparql.parse import parse_any_query

if TYPE_CHECKING:
    from w3c.manifest import EvaluationTest

TRIPLE = ("subject", "predicate", "object")


def text_of(test: EvaluationTest) -> str:
    """The query, with its own file as base."""
    return f"BASE <{test.query}>\n{path_of(test.query).read_text(encoding='utf-8')}"


def query_of(test: EvaluationTest) -> Query:
    """The parsed query."""
    return parse_any_query(text_of(test))


def quads_of(test: EvaluationTest) -> list[Quad]:
    """The quads of a test's files, and of those that FROM names."""
    query = query_of(test)
    select = query if isinstance(query, SelectQuery) else query.select
    asked = () if select.dataset is None else {*select.dataset.default, *select.dataset.named}
    names = {*test.graph_data, *(name.value for name in asked)}
    quads = [quad for iri in test.data for quad in read_quads(iri)]
    return quads + [quad for iri in sorted(names) for quad in read_quads(iri, NamedNode(iri))]


def expected_answer(test: EvaluationTest) -> Table:
    """The expected answer as a table: one row for ASK, a row per triple for CONSTRUCT."""
    query = query_of(test)
    if isinstance(query, SelectQuery):
        return expected_table(test.result)
    if isinstance(query, AskQuery):
        return table(["answer"], [{"answer": Literal(expected_boolean(test.result))}])
    triples = expected_graph(test.result)
    return table(list(TRIPLE), [dict(zip(TRIPLE, triple, strict=True)) for triple in triples])
