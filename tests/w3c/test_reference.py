"""The W3C's query evaluation and update tests against the reference evaluator.

It answers every query, also those that cannot be maintained.
"""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, NamedNode
from w3c.expected import Table, expected_boolean, expected_graph, expected_table, table
from w3c.isomorphism import same_bag
from w3c.judgement import BY_VALUE_ONCE, comparable, difference
from w3c.manifest import (
    EvaluationTest,
    UpdateTest,
    evaluation_tests,
    path_of,
    read_quads,
    suite_folder,
    update_tests,
)

from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery, Query
from graphtide.errors import GraphtideError
from graphtide.lang.sparql import parse_any_query, parse_update
from graphtide.testing.reference import evaluate_rows
from graphtide.testing.reference_forms import (
    evaluate_ask,
    evaluate_construct,
    evaluate_describe,
)
from graphtide.testing.reference_update import evaluate_update
from graphtide.testing.transactions import terms_of

EXCLUDED: dict[str, str] = {}
"""Tests that are not run: name and reason."""

ABSENT = pytest.param(
    None,
    id="absent",
    marks=pytest.mark.skip(reason=f"the W3C suites are not at {suite_folder().name}"),
)


def parameters(tests) -> list:
    return [pytest.param(test, id=test.name) for test in tests] or [ABSENT]


@pytest.mark.parametrize("test", parameters(evaluation_tests()))
def test_evaluation(test: EvaluationTest) -> None:
    if test.name in EXCLUDED:
        pytest.skip(f"excluded: {EXCLUDED[test.name]}")
    text = path_of(test.query).read_text(encoding="utf-8")
    query = parse_any_query(text, base=test.query)
    quads = data_of(test, query)
    match query:
        case SelectQuery():
            check_table(query, quads, test)
        case AskQuery():
            assert evaluate_ask(query, quads) == expected_boolean(test.result)
        case ConstructQuery():
            assert same_bag([*evaluate_construct(query, quads)], expected_graph(test.result))
        case DescribeQuery():
            assert same_bag([*evaluate_describe(query, quads)], expected_graph(test.result))


@pytest.mark.parametrize("test", parameters(update_tests()))
def test_update(test: UpdateTest) -> None:
    if test.name in EXCLUDED:
        pytest.skip(f"excluded: {EXCLUDED[test.name]}")
    text = path_of(test.request).read_text(encoding="utf-8")
    update = parse_update(text, base=test.request)
    found = evaluate_update(update, quads_of(test.before), load)
    assert same_bag([*found], list(dict.fromkeys(quads_of(test.after))))


def data_of(test: EvaluationTest, query: Query) -> list:
    """The quads of a test's files, and of those that FROM names."""
    select = query if isinstance(query, SelectQuery) else query.select
    asked = () if select.dataset is None else {*select.dataset.default, *select.dataset.named}
    names = {*test.graph_data, *(name.value for name in asked)}
    files = [(iri, None) for iri in test.data] + [(iri, iri) for iri in sorted(names)]
    return quads_of(files)


def quads_of(files) -> list:
    """The quads of files, each in the default graph or a named one."""
    quads = []
    for file, graph in files:
        name = None if graph is None else NamedNode(graph)
        quads += [terms_of(quad) for quad in read_quads(file, name)]
    return quads


def load(source: NamedNode) -> list:
    if not path_of(source.value).is_file():
        raise GraphtideError(f"there is no file behind {source}")
    return [quad[:3] for quad in quads_of([(source.value, None)])]


def check_table(query: SelectQuery, quads: list, test: EvaluationTest) -> None:
    names = [variable.name for variable in query.variables]
    rows = [dict(zip(names, row, strict=True)) for row in evaluate_rows(query, quads)]
    found, wanted = table(names, rows), expected_table(test.result)
    problem = difference(found, wanted, test, BY_VALUE_ONCE)
    assert problem is None, problem
    if isinstance(query.root, Slice) and query.root.keys:
        one, other = comparable(found, wanted, test, BY_VALUE_ONCE)
        assert sort_columns(one, query.root) == sort_columns(other, query.root)


def sort_columns(found: Table, root: Slice) -> list:
    """The sort columns of an ordered answer; a blank node is as good as another."""
    shown = [found.variables.index(k.var.name) for k in root.keys if k.var in root.variables]
    cells = [[row[i] for i in shown] for row in found.rows]
    return [["_:" if isinstance(cell, BlankNode) else cell for cell in row] for row in cells]
