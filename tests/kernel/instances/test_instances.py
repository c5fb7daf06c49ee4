"""The compiled instances of decomposed queries against their twin, which joins anew every time."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import in_order, needs_jit, net, often
from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.kernel.batch import empty_batch, make_batch
from graphtide.kernel.instances.operator import Instances
from graphtide.kernel.instances.plan import plan_instances
from graphtide.kernel.twin import Instances as Twin
from graphtide.plan.decomposition import instantiation_order

pytestmark = needs_jit

CONSTANT = NamedNode("ex:a")


def order_of(patterns):
    """The planner's order of instantiation for patterns given as tuples of variables."""
    triples = []
    for number, own in enumerate(patterns):
        named = [Var(str(v)) for v in own]
        s, o, p, g = [*named, *[CONSTANT] * (4 - len(named))]
        triples.append(TriplePattern(s, p if len(own) > 2 else NamedNode(f"ex:{number}"), o, g))
    found = instantiation_order(triples)
    return [tuple(int(v.name) for v in each.variables) for each in found]


@st.composite
def queries(draw):
    """The variables of up to six patterns, numbered from 0 without gaps."""
    width = st.sampled_from([0, 1, 1, 2, 2, 2, 3])
    own = st.builds(lambda many, names: tuple(names[:many]), width, st.permutations(range(5)))
    patterns = draw(st.lists(own, min_size=1, max_size=6))
    numbers = {v: at for at, v in enumerate(sorted({v for p in patterns for v in p}))}
    return [tuple(numbers[v] for v in p) for p in patterns]


@st.composite
def steps(draw, patterns):
    """Batches for each pattern in which rows come if they are away and go if they are there."""
    there = [set() for _ in patterns]
    found = []
    for _ in range(draw(st.integers(1, 4))):
        step = [[] for _ in patterns]
        touched = st.tuples(st.integers(0, len(patterns) - 1), st.integers(0, 26))
        for tx, touches in enumerate(draw(st.lists(st.lists(touched, max_size=6), max_size=4))):
            for at, number in touches:
                row = tuple(1 + number // 3**k % 3 for k in range(len(patterns[at])))
                step[at].append((tx, -1 if row in there[at] else 1, *row))
                there[at] ^= {row}
        pairs = zip(step, patterns, strict=True)
        found.append([make_batch(rows, len(own)) for rows, own in pairs])
    return found


cases = queries().flatmap(lambda patterns: st.tuples(st.just(patterns), steps(patterns)))


@often
@given(cases)
def test_instances_and_twin_agree_on_rows_and_on_what_is_kept(case):
    patterns, batches = case
    nodes = order_of(patterns)
    instances, twin = Instances(patterns, nodes), Twin(patterns, nodes)
    for step in batches:
        out = instances.step(*step)
        assert net(out) == net(twin.step(*step))
        assert in_order(out)
        assert instances.sizes() == twin.sizes()


@often
@given(cases)
def test_one_batch_gives_what_single_transactions_give(case):
    patterns, batches = case
    whole, apart = (Instances(patterns, order_of(patterns)) for _ in range(2))
    for step in batches:
        parts = {}
        for tx in range(4):
            parts |= net(apart.step(*(batch[batch[:, 0] == tx] for batch in step)))
        assert net(whole.step(*step)) == parts


@often
@given(cases)
def test_what_all_goes_leaves_nothing(case):
    patterns, batches = case
    instances = Instances(patterns, order_of(patterns))
    held = [set() for _ in patterns]
    for step in batches:
        instances.step(*step)
        for rows, batch in zip(held, step, strict=True):
            for _, _, *row in batch.tolist():
                rows ^= {tuple(row)}
    gone = [make_batch([(0, -1, *r) for r in sorted(rows)], len(p))
            for rows, p in zip(held, patterns, strict=True)]  # fmt: skip
    instances.step(*gone)
    assert instances.sizes()["instances"] == 0


@often
@given(queries())
def test_any_order_of_the_variables_will_do(patterns):
    many = len({v for p in patterns for v in p})
    nodes = [(v,) for v in range(many)]
    instances, twin = Instances(patterns, nodes), Twin(patterns, nodes)
    rows = [[(0, 1, *row) for row in product((1, 2), repeat=len(p))] for p in patterns]
    step = [make_batch(own, len(p)) for own, p in zip(rows, patterns, strict=True)]
    assert net(instances.step(*step)) == net(twin.step(*step))


def test_chains_are_told_apart_by_a_value_wherever_one_is_known():
    """A path with a mark on each variable: no walk goes over all instances of a group."""
    plan = plan_instances([(0,), (0, 1), (1,), (1, 2), (2,)], [(1,), (0,), (2,)])
    assert all(len(key) > 1 for key in plan.keys)


def test_a_lone_star_needs_no_chains():
    assert plan_instances([(0,), (0,)], [(0,)]).keys == ()


def test_redundant_changes_are_ignored():
    star = Instances([(0,), (0,)], [(0,)])
    one = make_batch([(0, 1, 7), (1, 1, 7), (4, -1, 7), (5, -1, 7), (6, -1, 9)], 1)
    other = make_batch([(2, 1, 7), (3, 1, 7)], 1)
    assert net(star.step(one, other)) == {2: {(7,): 1}, 4: {(7,): -1}}


@pytest.mark.parametrize("many", [7, 8, 9, 1000, 5000])
def test_output_grows_in_the_middle_of_a_product(many):
    loose = Instances([(0,), (1,), ()], [(0,), (1,)])
    values = make_batch([(0, 1, 10 + i) for i in range(many)], 1)
    three = make_batch([(0, 1, i) for i in (1, 2, 3)], 1)
    assert len(loose.step(values, three, empty_batch(0))) == 0
    rows = {(10 + i, k) for i in range(many) for k in (1, 2, 3)}
    turn = loose.step(*[empty_batch(1)] * 2, make_batch([(0, 1), (1, -1)], 0))
    assert net(turn) == {0: dict.fromkeys(rows, 1), 1: dict.fromkeys(rows, -1)}


def test_the_table_grows_in_the_middle_of_one_change():
    """A square: opposite corners get an instance for every way between, all from one triple."""
    many = 3000
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    nodes = [(0,), (2,), (1,), (3,)]
    instances = Instances(square, nodes)
    out = make_batch([(0, 1, 5, 10 + i) for i in range(many)], 2)
    nothing = empty_batch(2)
    assert len(instances.step(nothing, out, nothing, nothing)) == 0
    assert len(instances.step(make_batch([(0, 1, 1, 5)], 2), nothing, nothing, nothing)) == 0
    assert instances.sizes()["instances"] > 2 * many
    back = make_batch([(0, 1, 10 + i, 6) for i in range(many)], 2)
    found = instances.step(nothing, nothing, back, make_batch([(1, 1, 6, 1)], 2))
    assert net(found) == {1: {(1, 5, 10 + i, 6): 1 for i in range(many)}}
    gone = instances.step(make_batch([(0, -1, 1, 5)], 2), nothing, nothing, nothing)
    assert net(gone) == {0: {(1, 5, 10 + i, 6): -1 for i in range(many)}}


def test_values_that_come_and_go_forever_need_no_more_room():
    star = Instances([(0,), (0,)], [(0,)])
    for at in range(0, 20_000, 500):
        rows = [(i, d, 1 + (at + i) % 30_000) for i in range(500) for d in (1, -1)]
        star.step(make_batch(rows, 1), empty_batch(1))
    assert star.sizes()["instances"] == 0
    assert star.nbytes < 200_000
