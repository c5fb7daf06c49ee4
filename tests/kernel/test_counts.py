"""The compiled answer and DISTINCT against their twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import batches, in_order, needs_jit, net, often

from graphtide.kernel.batch import VALUES, make_batch
from graphtide.kernel.counts import Answer, DistinctKernel
from graphtide.kernel.twin import Answer as AnswerTwin
from graphtide.kernel.twin import DistinctKernel as DistinctTwin

pytestmark = needs_jit

CASES = st.integers(0, 3).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(batches(width, most=25), max_size=5))
)


@often
@given(CASES)
def test_net_and_twin_agree_row_for_row(case):
    width, steps = case
    kernel, twin = Answer(width), AnswerTwin(width)
    for batch in steps:
        out = kernel.step(batch)
        assert in_order(out)
        assert out.tolist() == twin.step(batch).tolist()
        assert sorted(kernel.rows().tolist()) == sorted(twin.rows().tolist())
        assert len(kernel) == len(twin)


@often
@given(st.lists(batches(3, most=25), max_size=5), st.permutations(range(3)), st.integers(0, 3))
def test_some_columns_of_a_batch_are_as_a_batch_of_these_columns(steps, order, width):
    columns = np.array([VALUES + column for column in order[:width]], np.int32)
    kernel, twin, projected = Answer(width), AnswerTwin(width), Answer(width)
    for batch in steps:
        part = np.ascontiguousarray(batch[:, [0, 1, *columns]])
        assert kernel.step(batch, columns).tolist() == projected.step(part).tolist()
        twin.step(batch, columns)
        assert sorted(kernel.rows().tolist()) == sorted(twin.rows().tolist())


@often
@given(CASES)
def test_each_row_changes_once_per_transaction_and_counts_add_up(case):
    width, steps = case
    kernel, counts = Answer(width), {}
    for batch in steps:
        out = kernel.step(batch)
        assert net(out, first=3) == net(batch)
        assert len({(line[0], *line[3:]) for line in out.tolist()}) == len(out)
        for _, diff, before, *row in out.tolist():
            assert before == counts.get(tuple(row), 0)
            counts[tuple(row)] = before + diff
        held = {tuple(row): count for *row, count in kernel.rows().tolist()}
        assert held == {row: count for row, count in counts.items() if count}


def test_what_comes_and_goes_inside_a_transaction_leaves_no_trace():
    kernel = Answer(1)
    assert kernel.step(make_batch([(0, 1, 7), (0, -1, 7)] * 100, 1)).tolist() == []
    assert len(kernel) == 0


def test_an_answer_that_was_large_gives_its_room_back():
    """By hand: of 20,000 rows, every hundredth stays; the first ten leave, ten others come."""
    kernel = Answer(2)
    rows = [(0, 1 + i % 3, i, -i) for i in range(20_000)]
    kernel.step(make_batch(rows, 2))
    large = kernel.nbytes
    kernel.step(make_batch([(1, -d, *row) for _, d, *row in rows if row[0] % 100], 2))
    assert kernel.nbytes < large / 20
    assert len(kernel) == 200
    more = [(2, -(1 + i % 3), i, -i) for i in range(0, 1000, 100)]
    more += [(2, 5, i, -i) for i in range(1, 11)]
    out = kernel.step(make_batch(more, 2))
    assert [line[2] for line in out.tolist()] == [1 + i % 3 for i in range(0, 1000, 100)] + [0] * 10
    stay = [[i, -i, 1 + i % 3] for i in range(1000, 20_000, 100)]
    assert sorted(kernel.rows().tolist()) == sorted(stay + [[i, -i, 5] for i in range(1, 11)])


@often
@given(CASES)
def test_distinct_and_twin_agree_on_every_transaction(case):
    width, steps = case
    distinct, twin = DistinctKernel(width), DistinctTwin(width)
    for batch in steps:
        out = distinct.step(batch)
        assert net(out) == net(twin.step(batch))
        assert in_order(out)
        assert distinct.sizes() == twin.sizes()


@often
@given(CASES)
def test_the_sum_of_all_output_is_a_set(case):
    width, steps = case
    distinct, seen, counts = DistinctKernel(width), {}, {}
    for batch in steps:
        for _, diff, *row in distinct.step(batch).tolist():
            seen[tuple(row)] = seen.get(tuple(row), 0) + diff
        for _, diff, *row in batch.tolist():
            counts[tuple(row)] = counts.get(tuple(row), 0) + diff
        assert {r for r, n in seen.items() if n} == {r for r, n in counts.items() if n > 0}
        assert set(seen.values()) <= {0, 1}


def test_a_count_below_zero_must_be_made_up_first():
    rows = [(0, -2, 7), (1, 1, 7), (2, 1, 7), (3, 1, 7)]
    assert DistinctKernel(1).step(make_batch(rows, 1)).tolist() == [[3, 1, 7]]
