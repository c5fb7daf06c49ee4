"""The arrays of the programs that are evaluated from scratch; of one alone, without the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.kernel.search.ahead import find_dispatch
from graphtide.kernel.search.arrays import (
    FIRST,
    KEY,
    PATTERNS,
    SEED_CHECK,
    SEED_PATTERN,
    SEED_PROGRAM,
    SEEDS,
    SEEDS_FROM,
)
from graphtide.kernel.search.compile import CONSTANT, cheapest_seeds, restricted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.search.arrays import SearchArrays


def only_programs(plan: SearchArrays, programs: Sequence[int], sizes: Longs) -> SearchArrays:
    """The same plan with seeds from which all matches of some programs can be found, once each.

    `sizes` has the quads of each dispatch line.
    """
    if len(programs) == 1:
        return only_program(plan, programs[0], sizes)
    return restricted(plan, cheapest_seeds(plan, programs, sizes))


SCRATCH: Final = ("bind", "walk_bind", "key", "frames", "inner", "walk", "ahead")
"""The names of the arrays that hold the state of a search."""


def with_scratch(plan: SearchArrays) -> SearchArrays:
    """Return the plan with new arrays for the state of a search."""
    return plan._replace(**{name: np.zeros_like(getattr(plan, name)) for name in SCRATCH})


def only_program(plan: SearchArrays, program: int, sizes: Longs) -> SearchArrays:
    """The same plan with the seeds of one program only, at the pattern that fewest quads match.

    That is `restricted` with `cheapest_seeds`, but the dispatch table has one predicate: to
    evaluate each of thousands of programs, the lines of all others are not copied for each.
    """
    first, many = plan.programs[program, [FIRST, PATTERNS]].tolist()
    # Of a few steps each: as a loop of its own, it would have to be loaded first.
    find = getattr(find_dispatch, "py_func", find_dispatch)
    known = plan.patterns[first : first + many, :3].tolist()
    last = len(plan.dispatch) - 1
    lines = [last if p < 0 else find(plan.dispatch, p) for _, p, _ in known]

    def cost(pattern: int) -> float:
        s, p, o = known[pattern]
        quads = sizes.sum() if p < 0 else sizes[lines[pattern]]
        return float(quads) / CONSTANT ** ((s >= 0) + (o >= 0))

    pattern = min(range(many), key=cost)
    line, predicate = lines[pattern], known[pattern][1]
    begin, end = plan.dispatch[line, SEEDS_FROM], plan.dispatch[line, [SEEDS_FROM, SEEDS]].sum()
    seeds = plan.seeds[begin:end]
    at = (seeds[:, SEED_PROGRAM] == program) & (seeds[:, SEED_PATTERN] == pattern)
    own = begin + np.flatnonzero(at & (seeds[:, SEED_CHECK] < 0))
    dispatch: Ints = np.zeros((3, 4), np.int32)
    place = 2 if predicate < 0 else predicate * 40503 & 1  # where `find_dispatch` looks
    dispatch[place] = plan.dispatch[line]
    dispatch[place, [KEY, SEEDS_FROM, SEEDS]] = max(predicate, -1) + 1, 0, len(own)
    starts, ends = plan.probes_from[own].tolist(), plan.probes_from[own + 1].tolist()
    pieces = [plan.probes[a:b] for a, b in zip(starts, ends, strict=True)]
    return plan._replace(
        seeds=plan.seeds[own],
        dispatch=dispatch,
        probes=np.concatenate([plan.probes[:0], *pieces]),
        probes_from=np.cumsum([0, *map(len, pieces)], dtype=np.int32),
    )
