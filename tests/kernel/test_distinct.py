"""The compiled distinct against its twin."""

from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import batches, in_order, needs_jit, net, often

from graphtide.kernel.batch import make_batch
from graphtide.kernel.counts import DistinctKernel
from graphtide.kernel.twin import DistinctKernel as Twin

pytestmark = needs_jit

CASES = st.integers(0, 3).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(batches(width, most=25), max_size=5))
)


@often
@given(CASES)
def test_distinct_and_twin_agree_on_every_transaction(case):
    width, steps = case
    distinct, twin = DistinctKernel(width), Twin(width)
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
