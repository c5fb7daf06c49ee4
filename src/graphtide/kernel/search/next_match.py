"""`next_match`: a backtracking search for matches, which starts from the current bindings.

At each step the pattern with the fewest candidates is next; a pattern without unbound variables is
only looked up. The state of a search is an array of frames, so it can stop at a match and resume.

A *walk* goes from a quad inside a check, through other patterns of the check, to the outer rows. A
quad at `?sensor a :Sensor` in NOT EXISTS { ?sw :monitoredBy ?sensor . ?sensor a :Sensor } binds no
variable of the outer rows, and all of them would have to be tested. Instead the patterns between
are searched first, and each value of `?sw` found is a start for a search of the outer rows. An
outer row agrees with one start only, so each start is searched once: when its first path is found.
A quad that binds some variables of the outer rows can walk to more of them. It does if it has fewer
ways to walk than rows to test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import inlined, subroutine
from graphtide.kernel.rowtable import HEAD, HIGH, LENGTH, LIVE, Table, find_head, find_row, key_hash
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.arrays import SearchArrays

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


SHORT = 2
"""Rows that are tested without a look at other ways to find them."""


@inlined
def unbind(bind: Ints, mask: Int) -> None:
    """Unbind a set of variables."""
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
            if value == 0 or value >= col.HIDDEN:  # the default graph or an internal one
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
    """Load the constants and bound variables of a pattern into the key; the known positions."""
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
            open_frame(frames, frame, pattern, row + 1, col.UNIQUE)
            return True
        index = p.patterns[first + pattern, col.BEST + known]
        if index >= 0:
            head = find_head(t, index, key_hash(t, index, p.key, 0), p.key, 0)
            if t.heads[head, HEAD] == 0:
                return False
            length = np.int64(t.heads[head, LENGTH])
            if length < fewest:
                fewest = length
                scan = False
                open_frame(frames, frame, pattern, t.heads[head, HEAD], index)
                if length == 1:  # there cannot be fewer
                    return True
        elif t.meta[LIVE] < fewest:
            fewest = t.meta[LIVE]
            scan = True
            open_frame(frames, frame, pattern, 0, col.SCAN)
    if scan:  # only now: there may be many dead rows before the first live one
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
    """Start a frame at the first candidate of a pattern."""
    frames[frame, 0] = pattern
    frames[frame, 1] = cursor
    frames[frame, 2] = index
    frames[frame, 3] = 0


@inlined
def next_live(t: Table, row: Int) -> Int:
    """The first live row from `row` on, plus 1; 0 at the end."""
    while row < t.meta[HIGH]:
        if t.rows[row, col.ALIVE] != 0:
            return row + 1
        row += 1
    return 0


@inlined
def follow(t: Table, index: Int, row: Int) -> Int:
    """The candidate after `row`, plus 1; 0 at the end."""
    if index == col.UNIQUE:
        return 0
    if index == col.SCAN:
        return next_live(t, row + 1)
    return t.rows[row, 5 + 2 * index]


@inlined
def next_match(
    t: Table, p: SearchArrays, first: Int, frames: Longs, barred: Int, barred_below: Int
) -> bool:
    """Find the next match of the remaining patterns; its values are in `p.bind`.

    Row `barred` may not be used by patterns before `barred_below`.
    """
    depth, remaining = frames[0, col.DEPTH], frames[0, col.REMAINING]
    deeper = frames[0, col.FRESH] == 1
    frames[0, col.FRESH] = 0
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
        if (row == barred and pattern < barred_below) or t.rows[row, col.ALIVE] == 0:
            continue
        fresh = match_row(t, p.patterns, first + pattern, row, p.bind)
        if fresh < 0:
            continue
        frames[depth, 3] = fresh
        if remaining == 0:
            frames[0, col.DEPTH] = depth
            frames[0, col.REMAINING] = 0
            return True
        deeper = True
    frames[0, col.DEPTH] = 0
    return False


@inlined
def start(frames: Longs, patterns: Int) -> None:
    """Start a search for the first `patterns` patterns of a group."""
    start_with(frames, (np.int64(1) << np.int64(patterns)) - 1)


@inlined
def start_with(frames: Longs, patterns: Int) -> None:
    """Start a search for a set of patterns of a group."""
    frames[0, col.DEPTH] = 0
    frames[0, col.REMAINING] = patterns
    frames[0, col.FRESH] = 1


@inlined
def stop(bind: Ints, frames: Longs) -> None:
    """Unbind what a search has bound."""
    for frame in range(1, frames[0, col.DEPTH] + 1):
        unbind(bind, frames[frame, 3])


@inlined
def walker(p: SearchArrays) -> SearchArrays:
    """The same plan with the bindings of the walk."""
    return SearchArrays(
        p.patterns, p.programs, p.checks, p.seeds, p.dispatch, p.walks, p.probes, p.probes_from,
        p.walk_bind, p.walk_bind, p.key, p.frames, p.inner, p.walk, p.ahead,
    )  # fmt: skip


@inlined
def is_first_path(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
    """Whether the walk's current path is the first one that a search from its end finds."""
    program, check = p.seeds[seed, col.SEED_PROGRAM], p.seeds[seed, col.SEED_CHECK]
    first = p.checks[check, col.CHECK_FIRST]
    own = first + p.seeds[seed, col.SEED_PATTERN]
    match_row(t, p.patterns, own, row, p.bind)
    start_with(p.inner, p.walk[0, col.WALKED])
    next_match(t, p, first, p.inner, -1, 0)
    same = True
    for k in range(p.programs[program, col.OUTPUTS], p.programs[program, col.VARIABLES]):
        same &= p.bind[k] == p.walk_bind[k]
        p.bind[k] = 0
    return same


@inlined
def is_only_path(p: SearchArrays, w: SearchArrays, seed: Int) -> bool:
    """Whether the walk has bound no more than its quad and variables of the outer rows."""
    program, check = p.seeds[seed, col.SEED_PROGRAM], p.seeds[seed, col.SEED_CHECK]
    own = p.checks[check, col.CHECK_FIRST] + p.seeds[seed, col.SEED_PATTERN]
    for k in range(p.programs[program, col.OUTPUTS], p.programs[program, col.VARIABLES]):
        if w.bind[k] != 0:
            bound = False
            for position in range(4):
                bound |= p.patterns[own, position] == -1 - k
            if not bound:
                return False
    return True


@subroutine
def next_start(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
    """Find the next start for a search of the outer rows; its values are in `p.bind`."""
    w = walker(p)
    program = p.seeds[seed, col.SEED_PROGRAM]
    while next_match(t, w, p.checks[p.seeds[seed, col.SEED_CHECK], col.CHECK_FIRST], w.walk, -1, 0):
        for k in range(p.programs[program, col.VARIABLES]):
            p.bind[k] = w.bind[k] if k < p.programs[program, col.OUTPUTS] else 0
        if is_only_path(p, w, seed) or is_first_path(t, p, seed, row):
            start(p.frames, p.programs[program, col.PATTERNS])
            return True
    return False


@inlined
def fewest(t: Table, p: SearchArrays, first: Int, patterns: Int) -> tuple[Int, Int]:
    """The one of a set of patterns with the fewest candidates, and how many these are."""
    found, least = np.int64(-1), np.int64(1) << np.int64(62)
    pattern = np.int64(0)
    while patterns >> pattern != 0:
        if patterns >> pattern & 1:
            known = load_key(p, first + pattern)
            length = np.int64(1)
            if known != 15:
                index = p.patterns[first + pattern, col.BEST + known]
                length = t.meta[LIVE]
                if index >= 0:
                    head = find_head(t, index, key_hash(t, index, p.key, 0), p.key, 0)
                    length = np.int64(t.heads[head, LENGTH])
                    if t.heads[head, HEAD] == 0:
                        length = np.int64(0)
            if length < least:
                found, least = pattern, length
        pattern += 1
    return found, least


@subroutine
def choose_walk(t: Table, p: SearchArrays, seed: Int, row: Int) -> Int:
    """The patterns that a walk from the quad `row` goes through, or 0: the rows outside come first.

    The variables of these rows that the quad has are bound.
    """
    program, check = p.seeds[seed, col.SEED_PROGRAM], p.seeds[seed, col.SEED_CHECK]
    first = p.checks[check, col.CHECK_FIRST]
    own = first + p.seeds[seed, col.SEED_PATTERN]
    every = (np.int64(1) << np.int64(p.programs[program, col.PATTERNS])) - 1
    _, outside = fewest(t, p, p.programs[program, col.FIRST], every)
    if outside <= SHORT:
        return np.int64(0)
    fresh = match_row(t, p.patterns, own, row, p.bind)
    pattern, ways = fewest(t, p, first, -p.walks[own])
    unbind(p.bind, fresh)
    return np.int64(1) << pattern if 2 * ways < outside else np.int64(0)


@subroutine
def begin_walk(t: Table, p: SearchArrays, seed: Int, row: Int, walked: Int) -> bool:
    """Start a walk from the quad `row` at a seed's pattern; False if it has no start to offer."""
    w = walker(p)
    check = p.seeds[seed, col.SEED_CHECK]
    own = p.checks[check, col.CHECK_FIRST] + p.seeds[seed, col.SEED_PATTERN]
    for k in range(p.programs[p.seeds[seed, col.SEED_PROGRAM], col.VARIABLES]):
        w.bind[k] = 0
    start_with(w.walk, walked)
    w.walk[0, col.WALKED] = walked
    if match_row(t, p.patterns, own, row, w.bind) < 0:
        return False
    return next_start(t, p, seed, row)


@inlined
def has_walked(p: SearchArrays, check: Int, pattern: Int) -> bool:
    """Whether the walk from a quad at a pattern went through all others of the check: a match."""
    every = (np.int64(1) << np.int64(p.checks[check, col.CHECK_PATTERNS])) - 1
    return p.walk[0, col.WALKED] | (np.int64(1) << np.int64(pattern)) == every


@subroutine
def exists_with(t: Table, p: SearchArrays, check: Int, pattern: Int, row: Int) -> bool:
    """Whether a check has a match under the current bindings that has `row` at a pattern."""
    first = p.checks[check, col.CHECK_FIRST]
    fresh = match_row(t, p.patterns, first + pattern, row, p.bind)
    if fresh < 0:
        return False
    start(p.inner, p.checks[check, col.CHECK_PATTERNS])
    p.inner[0, col.REMAINING] &= ~(np.int64(1) << np.int64(pattern))
    found = next_match(t, p, first, p.inner, -1, 0)
    stop(p.bind, p.inner)
    unbind(p.bind, fresh)
    return found
