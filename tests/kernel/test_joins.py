"""The compiled join, semijoin and antijoin against their twins."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import batches, column_pairs, in_order, needs_jit, net, often

from graphtide.kernel.batch import empty_batch, make_batch
from graphtide.kernel.joins import JoinKernel, SemiJoinKernel
from graphtide.kernel.twin import JoinKernel as JoinTwin
from graphtide.kernel.twin import SemiJoinKernel as SemiJoinTwin

pytestmark = needs_jit


@st.composite
def joins(draw):
    """Two widths, a join of them (twice: compiled and twin), and some steps for it."""
    left, right = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    keys, loose = draw(column_pairs(left, right))
    shared = keys + loose
    sources = shared + [(a, -1) for a in range(left)] + [(-1, b) for b in range(right)]
    outputs = draw(st.lists(st.sampled_from(sources), max_size=4)) if sources else []
    overlap = draw(st.lists(st.sampled_from(shared), unique=True)) if shared else []
    make = partial(
        lambda kind, **how: kind(left, right, **how),
        keys=keys,
        loose=loose,
        overlap=overlap,
        outputs=outputs,
    )
    steps = draw(st.lists(st.tuples(batches(left), batches(right)), min_size=1, max_size=5))
    return make(JoinKernel), make(JoinTwin), steps


@often
@given(joins())
def test_join_and_twin_agree_on_every_transaction(case):
    join, twin, steps = case
    for left, right in steps:
        out = join.step(left, right)
        assert net(out) == net(twin.step(left, right))
        assert in_order(out)
        assert join.sizes() == twin.sizes()


@often
@given(joins())
def test_one_batch_joins_as_single_transactions_do(case):
    whole, apart, steps = case  # the twin is as good a second join as any
    for left, right in steps:
        parts = {}
        for tx in range(4):
            parts |= net(apart.step(left[left[:, 0] == tx], right[right[:, 0] == tx]))
        assert net(whole.step(left, right)) == parts


def test_zero_width_rows_join_to_the_product_of_their_counts():
    join = JoinKernel(0, 0, keys=[], outputs=[])
    assert net(join.step(make_batch([(0, 3)], 0), make_batch([(1, 2)], 0))) == {1: {(): 6}}
    assert net(join.step(make_batch([(0, -1)], 0), empty_batch(0))) == {0: {(): -2}}


def test_loose_columns_fit_when_one_side_is_unbound():
    join = JoinKernel(1, 2, keys=[], loose=[(0, 0)], outputs=[(0, 0), (-1, 1)])
    left = make_batch([(0, 1, 0), (0, 1, 5)], 1)
    right = make_batch([(1, 1, 5, 7), (2, 1, 6, 8), (3, 1, 0, 9)], 2)
    assert net(join.step(left, right)) == {
        1: {(5, 7): 2},
        2: {(6, 8): 1},
        3: {(0, 9): 1, (5, 9): 1},
    }


def test_overlap_asks_for_a_column_bound_on_both_sides():
    pairs = [(0, 0), (1, 1)]
    join = JoinKernel(2, 2, keys=[], loose=pairs, overlap=pairs, outputs=pairs)
    left = make_batch([(0, 1, 5, 0)], 2)
    right = make_batch([(1, 1, 0, 6), (2, 1, 5, 6), (3, 1, 4, 6)], 2)
    assert net(join.step(left, right)) == {2: {(5, 6): 1}}


def test_small_outputs_after_a_large_one_hold_little():
    join = JoinKernel(1, 1, keys=[], outputs=[(0, -1), (-1, 0)])
    join.step(empty_batch(1), make_batch([(0, 1, n) for n in range(1000)], 1))
    for value in (1, 2):  # the second has room from the start
        assert len(join.step(make_batch([(1, 1, value)], 1), empty_batch(1))) == 1000
    join.step(empty_batch(1), make_batch([(2, -1, n) for n in range(3, 1000)], 1))
    small = join.step(make_batch([(3, 1, 3)], 1), empty_batch(1))
    assert len(small) == 3
    held = small if small.base is None else small.base
    assert held.nbytes <= 10 * small.nbytes


def test_a_hub_fills_the_output_many_times_over():
    join = JoinKernel(2, 1, keys=[(1, 0)], outputs=[(0, -1), (1, 0)])
    hub = make_batch([(0, 1, i, 9) for i in range(5000)], 2)
    assert len(join.step(hub, empty_batch(1))) == 0
    out = join.step(empty_batch(2), make_batch([(0, 1, 9), (1, 1, 8), (2, -1, 9)], 1))
    everyone = {(i, 9) for i in range(5000)}
    assert net(out) == {0: dict.fromkeys(everyone, 1), 2: dict.fromkeys(everyone, -1)}
    # Taken out of the middle, the front and the end of the chain.
    gone = [2500, 4999, 0, *range(1, 2000)]
    join.step(make_batch([(0, -1, i, 9) for i in gone], 2), empty_batch(1))
    out = join.step(empty_batch(2), make_batch([(0, 1, 9)], 1))
    assert net(out) == {0: dict.fromkeys({(i, 9) for i in range(2000, 4999) if i != 2500}, 1)}


@st.composite
def semijoins(draw):
    width = draw(st.integers(0, 3))
    columns = draw(st.permutations(range(width)))[: draw(st.integers(0, width))]
    how = {"columns": columns, "negated": draw(st.booleans())}
    step = st.tuples(batches(width), batches(len(columns)))
    return (
        SemiJoinKernel(width, **how),
        SemiJoinTwin(width, **how),
        draw(st.lists(step, min_size=1, max_size=5)),
    )


@often
@given(semijoins())
def test_semijoin_and_twin_agree_on_every_transaction(case):
    semijoin, twin, steps = case
    for left, right in steps:
        out = semijoin.step(left, right)
        assert net(out) == net(twin.step(left, right))
        assert in_order(out)
        assert semijoin.sizes() == twin.sizes()


@often
@given(semijoins())
def test_one_batch_semijoins_as_single_transactions_do(case):
    whole, apart, steps = case
    for left, right in steps:
        parts = {}
        for tx in range(4):
            parts |= net(apart.step(left[left[:, 0] == tx], right[right[:, 0] == tx]))
        assert net(whole.step(left, right)) == parts


@often
@given(st.integers(1, 3).flatmap(lambda w: st.tuples(st.just(w), batches(w), batches(1))))
def test_semijoin_and_antijoin_share_out_the_left_rows(case):
    width, left, right = case
    kept = SemiJoinKernel(width, columns=[0], negated=False).step(left, right)
    rest = SemiJoinKernel(width, columns=[0], negated=True).step(left, right)
    total = {}
    for part in (net(kept), net(rest)):
        for tx, rows in part.items():
            for row, count in rows.items():
                total[tx, row] = total.get((tx, row), 0) + count
    wanted = {(tx, row): n for tx, rows in net(left).items() for row, n in rows.items()}
    assert {key: n for key, n in total.items() if n} == wanted


@pytest.mark.parametrize("negated", [False, True])
def test_a_row_that_comes_or_goes_with_its_partner_is_put_out_once_or_not_at_all(negated):
    kernel = SemiJoinKernel(2, columns=[1], negated=negated)
    for diff in (1, -1):
        found = kernel.step(make_batch([(0, diff, 5, 6)], 2), make_batch([(0, diff, 6)], 1))
        assert found.tolist() == ([] if negated else [[0, diff, 5, 6]])
    assert kernel.sizes() == {"left": 0, "right": 0}


@pytest.mark.parametrize("negated", [False, True])
def test_one_key_turns_thousands_of_rows(negated):
    semijoin = SemiJoinKernel(2, columns=[1], negated=negated)
    hub = make_batch([(0, 1, i, 9) for i in range(5000)], 2)
    everyone = {(i, 9) for i in range(5000)}
    first = net(semijoin.step(hub, empty_batch(1)))
    assert first == ({0: dict.fromkeys(everyone, 1)} if negated else {})
    sign = -1 if negated else 1
    keys = make_batch([(0, 1, 9), (1, 1, 9), (2, -1, 9), (3, -1, 9)], 1)
    out = semijoin.step(empty_batch(2), keys)
    assert net(out) == {0: dict.fromkeys(everyone, sign), 3: dict.fromkeys(everyone, -sign)}
