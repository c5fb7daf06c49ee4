"""The loops over a join tree: the changes of a batch, from the inputs up to the groups.

All tables of a tree are in one row table, with the number of a table as the first column of its
keys, so that there is one loop for all trees. A transaction is read into a second row table, the
*changes*, which adds up what has the same key. Then each node, after its children, joins the
changes of each of its tables with all others, which gives changes of the table above, and adds them
to its own.

A loop cannot allocate. It returns what there is no room for, and goes on where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, Int, Ints, Longs
from graphtide.kernel.groups import CLASS, UNKNOWN, WHOLE
from graphtide.kernel.jointree import layout
from graphtide.kernel.jointree import state as cells
from graphtide.kernel.jointree.groups import change_groups, group_of, write_event
from graphtide.kernel.jointree.layout import TreeLayout
from graphtide.kernel.jointree.state import (
    Changes,
    GroupEvents,
    Weighted,
    add_change,
    add_weight,
    clear_changes,
    is_zero,
    plus,
    room_in,
    set_key,
    times,
)
from graphtide.kernel.rowtable import (
    HEAD,
    LIVE,
    Table,
    add_row,
    find_head,
    find_row,
    find_slot,
    key_hash,
    link,
    remove_row,
    row_hash,
    unlink,
)
from graphtide.views import ints1, ints2, longs1, longs2

if TYPE_CHECKING:
    from graphtide.arrays import Floats1, Ints1
    from graphtide.kernel.groups import Numbers
    from graphtide.views import Block

NOT_OPEN = -1
"""The cursor of a step whose rows are not looked for yet."""


class JoinRun(NamedTuple):
    """What a node joins changes with: bound values, and a row and a product for each step."""

    tree: TreeLayout
    keys: Weighted
    bound: Ints
    cursors: Ints
    products: Longs


@inlined
def weigh(
    weight: Longs,
    arguments: Ints,
    number: Int,
    batch: Ints,
    i: Int,
    classes: Ints,
    numbers: Numbers,
    state: Longs,
) -> None:
    """The weight of a row of an input, as the first one of an array."""
    diff = np.int64(batch[i, DIFF])
    weight[0, 0] = diff
    for part in range(1, weight.shape[1]):
        weight[0, part] = 0
    for a in range(len(arguments)):
        if arguments[a, cells.OF_INPUT] != number:
            continue
        column, at = arguments[a, cells.ARGUMENT], arguments[a, cells.AT]
        id_ = batch[i, column] if column >= 0 else np.int32(0)
        if arguments[a, cells.KIND] == cells.BOUND:
            weight[0, at] = diff if id_ != 0 else np.int64(0)
        elif classes[id_] & CLASS == WHOLE:
            weight[0, at] = times(np.int64(numbers[id_]), diff, state)
            weight[0, at + 1] = diff
        else:
            weight[0, at + 2] = diff


@inlined
def next_transaction(which: Ints, batches: Block, places: Longs) -> Int:
    """The first transaction that is not read yet; -1 if there is none."""
    first = np.int64(-1)
    for k in range(len(which)):
        batch = ints2(batches, k)
        if places[k] < len(batch):
            tx = np.int64(batch[places[k], TX])
            if first < 0 or tx < first:
                first = tx
    return first


@inlined
def read_changes(
    changes: Changes,
    weight: Longs,
    inputs: Ints,
    arguments: Ints,
    which: Ints,
    batches: Block,
    places: Longs,
    classes: Ints,
    numbers: Numbers,
    state: Longs,
) -> bool:
    """Read a transaction; False if there is no room for more changes."""
    key, tx = changes.key, state[cells.NOW]
    changed = changes.table.meta
    most = changed[LIVE] + room_in(changes.table)
    for k in range(len(which)):
        batch, number = ints2(batches, k), which[k]
        width = inputs[number, layout.TAKEN]
        set_key(key, inputs[number, layout.INTO], width)
        i = places[k]
        while i < len(batch) and batch[i, TX] == tx:
            if changed[LIVE] == most:
                places[k] = i
                return False
            for c in range(width):
                key[0, 1 + c] = batch[i, inputs[number, layout.TAKEN0 + c]]
            weigh(weight, arguments, number, batch, i, classes, numbers, state)
            add_change(changes, weight, 0, state)
            i += 1
        places[k] = i
    return True


@inlined
def known_values(arguments: Ints, which: Ints, batches: Block, classes: Ints) -> Int:
    """Whether all values that are added up are known to be whole numbers, or none."""
    for a in range(len(arguments)):
        column = arguments[a, cells.ARGUMENT]
        if arguments[a, cells.KIND] != cells.NUMBERS or column < 0:
            continue
        for k in range(len(which)):
            batch = ints2(batches, k)
            if which[k] == arguments[a, cells.OF_INPUT]:
                for i in range(len(batch)):
                    id_ = batch[i, column]
                    if id_ >= len(classes) or classes[id_] & CLASS == 0:
                        return cells.UNKNOWN_IDS
                    if classes[id_] & CLASS == UNKNOWN:
                        return cells.NOT_WHOLE
    return cells.DONE


@inlined
def open_step(run: JoinRun, key: Ints, step: Int) -> Int:
    """The first row, plus 1, of the table that a step joins; 0 if there is none."""
    t = run.keys.table
    other, index = run.tree.steps[step, layout.OTHER], run.tree.steps[step, layout.INDEX]
    width = run.tree.tables[other, layout.WIDTH]
    set_key(key, other, width)
    for c in range(width):
        key[0, 1 + c] = run.bound[run.tree.columns[other, c]]
    if index < 0:
        return find_row(t, key, 0, 0) + 1
    return np.int64(t.heads[find_head(t, index, key_hash(t, index, key, 0), key, 0), HEAD])


@inlined
def take_row(run: JoinRun, step: Int, depth: Int, state: Longs) -> None:
    """Join with the row of a step, and let the next one follow."""
    t, products = run.keys.table, run.products
    row = run.cursors[depth] - 1
    other, index = run.tree.steps[step, layout.OTHER], run.tree.steps[step, layout.INDEX]
    run.cursors[depth] = 0
    if index >= 0:
        run.cursors[depth] = t.rows[row, t.width + 1 + 2 * index]
        for c in range(run.tree.tables[other, layout.WIDTH]):
            run.bound[run.tree.columns[other, c]] = t.rows[row, 1 + c]
    rows, others = products[depth, 0], run.keys.weights[row, 0]
    products[depth + 1, 0] = times(rows, others, state)
    for part in range(1, products.shape[1]):
        products[depth + 1, part] = plus(
            times(products[depth, part], others, state),
            times(run.keys.weights[row, part], rows, state),
            state,
        )


@inlined
def send(
    changes: Changes, nodes: Ints, bound: Ints, products: Longs, node: Int, depth: Int, state: Longs
) -> None:
    """Add what a node sends to the changes of the table above."""
    key = changes.key
    width = nodes[node, layout.SENT]
    set_key(key, nodes[node, layout.TARGET], width)
    for c in range(width):
        key[0, 1 + c] = bound[nodes[node, layout.SENT0 + c]]
    add_change(changes, products, depth, state)


@inlined
def join_change(
    run: JoinRun, changes: Changes, node: Int, table: Int, change: Int, state: Longs
) -> Int:
    """Join the changed key of a table with all other tables of its node; see `DONE`."""
    products = run.products
    first, many = run.tree.tables[table, layout.FIRST_STEP], run.tree.tables[table, layout.STEPS]
    depth = state[cells.DEPTH]
    if depth < 0:
        if is_zero(changes.weights, change):
            return cells.DONE
        for c in range(run.tree.tables[table, layout.WIDTH]):
            run.bound[run.tree.columns[table, c]] = changes.table.rows[change, 1 + c]
        for part in range(products.shape[1]):
            products[0, part] = changes.weights[change, part]
        depth = np.int64(0)
        run.cursors[0] = NOT_OPEN
    changed = changes.table.meta
    most = changed[LIVE] + room_in(changes.table)
    while depth >= 0:
        if depth == many:
            if changed[LIVE] == most:
                state[cells.DEPTH] = depth
                return cells.CHANGES
            send(changes, run.tree.nodes, run.bound, products, node, depth, state)
            depth -= 1
            continue
        if run.cursors[depth] == NOT_OPEN:
            run.cursors[depth] = open_step(run, changes.key, first + depth)
        if run.cursors[depth] == 0:
            depth -= 1
            continue
        if state[cells.BUDGET] <= 0:
            state[cells.DEPTH] = depth
            return cells.TIME
        state[cells.BUDGET] -= 1
        take_row(run, first + depth, depth, state)
        depth += 1
        run.cursors[depth] = NOT_OPEN
    state[cells.DEPTH] = -1
    return cells.DONE


@inlined
def new_keys(t: Table, changes: Changes, table: Int, column: Int) -> Int:
    """How many of the changed keys of a table it does not have."""
    c = changes.table
    found = np.int64(0)
    change = changes.lists[table, cells.FIRST]
    while change != 0:
        if find_row(t, c.rows, change - 1, column) < 0:
            found += 1
        change = np.int64(c.rows[change - 1, c.width + 1])
    return found


@inlined
def is_full(t: Table, changes: Changes, table: Int, column: Int, state: Longs) -> bool:
    """Whether there is no room for the changed keys of a table; then, how much they need."""
    state[cells.NEED] = 0
    if changes.lists[table, cells.MANY] <= room_in(t):
        return False
    state[cells.NEED] = new_keys(t, changes, table, column)
    return bool(state[cells.NEED] > room_in(t))


@inlined
def add_changes(keys: Weighted, changes: Changes, links: Ints, table: Int, state: Longs) -> None:
    """Add its changes to a table, for which there is room."""
    t, c = keys.table, changes.table
    change = changes.lists[table, cells.FIRST]
    while change != 0:
        at = change - 1
        change = np.int64(c.rows[at, c.width + 1])
        if is_zero(changes.weights, at):
            continue
        hash_ = row_hash(t.width, c.rows, at, 0)
        slot = find_slot(t, hash_, c.rows, at, 0)
        row = t.slots[slot, HEAD] - 1
        if row < 0:
            row = add_row(t, slot, hash_, c.rows, at, 0)
            t.rows[row, t.width] = 1
            for index in range(len(t.indexes)):
                if links[table, index]:
                    link(t, index, row)
            for part in range(keys.weights.shape[1]):
                keys.weights[row, part] = 0
        if not add_weight(keys.weights, row, changes.weights, at, state):
            for index in range(len(t.indexes)):
                if links[table, index]:
                    unlink(t, index, row)
            remove_row(t, row)


@inlined
def join_node(run: JoinRun, changes: Changes, node: Int, state: Longs) -> Int:
    """Take in the changes of all tables of a node, from where it stopped; see `DONE`."""
    nodes, c = run.tree.nodes, changes.table
    while state[cells.SLOT] < nodes[node, layout.TABLES]:
        table = nodes[node, layout.FIRST_TABLE] + state[cells.SLOT]
        if state[cells.CHANGE] < 0:
            state[cells.CHANGE] = changes.lists[table, cells.FIRST]
        while state[cells.CHANGE] != 0:
            change = state[cells.CHANGE] - 1
            stopped = join_change(run, changes, node, table, change, state)
            if stopped != cells.DONE:
                return stopped
            state[cells.CHANGE] = c.rows[change, c.width + 1]
        if is_full(run.keys.table, changes, table, 0, state):
            return cells.KEYS
        add_changes(run.keys, changes, run.tree.links, table, state)
        state[cells.SLOT] += 1
        state[cells.CHANGE] = -1
    state[cells.SLOT] = 0
    return cells.DONE


@inlined
def table_at(block: Block, place: int, width: int) -> Table:
    """The table whose arrays are at a place of a block, and those that follow."""
    return Table(
        ints2(block, place),
        ints2(block, place + 1),
        ints2(block, place + 2),
        ints2(block, place + 3),
        longs1(block, place + 4),
        width,
    )


@compiled
def tree_step(
    block: Block,
    width: int,
    key_width: int,
    which: Ints1,
    batches: Block,
    classes: Ints1,
    numbers: Floats1,
) -> Int:
    """Take in a batch of each of some inputs; why it returns, see `DONE`.

    The block is that of `JoinTree`, `width` that of its keys, `key_width` that of groups.
    """
    tree = TreeLayout(
        ints2(block, 18), ints2(block, 19), ints2(block, 20),
        ints2(block, 21), ints2(block, 22), ints2(block, 23),
    )  # fmt: skip
    keys = Weighted(table_at(block, 0, width), longs2(block, 5))
    groups = Weighted(table_at(block, 6, key_width), longs2(block, 11))
    key, lists = ints2(block, 30), longs2(block, 26)
    changes = Changes(table_at(block, 12, width), longs2(block, 17), lists, key)
    run = JoinRun(tree, keys, ints1(block, 27), ints1(block, 28), longs2(block, 29))
    events = GroupEvents(
        groups, ints2(block, 24), ints2(block, 33), ints2(block, 34), longs2(block, 35)
    )
    arguments, places, state = ints2(block, 25), longs1(block, 31), longs1(block, 32)
    last = len(lists) - 1
    if state[cells.PHASE] == cells.BEGIN:
        found = known_values(arguments, which, batches, classes)
        if found != cells.DONE:
            return found
        if state[cells.ALWAYS] == cells.NEW:
            state[cells.NOW], state[cells.ALWAYS] = 0, cells.NEW + 1
            set_key(key, 0, 0)
            write_event(events, group_of(groups, key, 0, 1), state)
        state[cells.PHASE] = cells.READ
    while True:
        if state[cells.PHASE] == cells.READ:
            state[cells.NOW] = next_transaction(which, batches, places)
            if state[cells.NOW] < 0:
                return cells.DONE
            if not read_changes(
                changes, run.products, tree.inputs, arguments,
                which, batches, places, classes, numbers, state,
            ):  # fmt: skip
                return cells.CHANGES
            state[cells.PHASE], state[cells.NODE], state[cells.CHANGE] = cells.JOIN, 0, -1
        if state[cells.PHASE] == cells.JOIN:
            while state[cells.NODE] < len(tree.nodes):
                stopped = join_node(run, changes, state[cells.NODE], state)
                if stopped != cells.DONE:
                    return stopped
                state[cells.NODE] += 1
            state[cells.PHASE] = cells.GROUP
        full = is_full(groups.table, changes, last, 1, state)
        if full or state[cells.EVENTS] + lists[last, cells.MANY] > len(events.events):
            return cells.GROUPS
        change_groups(events, changes, last, state)
        clear_changes(changes)
        state[cells.PHASE] = cells.READ
