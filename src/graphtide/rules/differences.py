"""Temporal tests as bounds on differences of times: what compiled loops evaluate.

Every relation says that some differences between starts and ends lie within bounds; a test combines
such relations with AND, OR and NOT.
"""

from __future__ import annotations

from math import ceil, floor, inf
from typing import TYPE_CHECKING, assert_never

from graphtide.rules.kernel.layout import ALL_OF, ANY_OF, ATOM, FOREVER, NONE_OF
from graphtide.rules.temporal import Both, Bounds, Check, Either, Not, Temporal, relation_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rules.temporal import Test

Instruction = tuple[int, int, int, int, int]
"""An atom: two times and the bounds of their difference. Else how many results are combined."""


def conjuncts(test: Test) -> tuple[Test, ...]:
    """The tests that all have to hold.

    >>> after = Temporal("AFTER", "c", "a", (1, 5))
    >>> conjuncts(Both((after, Both((after,))))) == (after, after)
    True
    """
    if isinstance(test, Both):
        return tuple(part for each in test.tests for part in conjuncts(each))
    return (test,)


def instructions(test: Test, places: Mapping[str, int]) -> list[Instruction]:
    """A test in reverse Polish notation. Event number n starts at time 2n and ends at 2n + 1.

    >>> instructions(Temporal("AFTER", "c", "a", (1, 5)), {"a": 0, "c": 1})
    [(0, 2, 1, 1, 5)]
    """
    match test:
        case Temporal(operator, this, other, numbers):
            ends = {
                "start": 2 * places[this], "end": 2 * places[this] + 1,
                "other start": 2 * places[other], "other end": 2 * places[other] + 1,
            }  # fmt: skip
            atoms = [
                (ATOM, ends[one], ends[two], _whole(bounds.low), _whole(bounds.high, up=False))
                for one, two, bounds in relation_bounds(operator, numbers)
            ]
            return [*atoms, (ALL_OF, len(atoms), 0, 0, 0)] if len(atoms) > 1 else atoms
        case Both(tests):
            return _combined(ALL_OF, tests, places)
        case Either(tests):
            return _combined(ANY_OF, tests, places)
        case Not(inner):
            return _combined(NONE_OF, (inner,), places)
        case Check():
            raise AssertionError("values are not tested here")
        case _:
            assert_never(test)


def _combined(op: int, tests: tuple[Test, ...], places: Mapping[str, int]) -> list[Instruction]:
    parts = [step for each in tests for step in instructions(each, places)]
    return [*parts, (op, len(tests), 0, 0, 0)]


def _whole(bound: float, *, up: bool = True) -> int:
    """A bound of whole numbers that admits the same of them."""
    if bound in (inf, -inf):
        return FOREVER if bound > 0 else -FOREVER
    return ceil(bound) if up else floor(bound)


__all__ = ["Bounds", "Instruction", "conjuncts", "instructions"]
