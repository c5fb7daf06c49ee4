"""The arrays that the search loops read: all installed programs, and the names of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphtide.arrays import bundle

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1, Longs2

HIDDEN = 1 << 30
"""Graph ids from here on are internal: graph variables do not match them."""

FIRST, PATTERNS, OUTPUTS, FIRST_CHECK, CHECKS, VARIABLES = 0, 1, 2, 3, 4, 5
"""Columns of `programs`."""

CHECK_FIRST, CHECK_PATTERNS, CHECK_NEGATED = 0, 1, 2
"""Columns of `checks`."""

SEED_PROGRAM, SEED_PATTERN, SEED_CHECK = 0, 1, 2
"""Columns of `seeds`: the program, the pattern's index in its group, its check or -1."""

BEST = 4
"""Columns of `patterns`: four positions, then the best index for each set of known positions."""

KEY, SEEDS_FROM, SEEDS, LINKS = 0, 1, 2, 3
"""Columns of `dispatch`: predicate + 1, its seeds, a bit for each index that holds its quads."""

PROBE_INDEX, PROBE_KEY, PROBE_LEVEL, PROBE_NEEDED = 0, 1, 5, 6
"""Columns of `probes`: an index or `UNIQUE`, the four parts of a key, after how many others it can
be made, and whether there is no match if it finds nothing."""

AHEAD_HASH, AHEAD_ROW = 0, 1
"""Columns of `ahead`: of a lookup, the hash of its key, and the row + 1 that it finds."""

AHEAD_LINKS, AHEAD_CELLS, BLOCK = 5, 16, 32
"""Cells of `ahead` for a quad itself and its chains, for these and its probes, and how many quads
are prefetched together."""

UNIQUE, SCAN = -2, -1
"""How a frame finds its candidates when not by a chain: one known row, or every row."""

DEPTH, REMAINING, FRESH, WALKED = 0, 1, 2, 3
"""Cells of `frames[0]`; the last one has the patterns that a walk goes through. A frame below:
pattern, next candidate + 1, index, variables it bound."""

EVERY = 64
"""Higher than any pattern index: excludes a row from all patterns."""

REDUNDANT, DROPPED, INSERTED, DELETED, WRITTEN, RESUME, STOPPED, APPLIED = 0, 1, 2, 3, 4, 5, 6, 7
"""Cells of `counts`: how many changes had which effect; if the output is full, the rows written,
the seed + 1 and the change to resume from; and how many changes have been applied."""

CALL, BEFORE, COUNTS = 8, 9, 13
"""Further cells: which call of `apply` that was, what the first four cells were before it, and the
number of cells."""

FEW = 2
"""Of more seeds than these, each is probed for a partner first: most have none."""

LARGE = 1 << 17
"""Quads from which on partners are prefetched: fewer are in the processor's caches anyway."""

ALIVE = 4
"""The column of a quad that is 1 where the quad is there, and 0 in a free row."""

OUT_PROGRAM, OUT_TX, OUT_DIFF, OUT_VALUES = 0, 1, 2, 3
"""Columns of the output."""


@bundle
class SearchArrays(NamedTuple):
    """All installed programs as arrays, and scratch space for the search.

    `walks` has for each pattern the set of patterns that a walk from it joins first; if negative,
    those that it may begin with. `probes` has
    lookups for each seed, those from `probes_from` on, in the order in which they can be made. The
    parts of a key are ids, or column `c` of the changed quad written as `-1 - c`, or that of the
    row which probe `j` of the seed finds, written as `-1 - (4 * (j + 1) + c)`.
    """

    patterns: Ints2
    programs: Ints2
    checks: Ints2
    seeds: Ints2
    dispatch: Ints2
    walks: Longs1
    probes: Ints2
    probes_from: Ints1
    bind: Ints1
    walk_bind: Ints1
    key: Ints2
    frames: Longs2
    inner: Longs2
    walk: Longs2
    ahead: Longs2
