"""The W3C's query evaluation and update tests against the reference evaluator.

It answers every query, also those that cannot be maintained.
"""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode
from w3c.expected import Table, table
from w3c.isomorphism import same_bag
from w3c.judgement import comparable, difference
from w3c.manifest import (
    EvaluationTest,
    UpdateTest,
    evaluation_tests,
    path_of,
    read_quads,
    suite_folder,
    update_tests,
)
from w3c.question import TRIPLE, expected_answer, quads_of, query_of

from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.algebra.queries import AskQuery, ConstructQuery, Query
from graphtide.errors import GraphtideError
from graphtide.lang.sparql import parse_update
from graphtide.testing.reference import evaluate_rows
from graphtide.testing.reference_forms import (
    evaluate_ask,
    evaluate_construct,
    evaluate_describe,
)
from graphtide.testing.reference_update import evaluate_update
from graphtide.testing.transactions import terms_of

ABSENT = pytest.param(
    None,
    id="absent",
    marks=pytest.mark.skip(reason=f"the W3C suites are not at {suite_folder().name}"),
)


def parameters(tests) -> list:
    return [pytest.param(test, id=test.name) for test in tests] or [ABSENT]


@pytest.mark.parametrize("test", parameters(evaluation_tests()))
def test_evaluation(test: EvaluationTest) -> None:
    query = query_of(test)
    found = answer(query, [terms_of(quad) for quad in quads_of(test)])
    wanted = expected_answer(test)
    problem = difference(found, wanted, test)
    assert problem is None, problem
    if isinstance(query, SelectQuery) and isinstance(query.root, Slice) and query.root.keys:
        one, other = comparable(found, wanted, test)
        assert sort_columns(one, query.root) == sort_columns(other, query.root)


@pytest.mark.parametrize("test", parameters(update_tests()))
def test_update(test: UpdateTest) -> None:
    text = path_of(test.request).read_text(encoding="utf-8")
    update = parse_update(text, base=test.request)
    found = evaluate_update(update, stored(test.before), load)
    assert same_bag([*found], list(dict.fromkeys(stored(test.after))))


def answer(query: Query, quads: list) -> Table:
    """The answer of a query as a table, whatever its form."""
    if isinstance(query, AskQuery):
        return table(["answer"], [{"answer": Literal(evaluate_ask(query, quads))}])
    if isinstance(query, SelectQuery):
        names = [variable.name for variable in query.variables]
        rows = evaluate_rows(query, quads)
    else:
        construct = isinstance(query, ConstructQuery)
        evaluate = evaluate_construct if construct else evaluate_describe
        names, rows = list(TRIPLE), evaluate(query, quads)
    return table(names, [dict(zip(names, row, strict=True)) for row in rows])


def stored(files) -> list:
    """The quads of files, each in the default graph or a named one."""
    quads = []
    for file, graph in files:
        name = None if graph is None else NamedNode(graph)
        quads += [terms_of(quad) for quad in read_quads(file, name)]
    return quads


def load(source: NamedNode) -> list:
    if not path_of(source.value).is_file():
        raise GraphtideError(f"there is no file behind {source}")
    return [quad[:3] for quad in stored([(source.value, None)])]


def sort_columns(found: Table, root: Slice) -> list:
    """The sort columns of an ordered answer; a blank node is as good as another."""
    shown = [found.variables.index(k.var.name) for k in root.keys if k.var in root.variables]
    cells = [[row[i] for i in shown] for row in found.rows]
    return [["_:" if isinstance(cell, BlankNode) else cell for cell in row] for row in cells]
