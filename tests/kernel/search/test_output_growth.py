"""One change with more results than the output has room for: the search goes on where it was."""

import numpy as np
import pytest
from kernel.batches import needs_jit, net
from kernel.quads import as_changes

from graphtide.kernel.search.program import ExistsCheck, SearchProgram
from graphtide.kernel.search.quadstore import CHUNK, QuadStore

pytestmark = needs_jit

A, B, C, D = -1, -2, -3, -4
INTO, OUT, STOP = 11, 12, 13
HUB = 500
SIZES = [255, 256, 257, 511, 512, 513, 5000]

PATHS = SearchProgram(((A, INTO, B, 0), (B, OUT, C, 0)), 3)
OPEN_PATHS = SearchProgram(PATHS.patterns, 3, (ExistsCheck(True, ((B, STOP, D, 0),)),))
STOPPED_PATHS = SearchProgram(PATHS.patterns, 3, (ExistsCheck(False, ((B, STOP, D, 0),)),))


def spokes(many):
    return [(0, 1, HUB, OUT, 1000 + i, 0) for i in range(many)]


def ends(many, diff=1):
    return {(1, HUB, 1000 + i): diff for i in range(many)}


@pytest.mark.parametrize("many", SIZES)
def test_a_pattern_seed_finds_every_spoke_of_a_hub(many):
    store = QuadStore()
    number = store.install(PATHS)
    store.apply(as_changes(spokes(many)))
    came = store.apply(as_changes([(0, 1, 1, INTO, HUB, 0)]))
    assert net(came[number]) == {0: ends(many)}
    went = store.apply(as_changes([(0, -1, 1, INTO, HUB, 0)]))
    assert net(went[number]) == {0: ends(many, -1)}


@pytest.mark.parametrize("many", SIZES)
def test_a_check_seed_turns_every_spoke_of_a_hub(many):
    store = QuadStore()
    kept, stopped = store.install(OPEN_PATHS), store.install(STOPPED_PATHS)
    store.apply(as_changes([*spokes(many), (0, 1, 1, INTO, HUB, 0)]))
    # The second stop changes nothing more; the last one gone turns all again.
    stops = [(0, 1, HUB, STOP, 1, 0), (1, 1, HUB, STOP, 2, 0)]
    undo = [(2, -1, HUB, STOP, 1, 0), (3, -1, HUB, STOP, 2, 0)]
    out = store.apply(as_changes(stops + undo))
    assert net(out[kept]) == {0: ends(many, -1), 3: ends(many)}
    assert net(out[stopped]) == {0: ends(many), 3: ends(many, -1)}


def test_growth_in_the_middle_of_a_batch_keeps_all_transactions_exact():
    """Changes before and after the large ones, other programs beside them, two kinds of seed."""
    store = QuadStore()
    numbers = [store.install(p) for p in (PATHS, OPEN_PATHS, STOPPED_PATHS, PATHS)]
    many = 3000
    changes = [
        *spokes(many),
        (1, 1, 1, INTO, HUB, 0),
        (2, 1, HUB, STOP, 9, 0),
        (3, 1, 2, INTO, HUB, 0),
        (4, 1, HUB, OUT, 7, 0),
        (5, -1, 1, INTO, HUB, 0),
        (6, -1, HUB, STOP, 9, 0),
        (7, -1, 2, INTO, HUB, 0),
    ]
    out = store.apply(as_changes(changes))

    def rows(start, diff, last=True):
        ids = [1000 + i for i in range(many)] + [7] * last
        return {(start, HUB, i): diff for i in ids}

    in_4 = {(1, HUB, 7): 1, (2, HUB, 7): 1}
    plain = {1: rows(1, 1, last=False), 3: rows(2, 1, last=False), 4: in_4, 5: rows(1, -1), 7: rows(2, -1)}  # fmt: skip # noqa: E501
    kept = {1: rows(1, 1, last=False), 2: rows(1, -1, last=False), 6: rows(2, 1), 7: rows(2, -1)}
    stopped = {2: rows(1, 1, last=False), 3: rows(2, 1, last=False), 4: in_4, 5: rows(1, -1), 6: rows(2, -1)}  # fmt: skip # noqa: E501
    assert [net(out[number]) for number in numbers] == [plain, kept, stopped, plain]
    assert store.counts() == {"inserted": many + 4, "deleted": 3, "redundant": 0, "dropped": 0}


def test_evaluation_from_scratch_grows_its_output_too():
    store = QuadStore()
    starts = [(0, 1, i, INTO, HUB, 0) for i in range(1, 41)]
    store.apply(as_changes([*spokes(100), *starts]))
    out = store.evaluate(store.install(PATHS))
    assert net(out) == {0: {(a, HUB, 1000 + i): 1 for a in range(1, 41) for i in range(100)}}
    assert len(out) == 4000


def test_a_batch_of_many_chunks_is_one_stream():
    store = QuadStore()
    number = store.install(PATHS)
    size = 2 * CHUNK + 5
    changes = np.zeros((size, 6), np.int32)
    changes[:, 0] = np.arange(size)
    changes[:, 1] = 1
    changes[:, 2] = np.arange(size) // 2 + 1  # node n leads into node -n, which leads out to 9
    changes[::2, 3], changes[1::2, 3] = INTO, OUT
    changes[::2, 4] = changes[::2, 2] + 100_000
    changes[1::2, 2] += 100_000
    changes[1::2, 4] = 9
    out = store.apply(changes)[number]
    assert out[:, 0].tolist() == list(range(1, size, 2))
    assert out[:, 2].tolist() == list(range(1, size // 2 + 1))
    assert len(store) == size
