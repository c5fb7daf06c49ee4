"""The arrays of one program alone, beside the arrays of all programs with only its seeds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import often
from kernel.quads import programs

from graphtide.kernel.search.ahead import find_dispatch
from graphtide.kernel.search.alone import only_program
from graphtide.kernel.search.arrays import SEEDS, SEEDS_FROM
from graphtide.kernel.search.compile import (
    NO_PROGRAMS,
    cheapest_seeds,
    compile_programs,
    restricted,
)


def found(plan, predicate):
    """The seeds that a quad with a predicate leads to, each with its probes."""
    line = getattr(find_dispatch, "py_func", find_dispatch)(plan.dispatch, predicate)
    first, many = plan.dispatch[line, [SEEDS_FROM, SEEDS]].tolist()
    bounds = plan.probes_from.tolist()
    return [
        (plan.seeds[at].tolist(), plan.probes[bounds[at] : bounds[at + 1]].tolist())
        for at in range(first, first + many)
    ]


@often
@given(st.lists(programs(), min_size=1, max_size=6), st.data())
def test_each_quad_leads_to_the_same_seeds_as_in_the_arrays_of_all_programs(installed, data):
    plan = compile_programs(installed, NO_PROGRAMS).plan
    sizes = np.array(
        data.draw(
            st.lists(st.integers(0, 9), min_size=len(plan.dispatch), max_size=len(plan.dispatch))
        )
    )
    for program in range(len(installed)):
        expected = restricted(plan, cheapest_seeds(plan, [program], sizes))
        alone = only_program(plan, program, sizes)
        for name, one, other in zip(plan._fields, alone, expected, strict=True):
            assert one.dtype == other.dtype and one.flags.c_contiguous, name
        named = plan.patterns[:, 1].tolist()
        predicates = {p + more for p in named if p >= 0 for more in (0, 1)} | {0, 99}
        assert all(found(alone, p) == found(expected, p) for p in predicates)
        assert any(found(alone, p) for p in predicates)
