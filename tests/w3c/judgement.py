"""Where a test is judged otherwise than by exact equality with its expected result, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import BlankNode
from w3c.expected import as_csv, numbers_by_value
from w3c.isomorphism import same_bag, same_set
from w3c.question import text_of

from graphtide import LiveGraph
from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.errors import UnsupportedError

if TYPE_CHECKING:
    from w3c.expected import Table
    from w3c.manifest import EvaluationTest

    from graphtide.algebra.queries import Query

_TESTS10 = "http://www.w3.org/2001/sw/DataAccess/tests/data-r2/"
_TESTS11 = "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/"

EXCLUDED: dict[str, str] = {}
"""Tests whose queries the engine accepts but which are not run: IRI and reason."""


def refusal(test: EvaluationTest) -> str | None:
    """Why a test's query is not maintained; None when it is."""
    try:
        LiveGraph().watch(text_of(test))
    except UnsupportedError as error:
        return f"{error.message.splitlines()[0]}: {(error.hint or '').split(';')[0]}"
    return EXCLUDED.get(test.iri)


BY_VALUE = frozenset(
    {
        # The expected results spell numbers of the data otherwise than the data does: 1 for 01.
        f"{_TESTS10}expr-builtin/manifest#dawg-str-2",
        f"{_TESTS10}expr-builtin/manifest#dawg-datatype-1",
        f"{_TESTS10}expr-builtin/manifest#sameTerm-simple",
        f"{_TESTS10}expr-builtin/manifest#sameTerm-eq",
        f"{_TESTS10}expr-builtin/manifest#sameTerm-not-eq",
        f"{_TESTS10}expr-equals/manifest#eq-2-1",
        f"{_TESTS10}expr-equals/manifest#eq-2-2",
        f"{_TESTS10}sort/manifest#dawg-sort-7",
        f"{_TESTS11}csv-tsv-res/manifest#tsv03",
        # The recommendation does not say how a computed number is spelled: 3 or 3.0.
        f"{_TESTS11}cast/manifest#cast-float",
        f"{_TESTS11}cast/manifest#cast-double",
        f"{_TESTS11}cast/manifest#cast-decimal",
        f"{_TESTS11}functions/manifest#plus-1-corrected",
        f"{_TESTS11}functions/manifest#coalesce01",
        f"{_TESTS11}aggregates/manifest#agg-sum-02",
        f"{_TESTS11}aggregates/manifest#agg-avg-02",
        f"{_TESTS11}aggregates/manifest#agg-min-02",
        f"{_TESTS11}aggregates/manifest#agg-err-02",
    }
)
"""Tests in which numbers are compared by datatype and value; all others compare terms exactly."""


def difference(found: Table, wanted: Table, test: EvaluationTest) -> str | None:
    """What is wrong with an answer; None when nothing is."""
    found, wanted = comparable(found, wanted, test)
    if set(found.variables) != set(wanted.variables):
        return f"columns {found.variables}, expected {wanted.variables}"
    same = same_set if test.lax else same_bag
    if same(found.rows, wanted.rows):
        return None
    return f"rows\n{listing(found)}\nexpected\n{listing(wanted)}"


def comparable(found: Table, wanted: Table, test: EvaluationTest) -> tuple[Table, Table]:
    """An answer and the expected one, with what the test says nothing about taken away."""
    if test.result.endswith(".csv"):
        found = as_csv(found)
    if test.iri in BY_VALUE:
        found, wanted = numbers_by_value(found), numbers_by_value(wanted)
    return found, wanted


def ordered_as_wanted(found: Table, wanted: Table, test: EvaluationTest, query: Query) -> bool:
    """Whether the rows are in the expected order, if the query asks for one."""
    if not isinstance(query, SelectQuery) or not isinstance(query.root, Slice):
        return True
    one, other = comparable(found, wanted, test)
    return _sort_columns(one, query.root) == _sort_columns(other, query.root)


def _sort_columns(found: Table, root: Slice) -> list:
    """The sort columns of an ordered answer; a blank node is as good as another."""
    shown = [found.variables.index(k.var.name) for k in root.keys if k.var in root.variables]
    cells = [[row[i] for i in shown] for row in found.rows]
    return [["_:" if isinstance(cell, BlankNode) else cell for cell in row] for row in cells]


def listing(rows: Table) -> str:
    lines = (" ".join("-" if t is None else str(t) for t in row) for row in rows.rows)
    return "\n".join(sorted(lines)) or "(none)"
