"""walk: from a quad inside a check, through other patterns of the check, to the rows outside.

A quad at `?sensor a :Sensor` in NOT EXISTS { ?sw :monitoredBy ?sensor . ?sensor a :Sensor } binds
nothing of the rows outside. All of them would have to be tested; instead, the patterns between are
searched first, and each value of `?sw` found is a place to search the rows outside from. A row
agrees with one such place only, so it is enough to search from each place once: when it is reached
in the first of the ways to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.kernel.next_match import match_row, next_match, start, start_with, stop
from graphtide.kernel.search_plan import (
    CHECK_FIRST,
    OUTPUTS,
    PATTERNS,
    SEED_CHECK,
    SEED_PATTERN,
    SEED_PROGRAM,
    VARIABLES,
    Plan,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int
    from graphtide.kernel.rowtable import Table


@inlined
def walker(p: Plan) -> Plan:
    """The same plan with the bindings of the walk."""
    return Plan(
        p.patterns, p.programs, p.checks, p.seeds, p.dispatch, p.walks, p.probes, p.probes_from,
        p.walk_bind, p.walk_bind, p.key, p.frames, p.inner, p.walk,
    )  # fmt: skip


@inlined
def is_first_way(t: Table, p: Plan, seed: Int, row: Int) -> bool:
    """Whether the walk's current way is the one that a search from its end finds first."""
    program, check = p.seeds[seed, SEED_PROGRAM], p.seeds[seed, SEED_CHECK]
    first = p.checks[check, CHECK_FIRST]
    own = first + p.seeds[seed, SEED_PATTERN]
    match_row(t, p.patterns, own, row, p.bind)
    start_with(p.inner, p.walks[own])
    next_match(t, p, first, p.inner, -1, 0)
    same = True
    for k in range(p.programs[program, OUTPUTS], p.programs[program, VARIABLES]):
        same &= p.bind[k] == p.walk_bind[k]
        p.bind[k] = 0
    return same


@compiled
def next_start(t: Table, p: Plan, seed: Int, row: Int) -> bool:
    """Go on to the next place to search the rows outside from; it is in `p.bind`."""
    w = walker(p)
    program = p.seeds[seed, SEED_PROGRAM]
    while next_match(t, w, p.checks[p.seeds[seed, SEED_CHECK], CHECK_FIRST], w.walk, -1, 0):
        for k in range(p.programs[program, VARIABLES]):
            p.bind[k] = w.bind[k] if k < p.programs[program, OUTPUTS] else 0
        if is_first_way(t, p, seed, row):
            start(p.frames, p.programs[program, PATTERNS])
            return True
    return False


@compiled
def begin_walk(t: Table, p: Plan, seed: Int, row: Int) -> bool:
    """Set out from the quad `row` at a seed's pattern; False if that leads nowhere."""
    w = walker(p)
    check = p.seeds[seed, SEED_CHECK]
    own = p.checks[check, CHECK_FIRST] + p.seeds[seed, SEED_PATTERN]
    for k in range(p.programs[p.seeds[seed, SEED_PROGRAM], VARIABLES]):
        w.bind[k] = 0
    start_with(w.walk, p.walks[own])
    if match_row(t, p.patterns, own, row, w.bind) < 0:
        return False
    return next_start(t, p, seed, row)


@compiled
def leads(t: Table, p: Plan, check: Int, own: Int) -> bool:
    """Whether a walk from a pattern, which is bound, comes to the current match."""
    start_with(p.inner, p.walks[own])
    found = next_match(t, p, p.checks[check, CHECK_FIRST], p.inner, -1, 0)
    stop(p.bind, p.inner)
    return found
