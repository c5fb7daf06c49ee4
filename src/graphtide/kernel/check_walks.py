"""Walks through checks: from patterns that share nothing with the rows outside to those that do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.program import Pattern, Program


def walks_of(program: Program) -> list[int]:
    """For each pattern, a bit for each pattern of its check to go through first; 0 for no walk.

    >>> from graphtide.kernel.program import Check, Program
    >>> switch, sensor = -1, -2
    >>> check = Check(True, ((switch, 7, sensor, 0), (sensor, 1, 3, 0)))
    >>> walks_of(Program(((switch, 1, 2, 0),), 1, (check,)))
    [0, 0, 1]
    """
    walks = [0] * len(program.patterns)
    for check in program.checks:
        walks += [_walk(check.patterns, at, program.outputs) for at in range(len(check.patterns))]
    return walks


def _walk(patterns: Sequence[Pattern], start: int, outputs: int) -> int:
    """The patterns of a shortest way from one to another with a variable of the rows outside."""
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
