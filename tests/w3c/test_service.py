"""The W3C's tests of SERVICE, with an endpoint on this machine for each that they name."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from support.endpoint import endpoint
from w3c.expected import table, term_of
from w3c.judgement import difference
from w3c.manifest import federated_tests, path_of, read_quads
from w3c.question import expected_answer, text_of
from w3c.suites import line, parameters

from graphtide import LiveGraph
from graphtide.algebra.queries import as_select
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.rdf.formats.results import ResultRows, rows_text
from graphtide.rdf.terms import parse_term
from oracles.transactions import terms_of


def of_graph(files, addresses):
    """The answers of a live graph that may ask other endpoints itself."""
    graph = LiveGraph(services=["*"])
    for file in files:
        for quad in read_quads(file):
            graph.insert(*terms_of(quad))

    def answer(query: str) -> bytes:
        for name, url in addresses.items():
            query = query.replace(f"<{name}>", f"<{url}>")
        parsed = as_select(parse_any_query(query))
        rows = graph.query(parsed, terms=True).to_pylist()
        terms = [tuple(t and parse_term(t) for t in row.values()) for row in rows]
        names = tuple(variable.name for variable in parsed.variables)
        return rows_text(ResultRows(names, terms), "json").encode()

    return answer


@pytest.mark.parametrize("test", parameters(federated_tests()))
def test_federated(test, record_property):
    record_property(*line(test.evaluation, "engine"))
    text = text_of(test.evaluation)
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        for name, files in test.endpoints:
            addresses[name] = stack.enter_context(endpoint(of_graph(files, addresses)))
        invalid = "http://invalid.endpoint.org/sparql"
        if invalid in text:
            addresses[invalid] = "http://127.0.0.1:9/sparql"  # nobody listens on this port
        # The data may name endpoints too, and then the answer does.
        local = {name: f"<{url}>" for name, url in addresses.items()}
        said = {url: f"<{name}>" for name, url in local.items()}
        for name, url in local.items():
            text = text.replace(f"<{name}>", url)
        graph = LiveGraph(services=list(addresses.values()))
        query = graph.watch(text)
        for file in test.evaluation.data:
            for quad in read_quads(file):
                graph.insert(*(local.get(getattr(t, "value", ""), t) for t in terms_of(quad)))
        wanted = expected_answer(test.evaluation)
        for found in (query.table(terms=True), graph.query(text, terms=True)):
            rows = [
                {n: None if t is None else term_of(said.get(t, t)) for n, t in row.items()}
                for row in found.to_pylist()
            ]
            problem = difference(table(found.column_names, rows), wanted, test.evaluation)
            assert problem is None, problem


def test_every_test_is_there():
    assert len(federated_tests()) in (0, 7)
    assert all(path_of(test.evaluation.query).is_file() for test in federated_tests())
