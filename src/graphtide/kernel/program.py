"""Program: one basic graph pattern and the existence checks on it, as the search loop reads it."""

from __future__ import annotations

from dataclasses import dataclass

from graphtide.errors import GraphtideError

Pattern = tuple[int, int, int, int]
"""Subject, predicate, object, graph: an id (>= 0), or variable number `v` written as `-1 - v`."""

MOST_PATTERNS = 60
"""Patterns and variables of one program are bits of an int64."""

HIDDEN = 1 << 30
"""Graphs from this id on, and the default graph, are no values of graph variables."""


@dataclass(frozen=True, slots=True)
class Check:
    """EXISTS or, negated, NOT EXISTS over a basic graph pattern."""

    negated: bool
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Patterns to match together, and checks on each match.

    Variables 0 … `outputs` - 1 are those of `patterns`: the columns of a match. Higher numbers are
    local to one check.
    """

    patterns: tuple[Pattern, ...]
    outputs: int
    checks: tuple[Check, ...] = ()

    def __post_init__(self) -> None:
        total = len(self.patterns) + sum(len(check.patterns) for check in self.checks)
        if not self.patterns or total > MOST_PATTERNS or self.variables() > MOST_PATTERNS:
            msg = f"a program has 1 to {MOST_PATTERNS} patterns and at most as many variables"
            raise ValueError(msg)

    def all_patterns(self) -> tuple[Pattern, ...]:
        """The patterns, then those of each check."""
        return self.patterns + tuple(p for check in self.checks for p in check.patterns)

    def variables(self) -> int:
        """How many variables there are, local ones included."""
        return max((-v for p in self.all_patterns() for v in p if v < 0), default=0)


def wanted_indexes(program: Program) -> dict[Pattern, set[tuple[int, ...]]]:
    """The column sets on which each pattern may have to be looked up.

    A pattern is reached with its constants and at least one variable known. Only a check that
    shares no variable with the patterns is looked up by its constants alone.

    >>> wanted_indexes(Program(((-1, 7, -2, 0), (-2, 8, -3, 0)), 3))
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


def refuse_joins(program: Program) -> None:
    """Raise unless a program is one pattern: a search has nowhere to look where no quad is stored.

    >>> refuse_joins(Program(((-1, 7, -2, 0),), 2))
    """
    if len(program.patterns) > 1 or program.checks:
        raise GraphtideError(
            "a search needs stored quads, and this graph stores none",
            hint='use strategy="decomposed", or LiveGraph(store="all")',
        )


def refuse_looking(passed: int) -> None:
    """Raise if quads have passed that were not stored: nobody knows which are there.

    >>> refuse_looking(0)
    """
    if passed:
        raise GraphtideError(
            "this graph stores no quads, so it cannot be asked for them",
            hint='register queries before the data comes, or use LiveGraph(store="all")',
        )
