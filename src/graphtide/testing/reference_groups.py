"""Groups and slices of solutions, as plainly as they can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.errors import ExpressionError
from graphtide.functions.aggregates import aggregate
from graphtide.functions.order import order_value
from graphtide.functions.values import integer_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import Aggregate, Group, Slice
    from graphtide.rdf.term import Term

    Solution = Mapping[Var, Term]


def group_solutions(node: Group, solutions: list[Solution]) -> list[Solution]:
    """https://www.w3.org/TR/sparql11-query/#aggregateAlgebra

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import Aggregate, Bgp, Group
    >>> count = Aggregate(Var("n"), "COUNT", None)
    >>> [s[Var("n")].value for s in group_solutions(Group(Bgp(()), (), (count,)), [])]
    ['0']
    """
    groups = divided(solutions, node.keys)
    if not node.keys:
        groups.setdefault((), [])
    found: list[Solution] = []
    for values, rows in groups.items():
        keys = {k: v for k, v in zip(node.keys, values, strict=True) if v is not None}
        aggregates = {a.var: _aggregated(a, rows) for a in node.aggregates}
        found.append({**keys, **{var: t for var, t in aggregates.items() if t is not None}})
    return found


def slice_solutions(node: Slice, solutions: list[Solution]) -> list[Solution]:
    """https://www.w3.org/TR/sparql11-query/#solutionModifiers, one part after the other."""
    found: list[Solution] = []
    for part in divided(solutions, node.per).values():
        rows = [_shown(s, node.variables) for s in in_order(node, part)]
        if node.distinct:
            rows = [dict(items) for items in dict.fromkeys(tuple(row.items()) for row in rows)]
        last = None if node.limit is None else node.offset + node.limit
        found += rows[node.offset : last]
    return found


def in_order(node: Slice, solutions: list[Solution]) -> list[Solution]:
    """The solutions sorted by the keys of a slice, ties by the texts of what it shows."""
    rows = sorted(solutions, key=lambda s: [str(s.get(v) or "") for v in node.variables])
    for key in reversed(node.keys):
        var, descending = key.var, key.descending
        rows.sort(key=lambda s, var=var: order_value(s.get(var)), reverse=descending)  # type: ignore[misc]
    return rows


def divided(
    solutions: Iterable[Solution], by: tuple[Var, ...]
) -> dict[tuple[Term | None, ...], list[Solution]]:
    """The solutions by their values of some variables; None is unbound."""
    parts: dict[tuple[Term | None, ...], list[Solution]] = {}
    for solution in solutions:
        parts.setdefault(tuple(map(solution.get, by)), []).append(solution)
    return parts


def _aggregated(call: Aggregate, rows: list[Solution]) -> Term | None:
    if call.argument is None:
        different = {frozenset(row.items()) for row in rows}
        return integer_term(len(different if call.distinct else rows))
    values = [row.get(call.argument) for row in rows]
    if call.distinct:
        values = list(dict.fromkeys(values))
    try:
        return aggregate(call.function, values, call.separator)
    except ExpressionError:
        return None


def _shown(solution: Solution, variables: tuple[Var, ...]) -> Solution:
    return {v: solution[v] for v in variables if v in solution}
