"""Lays installed programs out as the arrays that the search loop reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.check_walks import walks_of
from graphtide.kernel.program import MOST_PATTERNS, wanted_indexes
from graphtide.kernel.search_plan import BEST, Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints
    from graphtide.kernel.program import Program

Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan, the indexes it needs, and which predicates' quads each index holds."""

    plan: Plan
    keys: tuple[Columns, ...]
    links: dict[int, int]

    def extends(self, other: Compiled) -> bool:
        """Whether each index of another plan is here at the same place, with all that it holds."""
        everywhere, before = self.links.get(-1, 0), other.links.get(-1, 0)
        return self.keys[: len(other.keys)] == other.keys and not any(
            other.links.get(predicate, before) & ~self.links.get(predicate, everywhere)
            for predicate in (-1, *self.links, *other.links)
        )


def compile_programs(programs: Sequence[Program], order: Sequence[Columns] = ()) -> Compiled:
    """All programs as arrays. A predicate of -1 stands for every predicate no pattern names.

    Indexes that are in `order` and still needed come first, in that order.
    """
    patterns, heads, checks, seeds = _flatten(programs)
    keys, links = _indexes(programs, order)
    dispatch, ordered = _dispatch(seeds, links)
    lines = [p + _best(p[1], keys, links) for p in patterns]
    probes = [_probes(seed, heads, checks, lines) for seed in ordered]
    plan = Plan(
        patterns=_array(lines, 20),
        programs=_array(heads, 6),
        checks=_array(checks, 3),
        seeds=_array(ordered, 3),
        dispatch=dispatch,
        walks=np.array([walk for program in programs for walk in walks_of(program)], np.int64),
        probes=_array([probe for own in probes for probe in own], 5),
        probes_from=np.cumsum([0, *map(len, probes)], dtype=np.int32),
        bind=np.zeros(MOST_PATTERNS + 4, np.int32),
        walk_bind=np.zeros(MOST_PATTERNS + 4, np.int32),
        key=np.zeros((1, 4), np.int32),
        frames=np.zeros((MOST_PATTERNS + 2, 4), np.int64),
        inner=np.zeros((MOST_PATTERNS + 2, 4), np.int64),
        walk=np.zeros((MOST_PATTERNS + 2, 4), np.int64),
    )
    return Compiled(plan, keys, links)


def _array(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, np.int32).reshape(len(rows), width)


Lists = list[tuple[int, ...]]


def _flatten(
    programs: Sequence[Program],
) -> tuple[Lists, Lists, Lists, list[tuple[int, tuple[int, ...]]]]:
    """Patterns, programs and checks in order; seeds with the predicate that calls them."""
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
    programs: Sequence[Program], order: Sequence[Columns]
) -> tuple[tuple[Columns, ...], dict[int, int]]:
    """The key columns of each index, and per predicate a bit for each index that holds it."""
    wanted: dict[int, set[Columns]] = {}
    for program in programs:
        for pattern, columns in wanted_indexes(program).items():
            wanted.setdefault(max(pattern[1], -1), set()).update(columns)
    needed = set().union(*wanted.values())
    old = [key for key in order if key in needed]
    keys = (*old, *sorted(needed.difference(old)))
    anywhere = wanted.get(-1, set())
    links = {
        predicate: sum(1 << keys.index(c) for c in columns | anywhere)
        for predicate, columns in wanted.items()
    }
    return keys, links


def _dispatch(
    seeds: list[tuple[int, tuple[int, ...]]], links: dict[int, int]
) -> tuple[Ints, Lists]:
    """A small hash table from predicate to its seeds; the last line serves all other predicates."""
    predicates = sorted({predicate for predicate, _ in seeds if predicate >= 0})
    size = 2
    while size < 2 * len(predicates) + 2:
        size *= 2
    table = np.zeros((size + 1, 4), np.int32)
    ordered: Lists = []
    for predicate in [-1, *predicates]:
        own = [seed for called_by, seed in seeds if called_by in (predicate, -1)]
        slot = size
        if predicate >= 0:
            slot = (predicate * 40503) & (size - 1)
            while table[slot, 0] != 0:
                slot = (slot + 1) & (size - 1)
        table[slot] = (predicate + 1, len(ordered), len(own), links.get(predicate, 0))
        ordered += own
    return table, ordered


def _best(predicate: int, keys: tuple[Columns, ...], links: dict[int, int]) -> tuple[int, ...]:
    """For each set of known positions, the index with the most key columns that it can use.

    Only indexes that hold every quad the pattern can match: those linked for its predicate.
    """
    held = links[max(predicate, -1)]
    best = []
    for known in range(16):
        usable = [
            i for i, key in enumerate(keys) if held >> i & 1 and all(known >> k & 1 for k in key)
        ]
        best.append(max(usable, key=lambda i: len(keys[i]), default=-1))
    return tuple(best)


def _probes(seed: tuple[int, ...], heads: Lists, checks: Lists, lines: Lists) -> Lists:
    """The patterns of a seed's program that an index finds by the values of the changed quad.

    First those that point to something of the quad: they are more often missing than those that
    say more of it.
    """
    program, pattern, check = seed
    first, many = heads[program][:2]
    own = pattern + (first if check < 0 else checks[check][0])
    column = {value: -1 - k for k, value in enumerate(lines[own][:4]) if value < 0}
    found: Lists = []
    for at in range(first, first + many):
        key = [value if value >= 0 else column.get(value) for value in lines[at][:4]]
        known = sum(1 << k for k in range(4) if key[k] is not None)
        index = lines[at][BEST + known]
        if at != own and index >= 0:
            found.append((index, *(0 if part is None else part for part in key)))
    return sorted(found, key=lambda probe: probe[3] >= 0)


def first_seed(plan: Plan, program: int) -> int:
    """A seed at the first pattern of a program: from it, all matches can be found."""
    wanted = (plan.seeds[:, 0] == program) & (plan.seeds[:, 1] == 0) & (plan.seeds[:, 2] == -1)
    return int(np.flatnonzero(wanted)[0])


NO_PROGRAMS = compile_programs(())
