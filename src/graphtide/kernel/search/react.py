"""`react`: the rows that one changed quad inserts or deletes.

A row that uses the quad at several patterns is found at the first of them only: patterns before the
seed may not use it again. A quad that matches inside an existence check changes the rows that pass
the checks with the quad and not without it, or the other way round. If it shares no variable with
the rows, the search walks through other patterns of the check to them (`next_match.begin_walk`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import inlined
from graphtide.kernel.rowtable import HEAD, Table, find_head, find_row, key_hash
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.ahead import load_probe
from graphtide.kernel.search.next_match import (
    begin_walk,
    choose_walk,
    exists_with,
    has_walked,
    match_row,
    next_match,
    next_start,
    start,
    stop,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.search.arrays import SearchArrays


@inlined
def exists(t: Table, p: SearchArrays, check: Int, barred: Int) -> bool:
    """Whether a check's pattern has a match under the current bindings, without row `barred`."""
    start(p.inner, p.checks[check, col.CHECK_PATTERNS])
    found = next_match(t, p, p.checks[check, col.CHECK_FIRST], p.inner, barred, col.EVERY)
    stop(p.bind, p.inner)
    return found


@inlined
def passes(t: Table, p: SearchArrays, program: Int, barred: Int, met: Int) -> bool:
    """Whether the current match passes every check of its program; `met` has a match."""
    first = p.programs[program, col.FIRST_CHECK]
    for check in range(first, first + p.programs[program, col.CHECKS]):
        found = check == met or exists(t, p, check, barred)
        if found == (p.checks[check, col.CHECK_NEGATED] == 1):
            return False
    return True


@inlined
def seen_before(
    t: Table, p: SearchArrays, program: Int, check: Int, pattern: Int, row: Int
) -> bool:
    """Whether an earlier seed of the same quad already looks at the current match."""
    first = p.programs[program, col.FIRST_CHECK]
    for earlier in range(first, check + 1):
        patterns = pattern if earlier == check else p.checks[earlier, col.CHECK_PATTERNS]
        for k in range(patterns):
            if exists_with(t, p, earlier, k, row):
                return True
    return False


@inlined
def emit(out: Ints, n: Int, p: SearchArrays, program: Int, tx: Int, diff: Int) -> Int:
    """Write the current match to the output; -1 if there is no room for it."""
    if n == len(out):
        return -1
    out[n, col.OUT_PROGRAM] = program
    out[n, col.OUT_TX] = tx
    out[n, col.OUT_DIFF] = diff
    for k in range(p.programs[program, col.OUTPUTS]):
        out[n, col.OUT_VALUES + k] = p.bind[k]
    return n + 1


@inlined
def seed_of(p: SearchArrays, seed: Int) -> tuple[Int, Int, Int]:
    """A seed's program, the index of its pattern in its group, and its check or -1."""
    return (
        p.seeds[seed, col.SEED_PROGRAM],
        p.seeds[seed, col.SEED_PATTERN],
        p.seeds[seed, col.SEED_CHECK],
    )


@inlined
def has_no_partner(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
    """Whether the first probe of a seed finds nothing: then the quad `row` is in no match there."""
    probe = p.probes_from[seed]
    if probe == p.probes_from[seed + 1] or p.probes[probe, col.PROBE_NEEDED] == 0:
        return False
    load_probe(t, p, probe, t.rows, row, 0, 0)
    index = p.probes[probe, col.PROBE_INDEX]
    if index == col.UNIQUE:
        return bool(find_row(t, p.key, 0, 0) < 0)
    return t.heads[find_head(t, index, key_hash(t, index, p.key, 0), p.key, 0), HEAD] == 0


@inlined
def begin(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
    """Start a search from the quad `row` at a seed's pattern; False if it does not match.

    From a check's pattern, only the variables of the match itself stay bound.
    """
    program, pattern, check = seed_of(p, seed)
    for k in range(p.programs[program, col.VARIABLES]):
        p.bind[k] = 0
    first = p.programs[program, col.FIRST] if check < 0 else p.checks[check, col.CHECK_FIRST]
    if match_row(t, p.patterns, first + pattern, row, p.bind) < 0:
        return False
    start(p.frames, p.programs[program, col.PATTERNS])
    if check < 0:
        p.frames[0, col.REMAINING] &= ~(np.int64(1) << np.int64(pattern))
    else:
        for k in range(p.programs[program, col.OUTPUTS], p.programs[program, col.VARIABLES]):
            p.bind[k] = 0
    return True


@inlined
def weight(t: Table, p: SearchArrays, seed: Int, row: Int) -> Int:
    """How the quad `row` affects the current match: 1 makes it, -1 prevents it, 0 neither.

    A match that uses the quad depends on it, if it passes the checks. Any other match changes only
    if a check has a match with the quad, and its checks have another outcome without.
    """
    program, pattern, check = seed_of(p, seed)
    if check >= 0 and (
        not (has_walked(p, check, pattern) or exists_with(t, p, check, pattern, row))
        or seen_before(t, p, program, check, pattern, row)
    ):
        return 0
    total = np.int64(0)
    for without in range(1 if check < 0 else 2):
        if passes(t, p, program, row if without else -1, -1 if without else check):
            total += 1 - 2 * without
    return total


@inlined
def react_seed(
    t: Table,
    p: SearchArrays,
    seed: Int,
    row: Int,
    tx: Int,
    sign: Int,
    out: Ints,
    n: Int,
    resume: bool,
) -> Int:
    """Write the matches that one seed of a changed quad changes; -1 if the output is full."""
    if not resume and not begin_seed(t, p, seed, row):
        return n
    while True:
        n = react_start(t, p, seed, row, tx, sign, out, n, resume)
        resume = False
        if n < 0 or p.walk[0, col.WALKED] == 0 or not next_start(t, p, seed, row):
            return n


@inlined
def begin_seed(t: Table, p: SearchArrays, seed: Int, row: Int) -> bool:
    """Start a search or a walk from the quad `row` at a seed's pattern; False if there is none."""
    _, pattern, check = seed_of(p, seed)
    walk: Int = np.int64(0)
    if check >= 0:
        walk = p.walks[p.checks[check, col.CHECK_FIRST] + pattern]
    if walk <= 0:
        p.walk[0, col.WALKED] = 0
        if not begin(t, p, seed, row):
            return False
        if walk == 0:
            return True
        walk = choose_walk(t, p, seed, row)
        if walk == 0:
            return True
    return begin_walk(t, p, seed, row, walk)


@inlined
def react_start(
    t: Table,
    p: SearchArrays,
    seed: Int,
    row: Int,
    tx: Int,
    sign: Int,
    out: Ints,
    n: Int,
    resume: bool,
) -> Int:
    """Write the changed matches that agree with the current bindings; -1 if the output is full."""
    program, pattern, check = seed_of(p, seed)
    first = p.programs[program, col.FIRST]
    below = pattern if check < 0 else col.EVERY
    while resume or next_match(t, p, first, p.frames, row, below):
        resume = False
        diff = weight(t, p, seed, row)
        if diff != 0:
            n = emit(out, n, p, program, tx, sign * diff)
            if n < 0:
                return -1
    return n


@inlined
def react(
    t: Table,
    p: SearchArrays,
    line: Int,
    row: Int,
    tx: Int,
    sign: Int,
    out: Ints,
    n: Int,
    counts: Longs,
) -> Int:
    """Run every seed of the quad's predicate; -1 if the output is full.

    The state of an interrupted search and, in `counts`, its seed are kept: the next call resumes.
    """
    first = p.dispatch[line, col.SEEDS_FROM]
    begin = first
    resume = counts[col.RESUME] > 0
    if resume:
        begin = counts[col.RESUME] - 1
        counts[col.RESUME] = 0
    many = p.dispatch[line, col.SEEDS] > col.FEW
    for seed in range(begin, first + p.dispatch[line, col.SEEDS]):
        if many and not resume and has_no_partner(t, p, seed, row):
            continue
        n = react_seed(t, p, seed, row, tx, sign, out, n, resume)
        if n < 0:
            counts[col.RESUME] = seed + 1
            counts[col.WRITTEN] = len(out)
            return -1
        resume = False
    return n
