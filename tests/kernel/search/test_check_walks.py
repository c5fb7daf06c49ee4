"""Checks of several patterns, some of which share no variable with the rows outside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, net, often
from kernel.quads import as_changes, graph_streams, nets
from support.sampling import quick_sample_of

from graphtide.kernel.search.program import ExistsCheck, SearchProgram, walks_of
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.kernel.twin import QuadStore as Twin

A, B = -1, -2
X, Y, Z = -3, -4, -5
EDGE, MARK, ROAD = 11, 12, 13


def over_edges(*patterns, negated=True):
    """Edges of the default graph, with one check."""
    return SearchProgram(((A, EDGE, B, 0),), 2, (ExistsCheck(negated, patterns),))


def test_a_walk_goes_the_shortest_way_to_a_variable_outside():
    check = [(A, EDGE, X, 0), (X, EDGE, Y, 0), (X, ROAD, Z, 0), (Z, ROAD, Y, 0), (Y, MARK, 1, 0)]
    assert walks_of(over_edges(*check)) == [0, 0, 0b1, 0b1, 0b11, 0b11]


def test_there_is_no_walk_from_what_cannot_be_left():
    assert walks_of(over_edges((A, EDGE, B, 0), (X, MARK, Y, 0), (1, MARK, 2, 0))) == [0, 0, 0, 0]


def test_checks_of_one_program_have_walks_of_their_own():
    one, other = (
        ExistsCheck(True, ((X, MARK, 1, 0), (A, ROAD, X, 0))),
        ExistsCheck(False, ((Y, MARK, B, 0),)),
    )
    assert walks_of(SearchProgram(((A, EDGE, B, 0),), 2, (one, other))) == [0, 0b10, 0, 0]


SHAPES = {
    "the mark of a neighbour": [(A, EDGE, X, 0), (X, MARK, 1, 0)],
    "many ways to one place": [(A, ROAD, X, 0), (X, ROAD, Y, 0), (Y, MARK, Y, 0)],
    "ways over the changed quad itself": [(A, EDGE, X, 0), (X, EDGE, Y, 0), (Y, EDGE, Y, 0)],
    "the same predicate all along": [(X, EDGE, Y, 0), (Y, EDGE, Z, 0), (Z, EDGE, A, 0)],
    "both ends of the edge": [(A, ROAD, X, 0), (X, MARK, Y, 0), (Y, ROAD, B, 0)],
    "a way of which only a part is walked": [(A, ROAD, X, 0), (X, ROAD, Y, 0), (X, MARK, Z, 0)],
    "a place that a variable predicate leads to": [(X, MARK, 1, 0), (X, Y, A, 0)],
    "a loop on the way": [(A, ROAD, X, 0), (X, ROAD, X, 0), (X, MARK, Y, 0), (Y, MARK, X, 0)],
    "a part that hangs on nothing": [(A, ROAD, X, 0), (X, MARK, 1, 0), (Y, MARK, Z, 0)],
    "a graph on the way": [(A, ROAD, B, X), (X, MARK, Y, 0), (Y, MARK, 1, 0)],
}


def agree(program, changes):
    """Kernel and twin say the same in every transaction, and no row comes twice or goes twice."""
    kernel, twin = QuadStore(), Twin()
    number, same = kernel.install(program), twin.install(program)
    batches = kernel.apply(changes)
    assert nets(batches, net) == nets(twin.apply(changes), net)
    assert net(kernel.evaluate(number)) == net(twin.evaluate(same))
    present = set()
    for _, diff, *row in batches.get(number, changes[:0]).tolist():
        assert diff == (-1 if tuple(row) in present else 1)
        present ^= {tuple(row)}


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("negated", [True, False], ids=["not exists", "exists"])
@pytest.mark.parametrize("check", quick_sample_of(SHAPES, 9))
def test_shapes_agree_with_the_twin(check, negated):
    @often
    @given(graph_streams(3, [EDGE, MARK, ROAD, ROAD], graphs=(0, 0, 0, 1), most=80))
    def check_stream(changes):
        agree(over_edges(*check, negated=negated), changes)

    check_stream()


@st.composite
def chains(draw, locals_from):
    """A tree of up to five patterns whose first alone has a variable of the rows outside."""
    predicate = st.sampled_from([EDGE, MARK, ROAD])
    known = [draw(st.sampled_from([A, B]))]
    patterns = []
    for at in range(draw(st.integers(2, 4))):
        new = locals_from - at
        ends = [draw(st.sampled_from(known)), draw(st.sampled_from([new, new, new, 1, *known]))]
        if draw(st.booleans()):
            ends.reverse()
        patterns.append((ends[0], draw(predicate), ends[1], 0))
        known = [*known[1:], new] if at == 0 else [*known, new]
    used = {v for p in patterns for v in p if v < 0}
    names = {v: locals_from - i for i, v in enumerate(sorted(v for v in used if v < B))}
    renamed = [tuple(names.get(v, v) for v in p) for p in patterns]
    return tuple(draw(st.permutations([*renamed[::-1]]))), len(names)


@st.composite
def programs(draw):
    """One or two edges outside, and one to three checks that reach far from them."""
    outside = draw(
        st.sampled_from(
            [
                ((A, EDGE, B, 0),),
                ((A, EDGE, B, 0), (B, ROAD, A, 0)),
                ((A, EDGE, B, 0), (A, MARK, B, 0)),
            ]
        )
    )
    checks, free = [], X
    for negated in draw(st.lists(st.booleans(), min_size=1, max_size=3)):
        patterns, many = draw(chains(free))
        free -= many
        checks.append(ExistsCheck(negated, patterns))
    return SearchProgram(outside, 2, tuple(checks))


@needs_jit
@often
@given(programs(), st.integers(0, 2**32 - 1))
def test_random_checks_agree_with_the_twin(program, seed):
    """Half of all possible quads are there at any time: there are many ways to most places."""
    rng = np.random.default_rng(seed)
    size = 100
    columns = [np.arange(size) // 2, rng.choice([1, -1], size), rng.integers(1, 4, size)]
    columns += [rng.choice([EDGE, MARK, ROAD], size), rng.integers(1, 4, size), np.zeros(size)]
    agree(program, np.column_stack(columns).astype(np.int32))


def test_a_walk_may_begin_with_what_binds_more_variables_outside():
    assert walks_of(over_edges((A, ROAD, X, 0), (X, MARK, B, 0))) == [0, -0b10, -0b01]
    assert walks_of(over_edges((A, ROAD, B, 0), (A, MARK, X, 0))) == [0, 0, -0b01]


@needs_jit
@pytest.mark.parametrize("negated", [True, False], ids=["not exists", "exists"])
@pytest.mark.parametrize(
    "check",
    [
        [(A, ROAD, X, 0), (X, MARK, B, 0)],
        [(A, ROAD, X, 0), (B, ROAD, X, 0)],
        [(A, ROAD, X, 0), (X, MARK, Y, 0), (Y, ROAD, B, 0)],
        [(A, EDGE, X, 0), (X, EDGE, B, 0), (A, MARK, Y, 0)],
    ],
)
def test_hubs_are_left_by_the_shorter_way(check, negated):
    """Half of all edges end at the first three nodes: outside or inside, there are fewer ways."""
    rng = np.random.default_rng(len(check) + negated)
    size = 300
    ends = np.where(rng.random((2, size)) < 0.5, rng.integers(1, 4, (2, size)), 0)
    ends = np.where(ends == 0, rng.integers(4, 16, (2, size)), ends)
    columns = [np.arange(size) // 8, rng.choice([1, 1, 1, -1], size), ends[0]]
    columns += [rng.choice([EDGE, MARK, ROAD], size), ends[1], np.zeros(size)]
    agree(over_edges(*check, negated=negated), np.column_stack(columns).astype(np.int32))


@needs_jit
@pytest.mark.parametrize("many", [255, 256, 257, 5000])
def test_a_walk_goes_on_where_the_output_was_full(many):
    """A hub with many edges, reached in two ways from the mark that turns all of them."""
    store = QuadStore()
    kept = store.install(over_edges((A, ROAD, X, 0), (X, ROAD, Y, 0), (Y, MARK, 1, 0)))
    hub, other, end = 500, 501, 502
    spokes = [(0, 1, at, EDGE, 1000 + i, 0) for at in (hub, other) for i in range(many)]
    roads = [(0, 1, hub, ROAD, way, 0) for way in (601, 602)] + [(0, 1, other, ROAD, 601, 0)]
    roads += [(0, 1, way, ROAD, end, 0) for way in (601, 602)]
    store.apply(as_changes(spokes + roads))
    out = store.apply(as_changes([(0, 1, end, MARK, 1, 0), (1, -1, end, MARK, 1, 0)]))
    rows = [(at, 1000 + i) for at in (hub, other) for i in range(many)]
    assert len(out[kept]) == 2 * len(rows)
    assert net(out[kept]) == {0: dict.fromkeys(rows, -1), 1: dict.fromkeys(rows, 1)}
