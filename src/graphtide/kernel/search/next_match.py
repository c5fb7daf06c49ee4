"""next_match: the search itself, from what is bound outwards, one match at a time.

At each step the pattern with the fewest candidates goes next; a pattern that is known in full is
only looked up. The state of a search is an array of frames: it can stop at a match and go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.rowtable import HEAD, HIGH, LENGTH, LIVE, Table, find_head, find_row, key_mark
from graphtide.kernel.search.program import (
    BEST,
    CHECK_FIRST,
    DEPTH,
    FRESH,
    HIDDEN,
    OUTPUTS,
    PATTERNS,
    REMAINING,
    SCAN,
    SEED_CHECK,
    SEED_PATTERN,
    SEED_PROGRAM,
    UNIQUE,
    VARIABLES,
    SearchArrays,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


@inlined
def unbind(bind: Ints, mask: Int) -> None:
    """Forget the values of a set of variables."""
    variable = 0
    while mask != 0:
        if mask & 1:
            bind[variable] = 0
        mask >>= 1
        variable += 1


@inlined
def match_row(t: Table, patterns: Ints, pattern: Int, row: Int, bind: Ints) -> Int:
    """Bind a pattern's variables to a row: the variables newly bound, or -1 if they disagree."""
    fresh = np.int64(0)
    for k in range(4):
        wanted = patterns[pattern, k]
        value = t.rows[row, k]
        if wanted >= 0:
            if value != wanted:
                unbind(bind, fresh)
                return np.int64(-1)
        elif bind[-1 - wanted] == 0:
            if value == 0 or value >= HIDDEN:  # the default graph and hidden ones are no values
                unbind(bind, fresh)
                return np.int64(-1)
            bind[-1 - wanted] = value
            fresh |= np.int64(1) << (-1 - wanted)
        elif bind[-1 - wanted] != value:
            unbind(bind, fresh)
            return np.int64(-1)
    return fresh


@inlined
def load_key(p: SearchArrays, pattern: Int) -> Int:
    """Put what is known of a pattern into the key; the set of known positions."""
    known = 0
    for k in range(4):
        value = p.patterns[pattern, k]
        if value < 0:
            value = p.bind[-1 - value]
            if value == 0:
                continue
        p.key[0, k] = value
        known |= 1 << k
    return known


@inlined
def choose(
    t: Table,
    p: SearchArrays,
    first: Int,
    remaining: Int,
    frames: Longs,
    frame: Int,
) -> bool:
    """Open a frame for the remaining pattern with the fewest candidates; False if one has none."""
    fewest = np.int64(1) << np.int64(62)
    scan = False
    pattern = np.int64(-1)
    while remaining != 0:
        pattern += 1
        rest = remaining
        remaining >>= 1
        if rest & 1 == 0:
            continue
        known = load_key(p, first + pattern)
        if known == 15:
            row = find_row(t, p.key, 0, 0)
            if row < 0:
                return False
            open_frame(frames, frame, pattern, row + 1, UNIQUE)
            return True
        index = p.patterns[first + pattern, BEST + known]
        if index >= 0:
            head = find_head(t, index, key_mark(t, index, p.key, 0), p.key, 0)
            if t.heads[head, HEAD] == 0:
                return False
            length = np.int64(t.heads[head, LENGTH])
            if length < fewest:
                fewest = length
                scan = False
                open_frame(frames, frame, pattern, t.heads[head, HEAD], index)
                if length == 1:  # nothing is gained by looking for fewer
                    return True
        elif t.meta[LIVE] < fewest:
            fewest = t.meta[LIVE]
            scan = True
            open_frame(frames, frame, pattern, 0, SCAN)
    if scan:  # only now: many rows that are no longer live may lie before the first one
        frames[frame, 1] = next_live(t, 0)
    return True


@inlined
def open_frame(
    frames: Longs,
    frame: Int,
    pattern: Int,
    cursor: Int,
    index: Int,
) -> None:
    """Begin to look for a pattern at its first candidate."""
    frames[frame, 0] = pattern
    frames[frame, 1] = cursor
    frames[frame, 2] = index
    frames[frame, 3] = 0


@inlined
def next_live(t: Table, row: Int) -> Int:
    """The first live row from `row` on, plus 1; 0 at the end."""
    while row < t.meta[HIGH]:
        if t.rows[row, 4] != 0:
            return row + 1
        row += 1
    return 0


@inlined
def follow(t: Table, index: Int, row: Int) -> Int:
    """The candidate after `row`, plus 1; 0 at the end."""
    if index == UNIQUE:
        return 0
    if index == SCAN:
        return next_live(t, row + 1)
    return t.rows[row, 5 + 2 * index]


@inlined
def next_match(
    t: Table, p: SearchArrays, first: Int, frames: Longs, barred: Int, barred_below: Int
) -> bool:
    """Go on to the next way to match the remaining patterns; the match is in `p.bind`.

    Row `barred` may not be used by patterns before `barred_below`.
    """
    depth, remaining = frames[0, DEPTH], frames[0, REMAINING]
    deeper = frames[0, FRESH] == 1
    frames[0, FRESH] = 0
    if deeper and remaining == 0:
        return True
    while deeper or depth > 0:
        if deeper:
            deeper = False
            if choose(t, p, first, remaining, frames, depth + 1):
                depth += 1
                remaining &= ~(np.int64(1) << frames[depth, 0])
            continue
        unbind(p.bind, frames[depth, 3])
        frames[depth, 3] = 0
        pattern, cursor = frames[depth, 0], frames[depth, 1]
        if cursor == 0:
            remaining |= np.int64(1) << pattern
            depth -= 1
            continue
        row = cursor - 1
        frames[depth, 1] = follow(t, frames[depth, 2], row)
        if row == barred and pattern < barred_below:
            continue
        fresh = match_row(t, p.patterns, first + pattern, row, p.bind)
        if fresh < 0:
            continue
        frames[depth, 3] = fresh
        if remaining == 0:
            frames[0, DEPTH] = depth
            frames[0, REMAINING] = 0
            return True
        deeper = True
    frames[0, DEPTH] = 0
    return False


@inlined
def start(frames: Longs, patterns: Int) -> None:
    """Begin a search for all of the first `patterns` patterns of a group."""
    start_with(frames, (np.int64(1) << np.int64(patterns)) - 1)


@inlined
def start_with(frames: Longs, patterns: Int) -> None:
    """Begin a search for a set of patterns of a group."""
    frames[0, DEPTH] = 0
    frames[0, REMAINING] = patterns
    frames[0, FRESH] = 1


@inlined
def stop(bind: Ints, frames: Longs) -> None:
    """Forget what a search has bound."""
    for frame in range(1, frames[0, DEPTH] + 1):
        unbind(bind, frames[frame, 3])


# --- walk: from a quad inside a check, through other patterns of the check, to the rows outside.
#
# A quad at `?sensor a :Sensor` in NOT EXISTS { ?sw :monitoredBy ?sensor . ?sensor a :Sensor } binds
# nothing of the rows outside. All of them would have to be tested; instead, the patterns between are
# searched first, and each value of `?sw` found is a place to search the rows outside from. A row
# agrees with one such place only, so it is enough to search from each place once: when it is reached
# in the first of the ways to it.


@inlined
def walker(p: SearchArrays) -> SearchArrays:
    """The same plan with the bindings of the walk."""
    return SearchArrays(
        p.patterns, p.programs, p.checks, p.seeds, p.dispatch, p.walks, p.probes, p.probes_from,
        p.walk_bind, p.walk_bind, p.key, p.frames, p.inner, p.walk,
    )  # fmt: skip


@inlined
def is_first_way(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
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
def next_start(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
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
def begin_walk(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
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
def leads(t: Table, p: SearchArrays, check: Int, own: Int) -> bool:
    """Whether a walk from a pattern, which is bound, comes to the current match."""
    start_with(p.inner, p.walks[own])
    found = next_match(t, p, p.checks[check, CHECK_FIRST], p.inner, -1, 0)
    stop(p.bind, p.inner)
    return found
