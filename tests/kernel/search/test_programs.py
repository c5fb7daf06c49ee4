"""The compiled quad store and its search loop against their twin."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import in_order, needs_jit, net, often
from kernel.quads import as_changes, graph_streams, nets, programs, streams
from support.sampling import quick_sample, quick_sample_of

from graphtide.kernel.search import compile as compiling
from graphtide.kernel.search.program import ExistsCheck, SearchProgram
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.kernel.twin import QuadStore as Twin

pytestmark = needs_jit

A, B, C, D = -1, -2, -3, -4
EDGE, MARK = 11, 12

SHAPES = {
    "every quad": SearchProgram(((A, B, C, 0),), 3),
    "one quad": SearchProgram(((1, EDGE, 2, 0),), 0),
    "loops": SearchProgram(((A, EDGE, A, 0),), 1),
    "paths of one predicate": SearchProgram(((A, EDGE, B, 0), (B, EDGE, C, 0)), 3),
    "paths of three edges": SearchProgram(((A, EDGE, B, 0), (B, EDGE, C, 0), (C, EDGE, D, 0)), 4),
    "the same pattern twice": SearchProgram(((A, EDGE, B, 0), (A, EDGE, B, 0)), 2),
    "there and back": SearchProgram(((A, EDGE, B, 0), (B, EDGE, A, 0)), 2),
    "forks": SearchProgram(((A, EDGE, B, 0), (A, EDGE, C, 0)), 3),
    "triangles": SearchProgram(((A, EDGE, B, 0), (B, EDGE, C, 0), (C, EDGE, A, 0)), 3),
    "four-cycles": SearchProgram(
        ((A, EDGE, B, 0), (B, EDGE, C, 0), (C, EDGE, D, 0), (D, EDGE, A, 0)), 4
    ),
    "products": SearchProgram(((A, EDGE, B, 0), (C, MARK, D, 0)), 4),
    "any predicate between two edges": SearchProgram(((A, EDGE, B, 0), (B, C, D, 0)), 4),
    "one predicate, wherever": SearchProgram(((A, B, C, 0), (C, B, A, 0)), 3),
    "a node used as predicate": SearchProgram(((A, EDGE, B, 0), (C, B, D, 0)), 4),
    "the same edge in two graphs": SearchProgram(((A, EDGE, B, C), (A, EDGE, B, D)), 4),
    "an edge of the default graph in a graph": SearchProgram(((A, EDGE, B, 0), (A, EDGE, B, C)), 3),
    "a graph that is a node": SearchProgram(((A, EDGE, B, C), (C, MARK, D, 0)), 4),
    "edges to marked nodes": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(False, ((B, MARK, C, 0),)),)
    ),
    "edges to unmarked nodes": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((B, MARK, C, 0),)),)
    ),
    "edges with no way back": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((B, EDGE, A, 0),)),)
    ),
    "last edges": SearchProgram(((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((B, EDGE, C, 0),)),)),
    "edges with no two-step way back": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((B, EDGE, C, 0), (C, EDGE, A, 0))),)
    ),
    "open paths (no shortcut)": SearchProgram(
        ((A, EDGE, B, 0), (B, EDGE, C, 0)), 3, (ExistsCheck(True, ((A, EDGE, C, 0),)),)
    ),
    "two checks on the same predicate": SearchProgram(
        ((A, EDGE, B, 0),),
        2,
        (ExistsCheck(False, ((B, MARK, C, 0),)), ExistsCheck(True, ((A, MARK, D, 0),))),
    ),
    "checks that contradict each other": SearchProgram(
        ((A, EDGE, B, 0),),
        2,
        (ExistsCheck(False, ((B, MARK, C, 0),)), ExistsCheck(True, ((B, MARK, C, 0),))),
    ),
    "a check of two patterns one quad can serve": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(False, ((B, MARK, C, 0), (D, MARK, C, 0))),)
    ),
    "a check apart from the match": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((C, MARK, C, 0),)),)
    ),
    "a check on any predicate": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((B, C, A, 0),)),)
    ),
    "a check in any graph": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((A, EDGE, B, C),)),)
    ),
    "a check without variables": SearchProgram(
        ((A, EDGE, B, 0),), 2, (ExistsCheck(True, ((1, MARK, 1, 0),)),)
    ),
}


def run(stores, changes, number):
    """Apply the same changes to both stores; they must say the same about one program."""
    kernel, twin = (store.apply(changes) for store in stores)
    assert nets(kernel, net) == nets(twin, net)
    for batch in kernel.values():
        assert in_order(batch)
    return kernel.get(number)


@pytest.mark.slow
@pytest.mark.parametrize("program", quick_sample_of(SHAPES, 9))
def test_shapes_agree_with_the_twin(program):
    @often
    @given(graph_streams(4, [EDGE, EDGE, MARK], graphs=(0, 0, 0, 1, 2), most=40))
    def agree(changes):
        stores = QuadStore(), Twin()
        number, _ = (store.install(program) for store in stores)
        run(stores, changes, number)
        assert net(stores[0].evaluate(number)) == net(stores[1].evaluate(number))

    agree()


@often
@given(st.lists(programs(), min_size=1, max_size=3), streams())
def test_random_programs_agree_with_the_twin(installed, changes):
    stores = QuadStore(), Twin()
    for program in installed:
        for store in stores:
            store.install(program)
    kernel, twin = (store.apply(changes) for store in stores)
    assert nets(kernel, net) == nets(twin, net)
    assert stores[0].counts() == stores[1].counts()
    assert len(stores[0]) == len(stores[1])
    assert sorted(stores[0].quads().tolist()) == sorted(stores[1].quads().tolist())


@often
@given(st.lists(programs(), min_size=1, max_size=3), streams(), st.data())
def test_any_cut_into_calls_gives_the_same_transactions(installed, changes, data):
    cuts = data.draw(st.sets(st.integers(0, len(changes))))
    edges = [0, *sorted(cuts), len(changes)]
    whole, apart = QuadStore(), QuadStore()
    for program in installed:
        whole.install(program)
        apart.install(program)
    pieces = {}
    for begin, end in itertools.pairwise(edges):
        for number, batch in apart.apply(changes[begin:end]).items():
            pieces.setdefault(number, []).append(batch)
    joined = {number: np.concatenate(parts) for number, parts in pieces.items()}
    assert nets(whole.apply(changes), net) == nets(joined, net)


@often
@given(st.data())
def test_programs_come_and_go_in_the_middle_of_a_stream(data):
    with patch.object(compiling, "LEAST_KEPT", data.draw(st.sampled_from([0, 5, 1000]))):
        programs_come_and_go(data)


def programs_come_and_go(data):
    stores = QuadStore(), Twin()
    answers = {}
    for _ in range(data.draw(st.integers(1, 8))):
        match data.draw(st.sampled_from(["install", "remove", "apply", "apply"])):
            case "install":
                program = data.draw(programs())
                number, same = (store.install(program) for store in stores)
                assert number == same
                answers[number] = net(stores[0].evaluate(number)).get(0, {})
            case "remove" if answers:
                number = data.draw(st.sampled_from(sorted(answers)))
                del answers[number]
                for_now = data.draw(st.booleans())
                for store in stores:
                    store.remove(number, for_now=for_now)
            case _:
                changes = data.draw(streams(most=12))
                kernel, twin = (store.apply(changes) for store in stores)
                assert nets(kernel, net) == nets(twin, net)
                for number, batch in kernel.items():
                    for _, diff, *row in batch.tolist():
                        count = answers[number].pop(tuple(row), 0) + diff
                        answers[number] |= {tuple(row): count} if count else {}
        for number, answer in answers.items():
            assert net(stores[0].evaluate(number)).get(0, {}) == answer
            assert set(answer.values()) <= {1}


@often
@given(programs(), streams())
def test_a_store_of_matched_quads_only_gives_the_same_answers(program, changes):
    stores = QuadStore(store_all=False), Twin(store_all=False), QuadStore()
    number, *_ = (store.install(program) for store in stores)
    sparse, twin, full = (store.apply(changes) for store in stores)
    assert nets(sparse, net) == nets(twin, net) == nets(full, net)
    assert stores[0].counts() == stores[1].counts()
    assert len(stores[0]) == len(stores[1])
    assert net(stores[0].evaluate(number)) == net(stores[2].evaluate(number))


@often
@given(streams())
def test_contains_says_what_the_twin_says(changes):
    stores = QuadStore(), Twin()
    for store in stores:
        store.apply(changes)
    asked = np.array(list(itertools.product((1, 2), (1, 2), (1, 3), (0, 1))), np.int32)
    assert stores[0].contains(asked).tolist() == stores[1].contains(asked).tolist()


@pytest.mark.parametrize("seed", quick_sample(range(4), 4))
def test_long_streams_end_where_a_fresh_evaluation_ends(seed):
    """Thousands of changes of a small dense graph: rows are freed, used again and relinked."""
    rng = np.random.default_rng(seed)
    shapes = ["triangles", "open paths (no shortcut)", "edges with no two-step way back"]
    store, answers = QuadStore(), {}
    for name in shapes:
        answers[store.install(SHAPES[name])] = {}
    size = 20_000
    changes = np.zeros((size, 6), np.int32)
    changes[:, 0] = np.arange(size) // 3
    changes[:, 1] = rng.choice([1, -1], size)
    changes[:, [2, 4]] = rng.integers(1, 9, (size, 2))
    changes[:, 3] = rng.choice([EDGE, MARK], size)
    for number, batch in store.apply(changes).items():
        for _, diff, *row in batch.tolist():
            answers[number][tuple(row)] = answers[number].get(tuple(row), 0) + diff
    fresh = Twin()
    fresh.apply(as_changes([(0, 1, *quad) for quad in store.quads().tolist()]))
    for name, (number, answer) in zip(shapes, answers.items(), strict=True):
        expected = net(fresh.evaluate(fresh.install(SHAPES[name])))[0]
        assert {row: n for row, n in answer.items() if n} == expected
        assert net(store.evaluate(number))[0] == expected


def test_indexes_come_and_go_with_the_programs_that_need_them():
    store = QuadStore()
    forks, marked = SHAPES["forks"], SHAPES["edges to marked nodes"]
    by_subject = store.install(forks)
    assert store.index_count == 1
    both_ways = store.install(SHAPES["paths of one predicate"])
    assert store.index_count == 2
    store.remove(by_subject)
    assert store.index_count == 2
    store.install(marked)
    store.remove(both_ways)
    assert store.index_count == 2
    store.remove(2)
    assert store.index_count == 0


def test_indexes_of_a_program_that_may_come_again_stay_for_some_time():
    """They are dropped when room is made after a quarter of the quads has changed."""
    store = QuadStore()
    store.apply(as_changes([(0, 1, i, MARK, 1, 0) for i in range(1, 8001)]))
    kept = store.install(SHAPES["paths of one predicate"])
    assert store.index_count == 2
    store.remove(kept, for_now=True)
    store.apply(as_changes([(1, 1, 1, EDGE, 2, 0), (1, 1, 2, EDGE, 3, 0)]))
    assert store.index_count == 2
    again = store.install(SHAPES["paths of one predicate"])
    assert net(store.evaluate(again)) == {0: {(1, 2, 3): 1}}
    store.remove(again, for_now=True)
    for tx in range(2, 102):
        store.apply(as_changes([(tx, 1, i, MARK, tx, 0) for i in range(1, 101)]))
    assert store.index_count == 0


def test_few_of_the_programs_that_may_come_again_keep_their_indexes():
    """The one with an index by objects is removed first, before five others."""
    store = QuadStore()
    store.apply(as_changes([(0, 1, 1, EDGE, 2, 0)]))
    paths = SHAPES["paths of one predicate"]
    forks = [SearchProgram(((A, p, B, 0), (A, p, C, 0)), 3) for p in range(20, 25)]
    for number in [store.install(program) for program in (paths, *forks)]:
        store.remove(number, for_now=True)
    assert store.index_count == 1


def test_an_index_has_room_for_the_quads_that_it_links():
    """30,000 quads of a predicate that nobody reads, two paths of ten of one that is read.

    Room for 30,000 keys would be 16 bytes times 65,536, for each of two indexes.
    """
    other = max(EDGE, MARK) + 1
    quads = [(0, 1, i, other, i + 1, 0) for i in range(1, 30_001)]
    quads += [(0, 1, i, EDGE, i + 1, 0) for i in (*range(1, 11), *range(29_991, 30_001))]
    store = QuadStore()
    store.apply(as_changes(quads))
    before = store.nbytes
    number = store.install(SHAPES["paths of one predicate"])
    assert store.index_count == 2
    assert store.nbytes - before < 16 * 65_536
    twin = Twin()
    twin.apply(as_changes(quads))
    expected = net(twin.evaluate(twin.install(SHAPES["paths of one predicate"])))
    assert net(store.evaluate(number)) == expected


@pytest.mark.parametrize("seed", quick_sample(range(4), 4))
def test_indexes_made_later_serve_as_those_made_first(seed):
    """Programs one by one over a changing graph of freed rows, in chunks, against all at once."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(sorted(SHAPES))[:8].tolist()
    late, early = QuadStore(), QuadStore()
    numbers = [early.install(SHAPES[name]) for name in names]
    for name in names:
        size = 100
        changes = np.zeros((size, 6), np.int32)
        changes[:, 0] = np.arange(size)
        changes[:, 1] = rng.choice([1, -1], size)
        changes[:, [2, 4]] = rng.integers(1, 6, (size, 2))
        changes[:, 3] = rng.choice([EDGE, MARK], size)
        mine, other = late.apply(changes), early.apply(changes)
        known = numbers[: len(late._programs)]
        assert nets(mine, net) == nets({n: other[n] for n in known if n in other}, net)
        number = late.install(SHAPES[name])
        for each in numbers[: number + 1]:
            assert net(late.evaluate(each)) == net(early.evaluate(each))
