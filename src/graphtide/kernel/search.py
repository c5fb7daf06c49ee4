"""The search strategy: rows of a pattern through one changed quad, found from the base indexes.

For a quad that comes or goes and each pattern it can take the place of, the other patterns are
joined outwards from it, at each step the one with the fewest candidates. Nothing but the quads
themselves is stored.

A row that uses the quad at several patterns is found at the first of them only: patterns before the
seed may not use it again. A quad that matches inside an existence check moves the rows whose check
turns: those that pass with the quad and not without it, or the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.jit import JIT, compiled, inlined
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LENGTH,
    LIVE,
    OFFSET,
    SIZE,
    Table,
    add_row,
    find_head,
    find_row,
    find_slot,
    key_mark,
    link,
    remove_row,
    row_mark,
    unlink,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs

if JIT:
    from graphtide.prefetch import prefetch

FIRST, PATTERNS, OUTPUTS, FIRST_CHECK, CHECKS, VARIABLES = 0, 1, 2, 3, 4, 5
"""Columns of `programs`."""

CHECK_FIRST, CHECK_PATTERNS, CHECK_NEGATED = 0, 1, 2
"""Columns of `checks`."""

SEED_PROGRAM, SEED_PATTERN, SEED_CHECK = 0, 1, 2
"""Columns of `seeds`: the program, the pattern's place in its group, its check or -1."""

BEST = 4
"""Columns of `patterns`: four positions, then the best index for each set of known positions."""

KEY, SEEDS_FROM, SEEDS, LINKS = 0, 1, 2, 3
"""Columns of `dispatch`: predicate + 1, its seeds, a bit for each index that holds its quads."""

UNIQUE, SCAN = -2, -1
"""How a frame finds its candidates when not by a chain: one known row, or every row."""

DEPTH, REMAINING, FRESH = 0, 1, 2
"""Cells of `frames[0]`. A frame below: pattern, next candidate + 1, index, variables it bound."""

EVERY = 64
"""Higher than any pattern number: bars a row from all patterns."""

REDUNDANT, DROPPED, INSERTED, DELETED, WRITTEN, RESUME, STOPPED = 0, 1, 2, 3, 4, 5, 6
"""Cells of `counts`; the last three, if output ran out: rows written, a seed + 1 to go on from, and
the change to go on with."""

AHEAD, FEW = 6, 4
"""How many changes, and seeds of each, are asked for ahead of their turn."""

OUT_PROGRAM, OUT_TX, OUT_DIFF, OUT_VALUES = 0, 1, 2, 3
"""Columns of the output."""


class Plan(NamedTuple):
    """All installed programs as arrays, and scratch space for the search."""

    patterns: Ints
    programs: Ints
    checks: Ints
    seeds: Ints
    dispatch: Ints
    bind: Ints
    key: Ints
    frames: Longs
    inner: Longs


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
            if value == 0:  # the default graph is no value for a graph variable
                unbind(bind, fresh)
                return np.int64(-1)
            bind[-1 - wanted] = value
            fresh |= np.int64(1) << (-1 - wanted)
        elif bind[-1 - wanted] != value:
            unbind(bind, fresh)
            return np.int64(-1)
    return fresh


@inlined
def load_key(p: Plan, pattern: Int) -> Int:
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
    p: Plan,
    first: Int,
    remaining: Int,
    frames: Longs,
    frame: Int,
) -> bool:
    """Open a frame for the remaining pattern with the fewest candidates; False if one has none."""
    fewest = np.int64(1) << np.int64(62)
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
                open_frame(frames, frame, pattern, t.heads[head, HEAD], index)
        elif t.meta[LIVE] < fewest:
            fewest = t.meta[LIVE]
            open_frame(frames, frame, pattern, next_live(t, 0), SCAN)
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
    t: Table, p: Plan, first: Int, frames: Longs, barred: Int, barred_below: Int
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
    frames[0, DEPTH] = 0
    frames[0, REMAINING] = (np.int64(1) << np.int64(patterns)) - 1
    frames[0, FRESH] = 1


@inlined
def exists(t: Table, p: Plan, check: Int, barred: Int) -> bool:
    """Whether a check's pattern has a match under the current bindings, without row `barred`."""
    start(p.inner, p.checks[check, CHECK_PATTERNS])
    found = next_match(t, p, p.checks[check, CHECK_FIRST], p.inner, barred, EVERY)
    for frame in range(1, p.inner[0, DEPTH] + 1):
        unbind(p.bind, p.inner[frame, 3])
    return found


@inlined
def passes(t: Table, p: Plan, program: Int, barred: Int) -> bool:
    """Whether the current match passes every check of its program."""
    first = p.programs[program, FIRST_CHECK]
    for check in range(first, first + p.programs[program, CHECKS]):
        if exists(t, p, check, barred) == (p.checks[check, CHECK_NEGATED] == 1):
            return False
    return True


@inlined
def seen_before(t: Table, p: Plan, program: Int, check: Int, pattern: Int, row: Int) -> bool:
    """Whether an earlier seed of the same quad already meets the current match."""
    first = p.programs[program, FIRST_CHECK]
    for earlier in range(first, check + 1):
        patterns = pattern if earlier == check else p.checks[earlier, CHECK_PATTERNS]
        for k in range(patterns):
            fresh = match_row(t, p.patterns, p.checks[earlier, CHECK_FIRST] + k, row, p.bind)
            if fresh >= 0:
                unbind(p.bind, fresh)
                return True
    return False


@inlined
def emit(out: Ints, n: Int, p: Plan, program: Int, tx: Int, diff: Int) -> Int:
    """Write the current match to the output; -1 if there is no room for it."""
    if n == len(out):
        return -1
    out[n, OUT_PROGRAM] = program
    out[n, OUT_TX] = tx
    out[n, OUT_DIFF] = diff
    for k in range(p.programs[program, OUTPUTS]):
        out[n, OUT_VALUES + k] = p.bind[k]
    return n + 1


@inlined
def seed_of(p: Plan, seed: Int) -> tuple[Int, Int, Int]:
    """A seed's program, the place of its pattern in its group, and its check or -1."""
    return p.seeds[seed, SEED_PROGRAM], p.seeds[seed, SEED_PATTERN], p.seeds[seed, SEED_CHECK]


@inlined
def begin(t: Table, p: Plan, seed: Int, row: Int) -> bool:
    """Set out from the quad `row` at a seed's pattern; False if it does not match.

    From a check's pattern, only the variables of the match itself stay bound.
    """
    program, pattern, check = seed_of(p, seed)
    for k in range(p.programs[program, VARIABLES]):
        p.bind[k] = 0
    first = p.programs[program, FIRST] if check < 0 else p.checks[check, CHECK_FIRST]
    if match_row(t, p.patterns, first + pattern, row, p.bind) < 0:
        return False
    start(p.frames, p.programs[program, PATTERNS])
    if check < 0:
        p.frames[0, REMAINING] &= ~(np.int64(1) << np.int64(pattern))
    else:
        for k in range(p.programs[program, OUTPUTS], p.programs[program, VARIABLES]):
            p.bind[k] = 0
    return True


@inlined
def weight(t: Table, p: Plan, seed: Int, row: Int) -> Int:
    """How the quad `row` counts for the current match: 1 makes it, -1 prevents it, 0 neither.

    A match through the quad itself stands or falls with it if it passes the checks. Any other is
    moved only if its checks say something else without the quad.
    """
    program, pattern, check = seed_of(p, seed)
    if check >= 0 and seen_before(t, p, program, check, pattern, row):
        return 0
    total = np.int64(0)
    for without in range(1 if check < 0 else 2):
        if passes(t, p, program, row if without else -1):
            total += 1 - 2 * without
    return total


@inlined
def react_seed(
    t: Table, p: Plan, seed: Int, row: Int, tx: Int, sign: Int, out: Ints, n: Int, resume: bool
) -> Int:
    """The matches that one seed of a changed quad moves; -1 if the output is full."""
    program, check = p.seeds[seed, SEED_PROGRAM], p.seeds[seed, SEED_CHECK]
    first = p.programs[program, FIRST]
    below = p.seeds[seed, SEED_PATTERN] if check < 0 else EVERY
    if not resume and not begin(t, p, seed, row):
        return n
    while resume or next_match(t, p, first, p.frames, row, below):
        resume = False
        diff = weight(t, p, seed, row)
        if diff != 0:
            n = emit(out, n, p, program, tx, sign * diff)
            if n < 0:
                return -1
    return n


@inlined
def find_dispatch(dispatch: Ints, predicate: Int) -> Int:
    """The dispatch line of a predicate; the last line is for predicates no pattern names."""
    mask = len(dispatch) - 2
    slot = (predicate * 40503) & mask
    while dispatch[slot, KEY] != 0:
        if dispatch[slot, KEY] == predicate + 1:
            return slot
        slot = (slot + 1) & mask
    return len(dispatch) - 1


@inlined
def react(
    t: Table, p: Plan, line: Int, row: Int, tx: Int, sign: Int, out: Ints, n: Int, counts: Longs
) -> Int:
    """Run every seed that the quad's predicate calls for; -1 if the output is full.

    A full output leaves the search where it is: the number of its seed is kept in `counts`, and the
    next call goes on from there.
    """
    first = p.dispatch[line, SEEDS_FROM]
    begin = first
    resume = counts[RESUME] > 0
    if resume:
        begin = counts[RESUME] - 1
        counts[RESUME] = 0
    for seed in range(begin, first + p.dispatch[line, SEEDS]):
        n = react_seed(t, p, seed, row, tx, sign, out, n, resume)
        if n < 0:
            counts[RESUME] = seed + 1
            counts[WRITTEN] = len(out)
            return -1
        resume = False
    return n


@inlined
def link_all(t: Table, links: Int, row: Int) -> None:
    """Put a row into the chains of a set of indexes."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            link(t, index, row)


@inlined
def ask_for_head(t: Table, index: Int, key: Ints) -> None:
    """Have the beginning of a chain fetched."""
    home = key_mark(t, index, key, 0) & (t.indexes[index, SIZE] - 1)
    prefetch(t.heads, (t.indexes[index, OFFSET] + home) * 4)


@inlined
def ask_for_partners(t: Table, p: Plan, seed: Int, changes: Ints, at: Int) -> None:
    """Have the chains fetched that a change will be joined with first, if it matches a seed."""
    program, pattern, check = seed_of(p, seed)
    own = pattern + (p.programs[program, FIRST] if check < 0 else p.checks[check, CHECK_FIRST])
    for k in range(p.programs[program, VARIABLES]):
        p.bind[k] = 0
    for k in range(4):
        if p.patterns[own, k] < 0:
            p.bind[-1 - p.patterns[own, k]] = changes[at, 2 + k]
    first = p.programs[program, FIRST]
    for other in range(first, first + p.programs[program, PATTERNS]):
        index = p.patterns[other, BEST + load_key(p, other)]
        if index >= 0 and other != own:
            ask_for_head(t, index, p.key)


@inlined
def ask_ahead(t: Table, p: Plan, changes: Ints, at: Int) -> None:
    """Have fetched what a change that comes soon will read first."""
    mark = row_mark(4, changes, at, 2)
    prefetch(t.slots, (mark & (t.slots.shape[0] - 1)) * 2)
    line = find_dispatch(p.dispatch, changes[at, 3])
    for k in range(4):
        p.key[0, k] = changes[at, 2 + k]
    for index in range(t.indexes.shape[0]):
        if p.dispatch[line, LINKS] >> index & 1:
            ask_for_head(t, index, p.key)
    first = p.dispatch[line, SEEDS_FROM]
    for seed in range(first, first + min(p.dispatch[line, SEEDS], FEW)):
        ask_for_partners(t, p, seed, changes, at)


@compiled
def apply_changes(
    rows: Ints,
    slots: Ints,
    heads: Ints,
    indexes: Ints,
    meta: Longs,
    patterns: Ints,
    programs: Ints,
    checks: Ints,
    seeds: Ints,
    dispatch: Ints,
    bind: Ints,
    key: Ints,
    frames: Longs,
    inner: Longs,
    counts: Longs,
    store_all: bool,
    changes: Ints,
    begin: Int,
    end: Int,
    out: Ints,
    n: Int,
) -> Int:
    """Apply changes `[tx, diff, s, p, o, g]` one by one; append the rows that come or go.

    Returns the number of rows written, or -1 if the output has no room for all rows of a change;
    `counts` then says which, and how many rows were written.
    """
    t = Table(rows, slots, heads, indexes, meta, 4)
    p = Plan(patterns, programs, checks, seeds, dispatch, bind, key, frames, inner)
    for i in range(begin, end):
        # A search to be resumed still is in the scratch space that asking ahead uses.
        if i + AHEAD < end and counts[RESUME] == 0:
            ask_ahead(t, p, changes, i + AHEAD)
        mark = row_mark(4, changes, i, 2)
        slot = find_slot(t, mark, changes, i, 2)
        row = t.slots[slot, HEAD] - 1
        insert = changes[i, 1] > 0
        line = find_dispatch(dispatch, changes[i, 3])
        if counts[RESUME] == 0:
            if (row >= 0) == insert:
                counts[REDUNDANT] += 1
                continue
            if insert:
                if not store_all and dispatch[line, SEEDS] == 0:
                    counts[DROPPED] += 1
                    continue
                row = add_row(t, slot, mark, changes, i, 2)
                t.rows[row, 4] = 1
                link_all(t, dispatch[line, LINKS], row)
        n = react(t, p, line, row, changes[i, 0], 1 if insert else -1, out, n, counts)
        if n < 0:
            counts[STOPPED] = i
            return -1
        if insert:
            counts[INSERTED] += 1
        else:
            counts[DELETED] += 1
            for index in range(t.indexes.shape[0]):
                if dispatch[line, LINKS] >> index & 1:
                    unlink(t, index, row)
            remove_row(t, row)
    return n


@compiled
def evaluate_seed(
    t: Table, p: Plan, seed: Int, counts: Longs, begin_at: Int, out: Ints, n: Int
) -> Int:
    """Every match of a seed's program, from scratch: those through each quad at its pattern.

    Returns what `apply_changes` does, with a quad's row in the place of a change.
    """
    program = p.seeds[seed, SEED_PROGRAM]
    first = p.programs[program, FIRST]
    for row in range(begin_at, t.meta[HIGH]):
        resume = counts[RESUME] > 0
        counts[RESUME] = 0
        if not resume and (t.rows[row, 4] == 0 or not begin(t, p, seed, row)):
            continue
        while resume or next_match(t, p, first, p.frames, -1, 0):
            resume = False
            if passes(t, p, program, -1):
                n = emit(out, n, p, program, 0, 1)
                if n < 0:
                    counts[RESUME] = 1
                    counts[WRITTEN] = len(out)
                    counts[STOPPED] = row
                    return -1
    return n


@compiled
def relink(t: Table, dispatch: Ints) -> None:
    """Put every live quad into the chains that its predicate calls for."""
    for row in range(t.meta[HIGH]):
        if t.rows[row, 4] != 0:
            link_all(t, dispatch[find_dispatch(dispatch, t.rows[row, 1]), LINKS], row)


@compiled
def find_rows(t: Table, quads: Ints, found: Ints) -> None:
    """The row of each quad, or -1."""
    for i in range(len(quads)):
        found[i] = find_row(t, quads, i, 0)
