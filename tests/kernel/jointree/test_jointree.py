"""Join trees in the kernel against a join that is recomputed after every transaction."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import batches, in_order, needs_jit, net, often

from graphtide.kernel.batch import VALUES, make_batch
from graphtide.kernel.jointree import state as cells
from graphtide.kernel.jointree import table
from graphtide.kernel.jointree.layout import lay_out
from graphtide.kernel.jointree.table import JoinTree

pytestmark = needs_jit

TREES = (
    (("ab", "bc"), (1, -1), ""),
    (("ax", "bx"), (-1, -1), "x"),
    (("ab", "cd"), (-1, -1), ""),
    (("ab", "cd"), (-1, -1), "ac"),
    (("ab", "bc", "cd"), (1, -1, 1), ""),
    (("ab", "bc", "cd"), (-1, 0, 1), "a"),
    (("ab", "bc", "cd"), (-1, -1, -1), "bc"),
    (("ab", "bc", "cd"), (-1, -1, 1), "cb"),
    (("xa", "xb", "xc", "xd"), (3, 3, 3, -1), "d"),
    (("abc", "bcd", "c"), (1, -1, 1), ""),
    (("abc", "bce", "ced"), (-1, 0, 1), "a"),
    (("ab", "", "bc"), (2, -1, -1), "b"),
)
"""Inputs by the names of their columns, the parent of each, and the keys of the groups."""

NUMBER_OF = (0, 7, -3, 5)
"""What ids stand for; id 0 is no number."""

CLASSES = np.array([1, 2, 2, 2], np.int32)


def make_tree(schemas, parents, keys, *, summed=False, always=False):
    """A tree that counts rows, and perhaps sums the first column of its first input."""
    sent = [
        tuple(v for v in schema if v in (keys if parent < 0 else schemas[parent]))
        for schema, parent in zip(schemas, parents, strict=True)
    ]
    used = [set(each) for each in sent]
    for each, parent in zip(sent, parents, strict=True):
        if parent >= 0:
            used[parent] |= set(each)
    stored = [
        tuple(v for v in schema if v in own) for schema, own in zip(schemas, used, strict=True)
    ]
    layout, indexes = lay_out([tuple(each) for each in schemas], stored, sent, parents, tuple(keys))
    aggregates, arguments = [(cells.ALL_ROWS, 0, 0)], []
    if summed:
        aggregates.append((cells.NUMBERS, 1, 0))
        arguments.append((0, VALUES, cells.NUMBERS, 1))
    return JoinTree(
        layout,
        indexes,
        np.arange(len(keys), dtype=np.int32),
        np.array(aggregates, np.int32),
        np.array(arguments, np.int32).reshape(-1, 4),
        4 if summed else 1,
        always=always,
    )


def step(tree, given):
    """The rows that a tree puts out, with numbers instead of their ids."""
    which = [number for number, batch in enumerate(given) if len(batch)]
    found = tree.step(
        np.array(which, np.int32),
        [given[number] for number in which],
        CLASSES,
        np.array(NUMBER_OF, np.float64),
    )
    return tree.rows(np.ascontiguousarray(found[:, 0], np.int32))


def joined(schemas, rows, keys, *, summed):
    """The groups of a join by its definition: for each key, the rows and the sum."""
    counts, sums, bad = Counter(), Counter(), Counter()
    for combination in product(*(part.items() for part in rows)):
        values = {}
        weight = 1
        for schema, (row, count) in zip(schemas, combination, strict=True):
            weight *= count
            if any(
                values.setdefault(v, value) != value for v, value in zip(schema, row, strict=True)
            ):
                break
        else:
            key = tuple(values[v] for v in keys)
            first = combination[0][0][0] if summed else 0
            counts[key] += weight
            sums[key] += weight * NUMBER_OF[first]
            bad[key] += weight * (first == 0)
    return {
        (*key, count, *([0 if bad[key] else sums[key]] if summed else [])): 1
        for key, count in counts.items()
        if count > 0
    }


@st.composite
def cases(draw):
    schemas, parents, keys = draw(st.sampled_from(TREES))
    each = st.tuples(*(batches(len(schema), most=6, values=3) for schema in schemas))
    return schemas, parents, keys, draw(st.lists(each, min_size=1, max_size=4))


@often
@given(cases(), st.booleans())
def test_a_tree_has_the_groups_of_its_join_after_every_transaction(case, summed):
    schemas, parents, keys, steps = case
    tree = make_tree(schemas, parents, keys, summed=summed)
    rows = [Counter() for _ in schemas]
    shown = {}
    for given_batches in steps:
        expected = {}
        for tx in range(4):
            for own, batch in zip(rows, given_batches, strict=True):
                for at, diff, *values in batch.tolist():
                    own[tuple(values)] += diff * (at == tx)
            now = joined(schemas, rows, keys, summed=summed)
            change = Counter(now)
            change.subtract(shown)
            if changed := {row: n for row, n in change.items() if n}:
                expected[tx] = changed
            shown = now
        out = step(tree, given_batches)
        assert net(out) == expected
        assert in_order(out)
        assert tree.sizes()["groups"] == len(shown)
    assert not tree.too_large


@often
@given(cases())
def test_what_is_taken_back_leaves_nothing_behind(case):
    schemas, parents, keys, steps = case
    tree = make_tree(schemas, parents, keys)
    for given_batches in steps:
        step(tree, given_batches)
    for given_batches in steps:
        for batch in given_batches:
            batch[:, 1] *= -1
        step(tree, given_batches)
    assert tree.sizes() == {"keys": 0, "groups": 0}
    assert [len(tree.keys.table), len(tree.groups.table)] == [0, 0]
    assert not tree.keys.table.arrays.indexes[:, 2].any()


def test_a_hub_grows_all_tables_and_sends_one_change():
    """With a budget of few rows, and room for few changes: a loop goes on where it was."""
    many = 3000
    tree = make_tree(("ab", "bc", "cd"), (-1, 0, 1), "a")
    ab = make_batch([(0, 1, a, 1) for a in range(1, many)], 2)
    bc = make_batch([(0, 1, 1, c) for c in range(1, many)], 2)
    cd = make_batch([(0, 2, c, 1) for c in range(1, many)], 2)
    out = step(tree, (ab, bc, cd))
    assert net(out) == {0: {(a, 2 * (many - 1)): 1 for a in range(1, many)}}
    gone = make_batch([(0, -1, 1, 1), (1, -1, 1, 2)], 2)
    out = step(tree, (gone[:0], gone, gone[:0]))
    assert len(out) == 2 * 2 * (many - 1)
    assert tree.sizes()["keys"] == 3 * (many - 1) + 1 - 2


def test_a_loop_goes_on_after_a_look_at_the_clock(monkeypatch):
    monkeypatch.setattr(table, "BUDGET", 7)
    tree = make_tree(("ab", "cd"), (-1, -1), "ac")
    ab = make_batch([(0, 1, a, 1) for a in range(1, 30)], 2)
    cd = make_batch([(0, 3, c, 1) for c in range(1, 20)], 2)
    assert net(step(tree, (ab, cd))) == {
        0: {(a, c, 3): 1 for a in range(1, 30) for c in range(1, 20)}
    }


@pytest.mark.parametrize("always", [True, False])
def test_the_group_without_a_key_is_there_from_the_first_step_on(always):
    tree = make_tree(("ab", "bc"), (1, -1), "", always=always)
    nothing = make_batch([], 2)
    assert net(step(tree, (nothing, nothing))) == ({0: {(0,): 1}} if always else {})
    assert net(step(tree, (nothing, nothing))) == {}


def test_a_number_of_more_than_58_bits_is_noted():
    """By hand: 2^18 · 2^20 · 2^18 = 2^56, then 2^58, then a quarter more."""
    tree = make_tree(("ab", "cd", "ef"), (-1, -1, -1), "")
    other, each = (make_batch([(0, 1 << bits, 1, 1)], 2) for bits in (18, 20))
    step(tree, (other, each, other))
    assert not tree.too_large
    step(tree, (each[:0], make_batch([(0, 3 << 20, 1, 1)], 2), each[:0]))
    assert not tree.too_large
    step(tree, (each[:0], each, each[:0]))
    assert tree.too_large


def test_values_of_which_nothing_is_known_change_nothing():
    tree = make_tree(("ab", "bc"), (1, -1), "b", summed=True)
    given_batches = [make_batch([(0, 1, 4, 1)], 2)]
    numbers, which = np.array((*NUMBER_OF, 2.5)), np.zeros(1, np.int32)
    assert tree.step(which, given_batches, CLASSES, numbers) == cells.UNKNOWN_IDS
    classes = np.array([1, 2, 2, 2, 3], np.int32)
    assert tree.step(which, given_batches, classes, numbers) == cells.NOT_WHOLE
    assert tree.sizes() == {"keys": 0, "groups": 0}
