"""Temporal tests between events: AFTER and BEFORE with bounds, and Allen's relations.

An event has a start and an end, which are equal for an instant. `this` is the event that a test is
written at, `other` the one it names. A distance is that of `this` from `other`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Final, assert_never

from pyoxigraph import Literal

from graphtide.errors import ExpressionError, GraphtideError
from graphtide.functions.evaluate import evaluate
from graphtide.functions.values import effective_boolean
from graphtide.rules.kernel.layout import ALL_OF, ANY_OF, ATOM, EXPRESSION, FOREVER, NONE_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from graphtide.algebra.expressions import Expression, Var
    from graphtide.functions.logic import Row
    from graphtide.lang.tide.references import EventReference
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Span:
    """Start and end of an event."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of distances in time; either end may be infinite.

    >>> Bounds(1, 5) + Bounds(0, inf), -Bounds(1, 5), Bounds(0, 9).within(Bounds(5, 20))
    (Bounds(low=1, high=inf), Bounds(low=-5, high=-1), Bounds(low=5, high=9))
    """

    low: float = -inf
    high: float = inf

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Bounds:
        return Bounds(-self.high, -self.low)

    def __contains__(self, distance: float) -> bool:
        return self.low <= distance <= self.high

    def within(self, other: Bounds) -> Bounds:
        """The distances that are in both."""
        return Bounds(max(self.low, other.low), min(self.high, other.high))

    def around(self, other: Bounds) -> Bounds:
        """The smallest range that has the distances of both."""
        return Bounds(min(self.low, other.low), max(self.high, other.high))


ANY: Final = Bounds()

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TemporalRelation:
    """The meaning of a temporal operator, and its bounds on the distance of the two events."""

    most: int
    holds: Callable[[Span, Span, Numbers], bool]
    distance: Callable[[Numbers], Bounds]


def _range(numbers: Numbers, least: float = 1) -> Bounds:
    """No numbers: from `least` on; one: from there on; two: from one to the other."""
    if not numbers:
        return Bounds(least, inf)
    if len(numbers) == 1:
        return Bounds(numbers[0], inf)
    return Bounds(min(numbers[:2]), max(numbers[:2]))


def _upto(numbers: Numbers) -> Bounds:
    """No numbers: from 1 on; one: from 1 to there; two: from one to the other."""
    return Bounds(1, numbers[0]) if len(numbers) == 1 else _range(numbers)


def _slack(numbers: Numbers, place: int = 0) -> float:
    """By how much two times may differ and still count as equal."""
    return numbers[min(place, len(numbers) - 1)] if numbers else 0


def _inside(a: Span, b: Span, n: Numbers) -> bool:
    starts = _range(n[:2]) if len(n) == 4 else _upto(n)
    ends = _range(n[2:]) if len(n) == 4 else _upto(n)
    return a.start - b.start in starts and b.end - a.end in ends


def _coincides(a: Span, b: Span, n: Numbers) -> bool:
    return abs(a.start - b.start) <= _slack(n) and abs(a.end - b.end) <= _slack(n, 1)


def _finishes(a: Span, b: Span, n: Numbers) -> bool:
    return a.start > b.start and abs(a.end - b.end) <= _slack(n)


def _starts(a: Span, b: Span, n: Numbers) -> bool:
    return abs(a.start - b.start) <= _slack(n) and a.end < b.end


def _overlaps(a: Span, b: Span, n: Numbers) -> bool:
    return a.start < b.start and a.end < b.end and a.end - b.start in _upto(n)


def _meets(a: Span, b: Span, n: Numbers) -> bool:
    return abs(b.start - a.end) <= _slack(n)


def _near(n: Numbers) -> Bounds:
    return Bounds(-_slack(n), _slack(n))


RELATIONS: Final[Mapping[str, TemporalRelation]] = {
    "AFTER": TemporalRelation(2, lambda a, b, n: a.start - b.end in _range(n), _range),
    "BEFORE": TemporalRelation(
        2, lambda a, b, n: b.start - a.end in _range(n), lambda n: -_range(n)
    ),
    "COINCIDES": TemporalRelation(2, _coincides, _near),
    "DURING": TemporalRelation(4, _inside, lambda _: Bounds(1, inf)),
    "INCLUDES": TemporalRelation(4, lambda a, b, n: _inside(b, a, n), lambda _: Bounds(-inf, -1)),
    "FINISHES": TemporalRelation(1, _finishes, lambda _: Bounds(0, inf)),
    "FINISHEDBY": TemporalRelation(
        1, lambda a, b, n: _finishes(b, a, n), lambda _: Bounds(-inf, 0)
    ),
    "STARTS": TemporalRelation(1, _starts, _near),
    "STARTEDBY": TemporalRelation(1, lambda a, b, n: _starts(b, a, n), _near),
    "MEETS": TemporalRelation(1, _meets, lambda _: ANY),
    "METBY": TemporalRelation(1, lambda a, b, n: _meets(b, a, n), lambda _: ANY),
    "OVERLAPS": TemporalRelation(2, _overlaps, lambda _: Bounds(-inf, 0)),
    "OVERLAPPEDBY": TemporalRelation(
        2, lambda a, b, n: _overlaps(b, a, n), lambda _: Bounds(0, inf)
    ),
}
"""By name. The distance is between starts for instants; it may be wider than the relation."""


Difference = tuple[str, str, Bounds]
"""Two times, of `this` event or of the `other` one, and the bounds of their difference."""


def relation_bounds(operator: str, numbers: Numbers) -> list[Difference]:
    """A relation as a conjunction of bounds on differences of times.

    >>> relation_bounds("MEETS", ())
    [('other start', 'end', Bounds(low=0, high=0))]
    """
    match operator:
        case "AFTER":
            return [("start", "other end", _range(numbers))]
        case "COINCIDES":
            ends = Bounds(-_slack(numbers, 1), _slack(numbers, 1))
            return [("start", "other start", _near(numbers)), ("end", "other end", ends)]
        case "DURING":
            starts = _range(numbers[:2]) if len(numbers) == 4 else _upto(numbers)
            ends = _range(numbers[2:]) if len(numbers) == 4 else _upto(numbers)
            return [("start", "other start", starts), ("other end", "end", ends)]
        case "FINISHES":
            return [("start", "other start", Bounds(1)), ("end", "other end", _near(numbers))]
        case "STARTS":
            return [("start", "other start", _near(numbers)), ("other end", "end", Bounds(1))]
        case "MEETS":
            return [("other start", "end", _near(numbers))]
        case "OVERLAPS":
            later = [("other start", "start", Bounds(1)), ("other end", "end", Bounds(1))]
            return [*later, ("end", "other start", _upto(numbers))]
        case _:
            return [
                (_SWAPPED[one], _SWAPPED[two], bounds)
                for one, two, bounds in relation_bounds(_CONVERSE[operator], numbers)
            ]


_SWAPPED: Final = {
    "start": "other start", "end": "other end", "other start": "start", "other end": "end",
}  # fmt: skip

_CONVERSE: Final = {
    "BEFORE": "AFTER", "INCLUDES": "DURING", "FINISHEDBY": "FINISHES", "STARTEDBY": "STARTS",
    "METBY": "MEETS", "OVERLAPPEDBY": "OVERLAPS",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Temporal:
    """`this OPERATOR[numbers] other`."""

    operator: str
    this: str
    other: str
    numbers: Numbers = ()

    def __post_init__(self) -> None:
        relation = RELATIONS.get(self.operator)
        if relation is None:
            known = ", ".join(RELATIONS)
            raise GraphtideError(
                f"{self.operator} is no temporal relation", hint=f"choose from {known}"
            )
        if len(self.numbers) > relation.most or len(self.numbers) == 3:
            raise GraphtideError(
                f"{self.operator} takes up to {relation.most} numbers, not {len(self.numbers)}"
            )


@dataclass(frozen=True, slots=True)
class AllTests:
    """All of several tests."""

    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class AnyTest:
    """At least one of several tests."""

    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class NotTest:
    """Not a test."""

    test: Test


@dataclass(frozen=True, slots=True)
class ExpressionTest:
    """A SPARQL expression over the values and times of a match; an error counts as false."""

    expression: Expression
    times: tuple[EventReference, ...] = ()


Test = Temporal | AllTests | AnyTest | NotTest | ExpressionTest

NO_TEST: Final = AllTests(())


def holds(test: Test, spans: Mapping[str, Span], values: Row | None = None) -> bool:
    """Whether a test holds for the times and values of a match.

    >>> after = Temporal("AFTER", "c", "a", (1, 5))
    >>> [holds(after, {"a": Span(10, 10), "c": Span(t, t)}) for t in (10, 11, 15, 16)]
    [False, True, True, False]
    """
    match test:
        case Temporal(operator, this, other, numbers):
            return RELATIONS[operator].holds(spans[this], spans[other], numbers)
        case AllTests(tests):
            return all(holds(each, spans, values) for each in tests)
        case AnyTest(tests):
            return any(holds(each, spans, values) for each in tests)
        case NotTest(inner):
            return not holds(inner, spans, values)
        case ExpressionTest(expression, times):
            return is_true(expression, {**(values or {}), **time_values(times, spans)})
        case _:
            assert_never(test)


def is_true(expression: Expression, values: Row) -> bool:
    """Whether an expression is true for some values; an error counts as false."""
    try:
        return effective_boolean(evaluate(expression, values))
    except ExpressionError:
        return False


def has_check(test: Test) -> bool:
    """Whether a test reads values."""
    match test:
        case AllTests(tests) | AnyTest(tests):
            return any(has_check(each) for each in tests)
        case NotTest(inner):
            return has_check(inner)
        case _:
            return isinstance(test, ExpressionTest)


def named(test: Test) -> set[str]:
    """The names of the events of a test."""
    match test:
        case Temporal(_, this, other):
            return {this, other}
        case AllTests(tests) | AnyTest(tests):
            return {name for each in tests for name in named(each)}
        case NotTest(inner):
            return named(inner)
        case ExpressionTest(_, times):
            return {reference.event for reference in times if reference.event}
        case _:
            assert_never(test)


def time_values(
    references: Iterable[EventReference], spans: Mapping[str, Span], time: int | None = None
) -> dict[Var, Term]:
    """The ticks that references to times stand for, in a match that fires at a time.

    >>> from graphtide.lang.tide.references import EventReference
    >>> asked = [EventReference("STARTOF", "a"), EventReference("TIMEOF", "")]
    >>> found = time_values(asked, {"a": Span(3, 5), "b": Span(4, 4)})
    >>> [(variable.name, tick.value) for variable, tick in found.items()]
    [('STARTOF·a', '3'), ('TIMEOF·', '5')]
    """
    return {r.variable: Literal(_tick(r, spans, time)) for r in references}


def _tick(reference: EventReference, spans: Mapping[str, Span], time: int | None) -> int:
    asked = [spans[reference.event]] if reference.event else list(spans.values())
    if reference.function == "STARTOF":
        return min(span.start for span in asked)
    if not reference.event and time is not None:
        return time
    return max(span.end for span in asked)


# --- Temporal tests as programs for compiled loops.
#
# A relation is a conjunction of bounds on differences between starts and ends; a test combines
# relations with AND, OR and NOT.

Instruction = tuple[int, int, int, int, int]
"""ATOM: two times and the bounds of their difference; else the number of operands. An EXPRESSION
is decided outside of the loop, by `holds`."""


def conjuncts(test: Test) -> tuple[Test, ...]:
    """The conjuncts of a test.

    >>> after = Temporal("AFTER", "c", "a", (1, 5))
    >>> conjuncts(AllTests((after, AllTests((after,))))) == (after, after)
    True
    """
    if isinstance(test, AllTests):
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
        case AllTests(tests):
            return _combined(ALL_OF, tests, places)
        case AnyTest(tests):
            return _combined(ANY_OF, tests, places)
        case NotTest(inner):
            return _combined(NONE_OF, (inner,), places)
        case ExpressionTest():
            return [(EXPRESSION, 0, 0, 0, 0)]
        case _:
            assert_never(test)


def _combined(op: int, tests: tuple[Test, ...], places: Mapping[str, int]) -> list[Instruction]:
    parts = [step for each in tests for step in instructions(each, places)]
    return [*parts, (op, len(tests), 0, 0, 0)]


def _whole(bound: float, *, up: bool = True) -> int:
    """The whole number that is the same bound for whole numbers."""
    if bound in (inf, -inf):
        return FOREVER if bound > 0 else -FOREVER
    return ceil(bound) if up else floor(bound)
