"""`SearchProgram`: a basic graph pattern with existence checks, before it is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Sequence

Pattern = tuple[int, int, int, int]
"""Subject, predicate, object, graph: an id (>= 0), or variable `v` written as `-1 - v`."""

Columns = tuple[int, ...]
"""The columns of a quad, from 0 to 3, that an index finds quads by."""

MAX_PATTERNS = 60
"""Patterns, and variables, of one program at most: sets of them are bits of an int64."""


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


def needed_indexes(program: SearchProgram) -> dict[Pattern, set[Columns]]:
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
    wanted: dict[Pattern, set[Columns]] = {}
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
    other patterns of the check (see `next_match`). For one that does, the set is negative: through
    each of these patterns, more variables of the rows can be bound.

    >>> from graphtide.kernel.search.program import ExistsCheck, SearchProgram
    >>> switch, sensor = -1, -2
    >>> check = ExistsCheck(True, ((switch, 7, sensor, 0), (sensor, 1, 3, 0)))
    >>> walks_of(SearchProgram(((switch, 1, 2, 0),), 1, (check,)))
    [0, 0, 1]
    >>> both = ExistsCheck(False, ((-1, 7, -3, 0), (-3, 8, -2, 0)))
    >>> walks_of(SearchProgram(((-1, 9, -2, 0),), 2, (both,)))
    [0, -2, -1]
    """
    walks = [0] * len(program.patterns)
    for check in program.checks:
        walks += [_walk(check.patterns, at, program.outputs) for at in range(len(check.patterns))]
    return walks


def _walk(patterns: Sequence[Pattern], start: int, outputs: int) -> int:
    """The patterns of a shortest path from one to another with a variable of the outer rows."""
    variables = [{v for v in pattern if v < 0} for pattern in patterns]
    outside = [{v for v in own if v >= -outputs} for own in variables]
    if outside[start]:
        return -sum(
            1 << i
            for i, own in enumerate(variables)
            if own & variables[start] and outside[i] - outside[start]
        )
    ways = {start: 0}
    queue = [start]
    for at in queue:
        if outside[at]:
            return ways[at]
        near = [i for i in range(len(patterns)) if variables[i] & variables[at] and i not in ways]
        ways.update((i, ways[at] | 1 << i) for i in near)
        queue += near
    return 0
