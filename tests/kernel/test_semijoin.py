"""The compiled semijoin and antijoin against their twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import batches, in_order, needs_jit, net, often

from graphtide.kernel.batch import empty_batch, make_batch
from graphtide.kernel.joins import SemiJoinKernel
from graphtide.kernel.twin import SemiJoinKernel as Twin

pytestmark = needs_jit


@st.composite
def semijoins(draw):
    width = draw(st.integers(0, 3))
    columns = draw(st.permutations(range(width)))[: draw(st.integers(0, width))]
    how = {"columns": columns, "negated": draw(st.booleans())}
    step = st.tuples(batches(width), batches(len(columns)))
    return (
        SemiJoinKernel(width, **how),
        Twin(width, **how),
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
def test_one_batch_gives_what_single_transactions_give(case):
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
