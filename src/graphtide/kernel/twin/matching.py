"""Matching a program by trying every quad for every pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.program import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from graphtide.kernel.program import Pattern, Program
    from graphtide.kernel.twin.bag import Row

Quads = dict[int, dict["Row", None]]
"""Quads by predicate, oldest first."""

Binding = dict[int, int]
"""The values of variables, a variable being the negative number that stands for it."""


def unify(pattern: Pattern, quad: Row, binding: Mapping[int, int]) -> Binding | None:
    """The binding with the pattern's variables added, or None if quad and pattern disagree.

    The default graph, 0, and hidden graphs are no values for a variable.

    >>> unify((-1, 7, -2, 0), (5, 7, 6, 0), {-1: 5})
    {-1: 5, -2: 6}
    >>> unify((-1, 7, -1, 0), (5, 7, 6, 0), {})
    """
    bound = dict(binding)
    for wanted, value in zip(pattern, quad, strict=True):
        if wanted < 0 and 0 < value < HIDDEN:
            wanted = bound.setdefault(wanted, value)
        if wanted != value:
            return None
    return bound


def matches(patterns: tuple[Pattern, ...], quads: Quads, binding: Binding) -> Iterator[Binding]:
    """Every way to extend a binding so that all patterns are quads."""
    if not patterns:
        yield binding
        return
    predicate = patterns[0][1]
    predicate = binding.get(predicate, predicate)
    groups: Collection[dict[Row, None]] = quads.values()
    if predicate >= 0:
        groups = [quads.get(predicate, {})]
    for group in groups:
        for quad in group:
            more = unify(patterns[0], quad, binding)
            if more is not None:
                yield from matches(patterns[1:], quads, more)


def evaluate(program: Program, quads: Quads) -> dict[Row, int]:
    """The matches of a program that pass its checks, once each.

    >>> from graphtide.kernel.program import Program
    >>> evaluate(Program(((-1, 7, -2, 0), (-2, 7, -1, 0)), 2), {7: {(3, 7, 3, 0): None}})
    {(3, 3): 1}
    """
    return {
        tuple(binding[-1 - v] for v in range(program.outputs)): 1
        for binding in matches(program.patterns, quads, {})
        if all(
            (next(matches(check.patterns, quads, binding), None) is None) == check.negated
            for check in program.checks
        )
    }
