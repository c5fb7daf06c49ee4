"""Programs that are compiled as they come and go, and all at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import often
from kernel.quads import programs

from graphtide.kernel.search import compile as compile_
from graphtide.kernel.search.compile import NO_PROGRAMS, compile_programs
from graphtide.kernel.search.program import SearchProgram


@often
@given(st.lists(programs(), min_size=1, max_size=6), st.data())
def test_what_was_compiled_before_makes_no_difference(pool, data):
    """The arrays are those of a compilation that knows of no program, but where indexes were."""
    before, installed = NO_PROGRAMS, []
    for _ in range(data.draw(st.integers(1, 6))):
        for program in data.draw(st.lists(st.sampled_from(pool), max_size=3)):
            if program in installed and data.draw(st.booleans()):
                installed.remove(program)
            else:
                installed.append(program)
        gone = data.draw(st.lists(st.sampled_from(pool), max_size=2))
        found = compile_programs(list(installed), before, gone)
        expected = compile_programs(list(installed), replace(NO_PROGRAMS, keys=before.keys), gone)
        assert (found.keys, found.links) == (expected.keys, expected.links)
        for name, one, other in zip(found.plan._fields, found.plan, expected.plan, strict=True):
            assert one.dtype == other.dtype and one.flags.c_contiguous, name
            assert np.array_equal(one, other), name
        before = found


@often
@given(st.lists(programs(), min_size=1, max_size=6))
def test_many_patterns_have_the_indexes_of_few(installed):
    few = compile_programs(installed, NO_PROGRAMS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_, "FEW_PATTERNS", 0)
        many = compile_programs(installed, NO_PROGRAMS)
    assert (few.keys, few.links, list(few.links)) == (many.keys, many.links, list(many.links))
    assert few.parts.held.tolist() == many.parts.held.tolist()


def test_a_program_that_is_added_copies_the_lines_of_others():
    """By hand: two patterns of one predicate each, whose quads are looked up by what they share."""
    first, second = (
        SearchProgram(((-1, p, -2, 0), (-2, p + 1, -3, 0)), outputs=3) for p in (7, 17)
    )
    alone = compile_programs([first], NO_PROGRAMS)
    both = compile_programs([first, second], alone)
    assert both.keys == alone.keys == ((0, 1, 3), (1, 2, 3))
    assert both.links == {7: 0b10, 8: 0b01, 17: 0b10, 18: 0b01}
    assert both.pieces[0] is alone.pieces[0]
    assert both.plan.programs.tolist() == [[0, 2, 3, 0, 0, 3], [2, 2, 3, 0, 0, 3]]
    again = compile_programs([first], both)
    assert again.pieces[0] is alone.pieces[0] and again.plan.programs.tolist() == [
        [0, 2, 3, 0, 0, 3]
    ]
