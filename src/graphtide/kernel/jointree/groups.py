"""The groups of a join tree: what they have after each transaction, and their rows.

For each transaction and each group that it touches there is one event. Its results are numbers, for
which the caller has to find ids, once for all events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.groups import EVENT_TX, GROUP, THERE, changed_rows
from graphtide.kernel.jointree import state as cells
from graphtide.kernel.jointree.state import Changes, GroupEvents, Weighted, add_weight, is_zero
from graphtide.kernel.rowtable import HEAD, Table, add_row, find_slot, remove_row, row_hash

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs2
    from graphtide.kernel.batch import Int, Ints, Longs


@inlined
def write_event(run: GroupEvents, group: Int, state: Longs) -> None:
    """Note what a group has after a transaction."""
    totals = run.groups.weights
    n = state[cells.EVENTS]
    there = state[cells.ALWAYS] != 0 or totals[group, 0] > 0
    run.events[n, EVENT_TX], run.events[n, GROUP] = state[cells.NOW], group
    run.events[n, THERE] = there
    for a in range(len(run.aggregates) if there else 0):
        at, waiting = run.aggregates[a, cells.PART], state[cells.WAITING]
        run.results[n, a] = -1
        if run.aggregates[a, cells.MODE] != cells.NUMBERS:
            run.pending[waiting, 0] = max(totals[group, at], np.int64(0))
            run.pending[waiting, 1] = 0
        elif totals[group, at + 2] != 0:
            run.results[n, a] = 0  # one of the values is no number
            continue
        else:
            count = totals[group, at + 1] if run.aggregates[a, cells.MEAN] else np.int64(0)
            sign = 1 if count >= 0 else -1  # by redundant changes of a graph without quads
            run.pending[waiting, 0] = sign * totals[group, at]
            run.pending[waiting, 1] = sign * count
        state[cells.WAITING] += 1
    state[cells.EVENTS] += 1


@inlined
def group_of(groups: Weighted, source: Ints, at: Int, column: Int) -> Int:
    """The group with a key, which is added if it is not there."""
    g = groups.table
    hash_ = row_hash(g.width, source, at, column)
    slot = find_slot(g, hash_, source, at, column)
    group = np.int64(g.slots[slot, HEAD] - 1)
    if group < 0:
        group = np.int64(add_row(g, slot, hash_, source, at, column))
        g.rows[group, g.width] = 1
        for part in range(groups.weights.shape[1]):
            groups.weights[group, part] = 0
    return group


@inlined
def change_groups(run: GroupEvents, changes: Changes, table: Int, state: Longs) -> None:
    """Add changes to the groups, for which there is room, and note what they have."""
    c = changes.table
    change = changes.lists[table, cells.FIRST]
    while change != 0:
        at = change - 1
        change = np.int64(c.rows[at, c.width + 1])
        if not is_zero(changes.weights, at):
            group = group_of(run.groups, c.rows, at, 1)
            add_weight(run.groups.weights, group, changes.weights, at, state)
            write_event(run, group, state)


@compiled
def write_rows(
    rows: Ints2,
    shown: Ints2,
    picked: Ints1,
    events: Ints2,
    results: Ints2,
    literals: Ints1,
    out: Ints2,
) -> tuple[Int, bool]:
    """`changed_rows` of all events."""
    return changed_rows(rows, shown, picked, events, len(events), results, literals, out)


@compiled
def drop_groups(t: Table, totals: Longs2, events: Ints2) -> None:
    """Remove the groups of some events, each named once or more, that have nothing."""
    for e in range(len(events)):
        group = events[e, GROUP]
        if t.rows[group, t.width] != 0 and is_zero(totals, group):
            remove_row(t, group)
