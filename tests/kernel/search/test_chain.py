"""`QuadStore.chain` finds by an index exactly the quads that a scan finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide.kernel import JIT, QuadStore
from graphtide.kernel.search.program import SearchProgram

PROGRAM = SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0), (-3, -4, -1, -5)), outputs=5)
quads = st.tuples(
    st.integers(1, 5), st.sampled_from((7, 8, 9)), st.integers(1, 5), st.integers(0, 2)
)
questions = st.tuples(*(st.sampled_from((-1, *values)) for values in (
    (1, 2, 3), (7, 8, 9), (1, 2, 3), (0, 1),
)))  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from((1, 1, -1)), quads), max_size=200), questions)
@settings(deadline=None, max_examples=60)
def test_a_chain_has_the_quads_that_a_scan_finds(changes, question):
    store = QuadStore()
    store.install(PROGRAM)
    rows = np.array([(0, diff, *quad) for diff, quad in changes], np.int32).reshape(-1, 6)
    store.apply(rows)
    there = {tuple(quad) for quad in store.quads().tolist()}
    wanted = {q for q in there if all(w in (-1, v) for w, v in zip(question, q, strict=True))}
    found = store.chain(question)
    if found is not None:
        assert sorted(map(tuple, found.tolist())) == sorted(wanted)
    if JIT and question[1] == 7 and question[2] > 0 and question[3] == 0:
        assert found is not None, "the program needs this index itself"


@given(st.lists(st.tuples(st.sampled_from((1, -1)), quads), max_size=60))
@settings(deadline=None, max_examples=40)
def test_effective_changes_are_those_that_are_undone(changes):
    store = QuadStore()
    rows = np.array([(n, diff, *quad) for n, (diff, quad) in enumerate(changes)], np.int32)
    rows = rows.reshape(-1, 6)
    store.apply(rows)
    effective = store.effective(rows)
    present: set = set()
    expected = []
    for row in rows.tolist():
        if (tuple(row[2:]) in present) != (row[1] > 0):
            present ^= {tuple(row[2:])}
            expected.append(row)
    assert effective.tolist() == expected
    assert store.effective(rows.copy()) is None
    undone = store.undo(rows)
    assert undone[:, 1:].tolist() == [[-row[1], *row[2:]] for row in reversed(expected)]
