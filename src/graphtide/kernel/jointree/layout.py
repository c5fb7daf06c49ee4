"""A join tree as arrays: which tables it has, how their changes are joined, and where they go.

A node joins a table of its own rows with one for each child, by key. A node with one table passes
its changes on, and stores nothing: so a leaf is a table of its parent, and a root with one child is
the table of the groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.kernel.batch import VALUES

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from graphtide.kernel.batch import Ints

Names = tuple["Hashable", ...]
"""Variables, of which only matters which are the same."""

ROOT = -1
"""The parent of the inputs that send to the groups."""

WIDTH, FIRST_STEP, STEPS = 0, 1, 2
"""Columns of `tables`: how many columns a key has, and the steps that join its changes."""

OTHER, INDEX = 0, 1
"""Columns of `steps`: the table that is joined, and the index by which its keys are found; -1 if
all columns of a key are known."""

FIRST_TABLE, TABLES, TARGET, SENT, SENT0 = 0, 1, 2, 3, 4
"""Columns of `nodes`: its tables, the one that it sends to, and the variables of what it sends."""

INTO, TAKEN, TAKEN0 = 0, 1, 2
"""Columns of `inputs`: the table of its rows, and the columns of a batch that are its key."""


class TreeLayout(NamedTuple):
    """A join tree as compiled loops take it; the table of the groups is the last one."""

    tables: Ints
    columns: Ints  # for each table, the variables of its key
    links: Ints  # for each table and index, whether its keys are in it
    steps: Ints
    nodes: Ints  # a node comes after its children
    inputs: Ints


class JoinedTable(NamedTuple):
    """A table of a node, by the variables of its key."""

    number: int
    variables: Names


def lay_out(
    schemas: Sequence[Names],
    columns: Sequence[Names],
    sent: Sequence[Names],
    parents: Sequence[int],
    keys: Names,
) -> tuple[TreeLayout, list[tuple[int, ...]]]:
    """A tree, and the columns of its indexes; column 0 of a key is the number of the table.

    For each input: the columns of its batches, those that it stores and those that it sends, and
    its parent. `keys` are the variables of the groups.
    """
    children: list[list[int]] = [[] for _ in range(len(columns) + 1)]
    for number, parent in enumerate(parents):
        children[parent].append(number)
    order = _bottom_up(children)
    of_node: dict[int, list[JoinedTable]] = {}
    target: dict[int, JoinedTable] = {}  # of what each input sends
    many = 0
    for node in order:
        own = [columns[node]] if node != ROOT else []
        names = [*own, *(sent[child] for child in children[node])]
        if len(names) == 1:
            continue
        of_node[node] = [JoinedTable(many + at, each) for at, each in enumerate(names)]
        target.update(zip(children[node], of_node[node][len(own) :], strict=True))
        many += len(names)
    groups = JoinedTable(many, keys)
    target[ROOT] = groups
    for child in children[ROOT]:
        target.setdefault(child, groups)
    into = [
        of_node[number][0] if number in of_node else target[number]
        for number in range(len(columns))
    ]
    inputs = [
        [table.number, len(table.variables)]
        + [VALUES + schema.index(name) for name in table.variables]
        for table, schema in zip(into, schemas, strict=True)
    ]
    return _arrays(of_node, target, inputs)


def _bottom_up(children: list[list[int]]) -> list[int]:
    """All nodes, each after its children."""
    order = [ROOT]
    for node in order:
        order += children[node]
    return order[::-1]


def _arrays(
    of_node: dict[int, list[JoinedTable]],
    target: dict[int, JoinedTable],
    inputs: list[list[int]],
) -> tuple[TreeLayout, list[tuple[int, ...]]]:
    indexes: dict[tuple[int, ...], int] = {}
    tables: list[list[int]] = []
    named: list[list[int]] = []
    steps: list[tuple[int, int]] = []
    nodes: list[list[int]] = []
    for node, own in of_node.items():
        numbers: dict[Hashable, int] = {}
        for table in own:
            for name in table.variables:
                numbers.setdefault(name, len(numbers))
        for table in own:
            found = _steps(table, own, indexes)
            tables.append([len(table.variables), len(steps), len(found)])
            named.append([numbers[name] for name in table.variables])
            steps += found
        to = target[node]
        nodes.append(
            [own[0].number, len(own), to.number, len(to.variables)]
            + [numbers[name] for name in to.variables]
        )
    groups = target[ROOT]
    tables.append([len(groups.variables), 0, 0])
    links: list[set[int]] = [set() for _ in tables]
    for other, index in steps:
        if index >= 0:
            links[other].add(index)
    uses = [[int(index in each) for index in range(len(indexes))] for each in links]
    arrays = (_array(each) for each in (tables, named, uses, steps, nodes, inputs))
    return TreeLayout(*arrays), list(indexes)


def _steps(
    start: JoinedTable, tables: list[JoinedTable], indexes: dict[tuple[int, ...], int]
) -> list[tuple[int, int]]:
    """How a changed key of a table is joined with all others: those that only test first."""
    bound = set(start.variables)
    rest = [table for table in tables if table is not start]
    steps: list[tuple[int, int]] = []

    while rest:
        tests = [table for table in rest if bound.issuperset(table.variables)]
        near = max(rest, key=lambda table: sum(name in bound for name in table.variables))
        for table in tests or [near]:
            known = [at for at, name in enumerate(table.variables) if name in bound]
            index = -1
            if len(known) < len(table.variables):
                index = indexes.setdefault((0, *(1 + at for at in known)), len(indexes))
            steps.append((table.number, index))
            bound.update(table.variables)
            rest.remove(table)
    return steps


def _array(lines: Sequence[Sequence[int]]) -> Ints:
    """Lines of different lengths, filled up with zeros."""
    width = max((len(line) for line in lines), default=0)
    array = np.zeros((len(lines), max(width, 1)), np.int32)
    for line, own in zip(array, lines, strict=True):
        line[: len(own)] = own
    return array
