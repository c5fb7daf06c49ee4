"""Rows compared with the aggregate of a group: found by an order of the rows, not one by one.

    SELECT ?s { ?s :v ?v { SELECT (AVG(?x) AS ?mean) { ?y :v ?x } } FILTER (?v > ?mean) }

A join and a filter would take back and give anew every row whenever the mean changes. If nobody
reads the mean itself, only the rows between the old mean and the new one change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Call, Var
from graphtide.algebra.trees import bottom_up
from graphtide.plan import demand
from graphtide.plan import physical as phys

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression

TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def with_ranges(root: phys.Physical) -> phys.Physical:
    """A plan with a `RangeJoin` wherever rows are compared with an aggregate that nobody reads."""
    every = bottom_up(root)
    if not any(isinstance(node, phys.GroupBy | phys.Counting) for node in every):
        return root
    new: dict[phys.Physical, phys.Physical] = {}
    for node in every:
        same = demand.over(node, new)
        if isinstance(same, phys.Keep | phys.GroupBy) and (found := _range(same)):
            same = replace(same, child=found)
        new[node] = same
    return new[root]


def _range(reader: phys.Keep | phys.GroupBy) -> phys.RangeJoin | None:
    """The child of a node as a range join, if it is a comparison with an aggregate."""
    match reader.child:
        case phys.Select(phys.HashJoin(left, right, keys, (), ()), condition):
            for rows, bounds in ((left, right), (right, left)):
                found = _compared(condition, rows, bounds)
                if found and _is_group(bounds) and found[2] not in _read(reader):
                    value, operator, bound = found
                    return phys.RangeJoin(
                        rows, bounds, keys, value, operator, bound, rows.schema, rows.certain
                    )
    return None


def _compared(
    condition: Expression, rows: phys.Physical, bounds: phys.Physical
) -> tuple[Var, str, Var] | None:
    """A comparison of a column of some rows with the one that only the bounds have."""
    own = [v for v in bounds.schema if v not in rows.schema]
    match condition:
        case Call("<" | "<=" | ">" | ">=" as name, (Var() as one, Var() as other)):
            if own == [other] and one in rows.schema and one not in bounds.schema:
                return one, name, other
            if own == [one] and other in rows.schema and other not in bounds.schema:
                return other, TURNED[name], one
        case _:
            pass
    return None


def _is_group(node: phys.Physical) -> bool:
    """Whether the rows of a node are groups: few for a key."""
    while isinstance(node, phys.Keep | phys.Compute | phys.Select):
        node = node.child
    return isinstance(node, phys.GroupBy | phys.Counting)


def _read(reader: phys.Keep | phys.GroupBy) -> set[Var | None]:
    """The columns of its child that a node reads."""
    if isinstance(reader, phys.Keep):
        return set(reader.sources)
    if any(a.argument is None and a.distinct for a in reader.aggregates):
        return set(reader.child.schema)
    return {*reader.keys, *(a.argument for a in reader.aggregates)}
