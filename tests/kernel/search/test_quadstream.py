"""Changes that are matched without being stored: kernel, twin, and a store that has them all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, net, often

from graphtide.errors import GraphtideError
from graphtide.kernel.search.program import ExistsCheck, SearchProgram
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.kernel.search.quadstream import QuadStream
from graphtide.kernel.twin import QuadStream as Twin

pytestmark = needs_jit

position = st.sampled_from([-2, -1, 1, 2, 3])
pattern = st.tuples(position, position, position, st.sampled_from([-3, 0, 0, 2]))
quad = st.tuples(*[st.integers(1, 3)] * 3, st.sampled_from([0, 0, 2]))


def program(positions):
    """A program of one pattern, its variables numbered from 0 in order of appearance."""
    names = list(dict.fromkeys(v for v in positions if v < 0))
    own = tuple(v if v >= 0 else -1 - names.index(v) for v in positions)
    return SearchProgram((own,), len(names))


def changes(rows):
    return np.array([(tx, diff, *q) for tx, (diff, q) in enumerate(rows)], np.int32).reshape(-1, 6)


def rows_of(batches):
    return {number: net(batch) for number, batch in batches.items()}


rows = st.lists(st.tuples(st.sampled_from([1, -1]), quad), max_size=30)


@often
@given(st.lists(pattern, min_size=1, max_size=4), rows)
def test_stream_and_twin_agree(patterns, stream):
    one, other = QuadStream(), Twin()
    for each in map(program, patterns):
        assert one.install(each) == other.install(each)
    assert rows_of(one.apply(changes(stream))) == rows_of(other.apply(changes(stream)))
    assert one.counts() == other.counts()


@often
@given(st.lists(pattern, min_size=1, max_size=4), rows)
def test_without_redundant_changes_a_store_says_the_same(patterns, stream):
    there, effective = set(), []
    for diff, each in stream:
        if (each in there) != (diff > 0):
            effective.append((diff, each))
            there ^= {each}
    stored, passed = QuadStore(), QuadStream()
    for each in map(program, patterns):
        stored.install(each)
        passed.install(each)
    assert rows_of(stored.apply(changes(effective))) == rows_of(passed.apply(changes(effective)))


@pytest.mark.parametrize("kind", [QuadStream, Twin])
def test_nothing_is_kept_and_nothing_can_be_looked_up(kind):
    stream = kind()
    with pytest.raises(GraphtideError, match="needs stored quads"):
        stream.install(SearchProgram(((-1, 7, -2, 0), (-2, 7, -3, 0)), 3))
    with pytest.raises(GraphtideError, match="needs stored quads"):
        stream.install(SearchProgram(((-1, 7, -2, 0),), 2, (ExistsCheck(True, ((-2, 7, -1, 0),)),)))
    number = stream.install(program((-1, 7, -2, 0)))
    assert len(stream.evaluate(number)) == len(stream.quads()) == 0
    stream.apply(changes([(1, (1, 7, 2, 0))]))
    assert len(stream) == 0
    for look in (stream.quads, lambda: stream.evaluate(number)):
        with pytest.raises(GraphtideError, match="stores no quads"):
            look()


def test_output_grows():
    stream = QuadStream()
    numbers = [stream.install(program((-1, 7, k, 0))) for k in (1, -2)]
    found = stream.apply(changes([(1, (10 + i, 7, 1, 0)) for i in range(2000)]))
    assert [len(found[number]) for number in numbers] == [2000, 2000]
