"""`SearchProgram`: a basic graph pattern with existence checks, and its compilation to arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.kernel.search.arrays import (
    AHEAD_CELLS,
    BEST,
    BLOCK,
    KEY,
    PROBE_KEY,
    SCAN,
    SEED_CHECK,
    SEED_PATTERN,
    SEED_PROGRAM,
    SEEDS,
    SEEDS_FROM,
    UNIQUE,
    SearchArrays,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints, Longs

    Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

Pattern = tuple[int, int, int, int]
"""Subject, predicate, object, graph: an id (>= 0), or variable `v` written as `-1 - v`."""

MAX_PATTERNS = 60
"""Patterns, and variables, of one program at most: sets of them are bits of an int64."""


MOST_PROBES = 8
"""Lookups of a seed that are made ahead."""

CONSTANT = 8
"""How much fewer quads match a pattern with one more constant: a guess."""


@dataclass(frozen=True, slots=True)
class ExistsCheck:
    """EXISTS or, negated, NOT EXISTS over a basic graph pattern."""

    negated: bool
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class SearchProgram:
    """Patterns to match together, and checks on each match.

    Variables 0 … `outputs` - 1 are those of `patterns`: the columns of a match. Higher numbers are
    local to one check.
    """

    patterns: tuple[Pattern, ...]
    outputs: int
    checks: tuple[ExistsCheck, ...] = ()

    def __post_init__(self) -> None:
        total = len(self.patterns) + sum(len(check.patterns) for check in self.checks)
        if not self.patterns or total > MAX_PATTERNS or self.variables() > MAX_PATTERNS:
            msg = f"a program has 1 to {MAX_PATTERNS} patterns and at most as many variables"
            raise ValueError(msg)

    def all_patterns(self) -> tuple[Pattern, ...]:
        """The patterns, then those of each check."""
        return self.patterns + tuple(p for check in self.checks for p in check.patterns)

    def variables(self) -> int:
        """How many variables there are, local ones included."""
        return max((-v for p in self.all_patterns() for v in p if v < 0), default=0)


def needed_indexes(program: SearchProgram) -> dict[Pattern, set[tuple[int, ...]]]:
    """The sets of columns by which each pattern may have to be looked up.

    A pattern is reached with its constants and at least one variable known. Only a check that
    shares no variable with the patterns is looked up by its constants alone.

    >>> needed_indexes(SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0)), 3))
    {(-1, 7, -2, 0): {(1, 2, 3)}, (-2, 8, -3, 0): {(0, 1, 3)}}
    """
    patterns = program.all_patterns()
    uses: dict[int, int] = {}
    for pattern in patterns:
        for value in {v for v in pattern if v < 0}:
            uses[value] = uses.get(value, 0) + 1
    wanted: dict[Pattern, set[tuple[int, ...]]] = {}
    for pattern in patterns:
        known = {k for k in range(4) if pattern[k] >= 0}
        shared = {v for v in pattern if v < 0 and uses[v] > 1}
        columns = [{k for k in range(4) if pattern[k] == v} for v in shared]
        if not shared and pattern not in program.patterns and known:
            columns.append(set())
        into = wanted.setdefault(pattern, set())
        into.update(tuple(sorted(known | more)) for more in columns if len(known | more) < 4)
    return wanted


def reject_joins(program: SearchProgram) -> None:
    """Raise unless a program is one pattern: joins need stored quads.

    >>> reject_joins(SearchProgram(((-1, 7, -2, 0),), 2))
    """
    if len(program.patterns) > 1 or program.checks:
        raise GraphtideError(
            "this query needs stored quads, and this graph stores none",
            hint='use strategy="decomposed", or LiveGraph(store="all")',
        )


def not_restorable() -> GraphtideError:
    """The error of a store without quads, when a transaction was interrupted."""
    return GraphtideError(
        "a transaction was interrupted, and this graph stores no quads to restore its state from",
        hint='build the graph again; LiveGraph(store="all") recovers by itself',
    )


def reject_lookups(passed: int) -> None:
    """Raise if quads were seen but not stored.

    >>> reject_lookups(0)
    """
    if passed:
        raise GraphtideError(
            "this graph stores no quads, so they cannot be looked up",
            hint='register queries before the data comes, or use LiveGraph(store="all")',
        )


def walks_of(program: SearchProgram) -> list[int]:
    """For each pattern, the set of patterns of its check on the walk to the outer rows; 0: none.

    A pattern of a check that shares no variable with the outer rows is connected to them through
    other patterns of the check (see `next_match`).

    >>> from graphtide.kernel.search.program import ExistsCheck, SearchProgram
    >>> switch, sensor = -1, -2
    >>> check = ExistsCheck(True, ((switch, 7, sensor, 0), (sensor, 1, 3, 0)))
    >>> walks_of(SearchProgram(((switch, 1, 2, 0),), 1, (check,)))
    [0, 0, 1]
    """
    walks = [0] * len(program.patterns)
    for check in program.checks:
        walks += [_walk(check.patterns, at, program.outputs) for at in range(len(check.patterns))]
    return walks


def _walk(patterns: Sequence[Pattern], start: int, outputs: int) -> int:
    """The patterns of a shortest path from one to another with a variable of the outer rows."""
    variables = [{v for v in pattern if v < 0} for pattern in patterns]
    ways = {start: 0}
    queue = [start]
    for at in queue:
        if any(v >= -outputs for v in variables[at]):
            return ways[at]
        near = [i for i in range(len(patterns)) if variables[i] & variables[at] and i not in ways]
        ways.update((i, ways[at] | 1 << i) for i in near)
        queue += near
    return 0


Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The arrays, the indexes they need, and which predicates' quads each index holds."""

    plan: SearchArrays
    keys: tuple[Columns, ...]
    links: dict[int, int]

    def extends(self, other: Compiled) -> bool:
        """Whether each index of another plan is also here, at the same number, with its quads."""
        everywhere, before = self.links.get(-1, 0), other.links.get(-1, 0)
        return self.keys[: len(other.keys)] == other.keys and not any(
            other.links.get(predicate, before) & ~self.links.get(predicate, everywhere)
            for predicate in (-1, *self.links, *other.links)
        )


def compile_programs(programs: Sequence[SearchProgram], order: Sequence[Columns] = ()) -> Compiled:
    """All programs as arrays. Predicate -1 stands for all predicates that no pattern names.

    Indexes that are in `order` and still needed come first, in that order.
    """
    patterns, heads, checks, seeds = _flatten(programs)
    keys, links = _indexes(programs, order)
    dispatch, ordered = _dispatch(seeds, links)
    best = {held: _best(held, keys) for held in set(links.values())}
    lines = [p + best[links[max(p[1], -1)]] for p in patterns]
    probes = [_probes(seed, heads, checks, lines) for seed in ordered]
    plan = SearchArrays(
        patterns=_array(lines, 20),
        programs=_array(heads, 6),
        checks=_array(checks, 3),
        seeds=_array(ordered, 3),
        dispatch=dispatch,
        walks=np.array([walk for program in programs for walk in walks_of(program)], np.int64),
        probes=_array([probe for own in probes for probe in own], 7),
        probes_from=np.cumsum([0, *map(len, probes)], dtype=np.int32),
        bind=np.zeros(MAX_PATTERNS + 4, np.int32),
        walk_bind=np.zeros(MAX_PATTERNS + 4, np.int32),
        key=np.zeros((1, 4), np.int32),
        frames=np.zeros((MAX_PATTERNS + 2, 4), np.int64),
        inner=np.zeros((MAX_PATTERNS + 2, 4), np.int64),
        walk=np.zeros((MAX_PATTERNS + 2, 4), np.int64),
        ahead=np.zeros((BLOCK * AHEAD_CELLS, 2), np.int64),
    )
    return Compiled(plan, keys, links)


def _array(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, np.int32).reshape(len(rows), width)


Lists = list[tuple[int, ...]]


def _flatten(
    programs: Sequence[SearchProgram],
) -> tuple[Lists, Lists, Lists, list[tuple[int, tuple[int, ...]]]]:
    """Patterns, programs and checks in order; seeds with the predicate that triggers them."""
    patterns: Lists = []
    heads: Lists = []
    checks: Lists = []
    seeds: list[tuple[int, tuple[int, ...]]] = []
    for number, program in enumerate(programs):
        heads.append(
            (
                len(patterns),
                len(program.patterns),
                program.outputs,
                len(checks),
                len(program.checks),
                program.variables(),
            )
        )
        groups = [(-1, program.patterns)]
        groups += [(len(checks) + i, check.patterns) for i, check in enumerate(program.checks)]
        for check, group in groups:
            if check >= 0:
                negated = program.checks[check - heads[-1][3]].negated
                checks.append((len(patterns), len(group), int(negated)))
            patterns.extend(group)
            seeds += [(max(p[1], -1), (number, i, check)) for i, p in enumerate(group)]
    return patterns, heads, checks, seeds


def _indexes(
    programs: Sequence[SearchProgram], order: Sequence[Columns]
) -> tuple[tuple[Columns, ...], dict[int, int]]:
    """The key columns of each index, and per predicate a bit for each index that holds it."""
    wanted: dict[int, set[Columns]] = {}
    for program in programs:
        for pattern, columns in needed_indexes(program).items():
            wanted.setdefault(max(pattern[1], -1), set()).update(columns)
    needed = set().union(*wanted.values())
    old = [key for key in order if key in needed]
    keys = (*old, *sorted(needed.difference(old)))
    anywhere = wanted.get(-1, set())
    numbers = {key: number for number, key in enumerate(keys)}
    links = {
        predicate: sum(1 << numbers[c] for c in columns | anywhere)
        for predicate, columns in wanted.items()
    }
    return keys, links


def _dispatch(
    seeds: list[tuple[int, tuple[int, ...]]], links: dict[int, int]
) -> tuple[Ints, Lists]:
    """A hash table from predicate to its seeds; the last line is for all other predicates."""
    predicates = sorted({predicate for predicate, _ in seeds if predicate >= 0})
    size = 2
    while size < 2 * len(predicates) + 2:
        size *= 2
    table = np.zeros((size + 1, 4), np.int32)
    ordered: Lists = []
    by: dict[int, list[tuple[int, tuple[int, ...]]]] = {predicate: [] for predicate in predicates}
    by[-1] = []
    for number, (predicate, seed) in enumerate(seeds):
        by[predicate].append((number, seed))
    for predicate in [-1, *predicates]:
        called = by[-1] if predicate < 0 else sorted(by[predicate] + by[-1])
        own = [seed for _, seed in called]
        slot = size
        if predicate >= 0:
            slot = (predicate * 40503) & (size - 1)
            while table[slot, 0] != 0:
                slot = (slot + 1) & (size - 1)
        table[slot] = (predicate + 1, len(ordered), len(own), links.get(predicate, 0))
        ordered += own
    return table, ordered


def _best(held: int, keys: tuple[Columns, ...]) -> tuple[int, ...]:
    """For each set of known positions, the index with the most key columns that it can use.

    Only indexes that hold every quad the pattern can match: the set `held` of its predicate.
    """
    usable = [
        (sum(1 << k for k in key), i) for i, key in enumerate(keys) if held >> i & 1
    ]  # the key columns as a set
    usable.sort(key=lambda each: -len(keys[each[1]]))
    return tuple(
        [
            next((i for columns, i in usable if columns & known == columns), SCAN)
            for known in range(16)
        ]
    )


def _probes(seed: tuple[int, ...], heads: Lists, checks: Lists, lines: Lists) -> Lists:
    """Lookups of the patterns of a seed's program by what is known, then of its checks.

    First those by values of the changed quad, then by those of the rows that these find, and so on.
    Of one level, patterns with a known object come first: they fail more often.
    """
    program, pattern, check = seed
    first, many, _, first_check, own_checks, _ = heads[program]
    own = pattern + (first if check < 0 else checks[check][0])
    columns = {value: -1 - k for k, value in enumerate(lines[own][:4]) if value < 0}
    inner = [range(c[0], c[0] + c[1]) for c in checks[first_check : first_check + own_checks]]
    left = [at for at in range(first, first + many) if at != own]
    found: Lists = []
    level = 0
    while known := [(at, probe) for at in left if (probe := _lookup(lines[at], columns))]:
        for at, probe in sorted(known, key=lambda each: each[1][PROBE_KEY + 2] >= 0):
            left.remove(at)
            found.append((*probe, level, 1))
            for k, value in enumerate(lines[at][:4]):
                if value < 0:
                    columns.setdefault(value, -1 - (4 * len(found) + k))
        level += 1
    looked_up = (_lookup(lines[at], columns) for each in inner for at in each if at != own)
    found += [(*probe, level, 0) for probe in looked_up if probe]
    return found[:MOST_PROBES]


def _lookup(line: tuple[int, ...], columns: dict[int, int]) -> tuple[int, ...]:
    """The index for a pattern, and its key: ids, and columns of values; empty if there is none."""
    s, p, o, g = [value if value >= 0 else columns.get(value) for value in line[:4]]
    known = (s is not None) + 2 * (p is not None) + 4 * (o is not None) + 8 * (g is not None)
    index = UNIQUE if known == 15 else line[BEST + known]
    return () if index == SCAN else (index, s or 0, p or 0, o or 0, g or 0)


def restricted(plan: SearchArrays, chosen: Flags) -> SearchArrays:
    """The same plan with some of its seeds only."""
    own = np.flatnonzero(chosen)
    dispatch = plan.dispatch.copy()
    first = plan.dispatch[:, SEEDS_FROM]
    dispatch[:, SEEDS_FROM] = np.searchsorted(own, first)
    dispatch[:, SEEDS] = np.searchsorted(own, first + plan.dispatch[:, SEEDS])
    dispatch[:, SEEDS] -= dispatch[:, SEEDS_FROM]
    sizes = np.diff(plan.probes_from)
    return plan._replace(
        seeds=plan.seeds[own],
        dispatch=dispatch,
        probes=plan.probes[np.repeat(chosen, sizes)],
        probes_from=np.cumsum([0, *sizes[own]], dtype=np.int32),
    )


def cheapest_seeds(plan: SearchArrays, programs: Sequence[int], sizes: Longs) -> Flags:
    """Of each of some programs the seeds at one pattern: from these, all matches can be found.

    It is the pattern that fewest quads can match; `sizes` has the quads of each dispatch line.
    """
    keys = plan.dispatch[:-1, KEY]
    chosen = np.zeros(len(plan.seeds), np.bool_)
    for program in programs:
        first, many = plan.programs[program, :2].tolist()

        def cost(pattern: int, first: int = first) -> float:
            s, p, o, _ = plan.patterns[first + pattern, :4].tolist()
            quads = sizes.sum() if p < 0 else sizes[[*np.flatnonzero(keys == p + 1), -1][0]]
            return float(quads) / CONSTANT ** ((s >= 0) + (o >= 0))

        at = plan.seeds[:, SEED_CHECK] < 0, plan.seeds[:, SEED_PROGRAM] == program
        chosen |= at[0] & at[1] & (plan.seeds[:, SEED_PATTERN] == min(range(many), key=cost))
    return chosen


NO_PROGRAMS = compile_programs(())
