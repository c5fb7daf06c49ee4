"""Traces of event patterns straight from the definitions: all readings of consumed events.

`OracleReader` finds whether events are a trace of a pattern, or a prefix of one, by dividing them
among the parts of the pattern in all possible ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.lang.tide import ast as tide

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.rdf.terms import Term


Binding = tuple[tuple[Var, int], ...]


@dataclass(frozen=True, slots=True)
class OracleEvent:
    """An event with its sequence number; `others` are further types that it has, with values."""

    number: int
    type: str
    values: tuple[int, ...]
    time: int
    others: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class OracleZone:
    """A part with WITHIN that has begun: the time of its first event, and its maximum duration."""

    first: int | None
    most: float


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to assign the first `taken` events of an instance to a pattern.

    `last` and `time` are index and time of the last of them, `absent` the patterns that must not
    match after it. `partial`: more events are needed. `spare`: the last event repeated a loop.
    `early`: the number of events taken when HOLDS FOR was violated. `waits`: the time at which the
    passing of time alone continues it.
    """

    taken: int
    last: int
    time: int
    binding: Binding = ()
    absent: tuple[tide.EventPattern, ...] = ()
    zones: tuple[OracleZone, ...] = ()
    partial: bool = False
    round: bool = False
    spare: bool = False
    early: int | None = None
    waits: int | None = None
    named: tuple[tuple[str, OracleEvent], ...] = ()


Named = tuple[tuple[str, OracleEvent], ...]
Condition = Callable[[tide.Atom, Named, Binding], bool]
"""Whether an event meets the condition of its atom, given the events so far, its own the last."""


class OracleReader:
    """Finds the readings of consumed events, given all events of the stream and the time `now`."""

    def __init__(
        self,
        used: Sequence[OracleEvent],
        stream: Sequence[OracleEvent],
        now: int,
        tick_ms: int = 1,
        encode: Callable[[Term], int] | None = None,
        noise: frozenset[int] = frozenset(),
        condition: Condition | None = None,
    ) -> None:
        self.used, self.stream, self.now = used, stream, now
        self._condition = condition
        self._tick_ms = tick_ms
        self._encode = encode
        self._noise = noise

    def readings(self, pattern: tide.EventPattern) -> Iterator[Reading]:
        """All readings of the consumed events, complete or partial."""
        start = Reading(0, -1, -1)
        for reading in self.read(pattern, start):
            if reading.taken == len(self.used) and (reading.partial or not reading.absent):
                yield reading

    def read(self, pattern: tide.EventPattern, at: Reading) -> Iterator[Reading]:
        """The continuations of a reading by a pattern."""
        match pattern:
            case tide.Atom():
                yield from self._atom(pattern, at)
            case tide.Follows(parts):
                yield from self._follows(parts, at)
            case tide.Either(parts):
                for part in parts:
                    yield from self.read(part, at)
            case tide.Both():
                for order in permutations(_operands(pattern)):
                    yield from self._follows(order, at)
            case tide.Interleaved(parts):
                yield from self._interleaved(parts, at)
            case tide.Repeat():
                yield from self._repeat(pattern, at, 0)
            case tide.Not(part):
                yield replace(at, absent=(*at.absent, part))
            case tide.Within(part, length):
                yield from self._within(part, length.ticks(self._tick_ms), at)
            case tide.HoldsFor(part, length):
                yield from self._holds(part, length.ticks(self._tick_ms), at)

    def _atom(self, atom: tide.Atom, at: Reading) -> Iterator[Reading]:
        if at.taken == len(self.used):
            gap = [e for e in self.stream if e.number > at.last]
            alive = all(z.first is None or self.now - z.first <= z.most for z in at.zones)
            if alive and self._clear(gap, at):
                yield replace(at, partial=True)
            return
        event = self.used[at.taken]
        gap = [e for e in self.stream if at.last < e.number < event.number]
        zones = tuple(replace(z, first=event.time) if z.first is None else z for z in at.zones)
        fits = all(event.time - (z.first or 0) <= z.most for z in zones)
        if event.number <= at.last or at.early is not None:
            return
        if not fits or not self._clear(gap, at):
            return
        for type_, values in ((event.type, event.values), *event.others):
            binding = self._unified(atom, type_, values, at.binding)
            named = (*at.named, (atom.alias, replace(event, type=type_, values=values)))
            if binding is not None and self._meets(atom, named, binding):
                yield Reading(
                    at.taken + 1, event.number, event.time, binding, zones=zones, spare=at.round,
                    named=named,
                )  # fmt: skip

    def _meets(self, atom: tide.Atom, named: Named, binding: Binding) -> bool:
        if atom.condition is None:
            return True
        assert self._condition is not None  # the caller has conditions
        return self._condition(atom, named, binding)

    def _unified(
        self, atom: tide.Atom, type_: str, values: tuple[int, ...], binding: Binding
    ) -> Binding | None:
        if atom.event != type_:
            return None
        known = dict(binding)
        for argument, value in zip(atom.arguments, values, strict=True):
            if argument is None:
                continue
            if isinstance(argument, Var):
                wanted = known.setdefault(argument, value)
            else:
                assert self._encode is not None  # the caller has constants
                wanted = self._encode(argument)
            if wanted != value:
                return None
        return tuple(sorted(known.items(), key=lambda pair: pair[0].name))

    def _clear(self, gap: Sequence[OracleEvent], at: Reading) -> bool:
        """Whether no absent pattern matches in the gap, and noise is only where one is absent."""
        if not at.absent and any(event.number in self._noise for event in gap):
            return False
        return not any(self._happens(pattern, gap, at) for pattern in at.absent)

    def _happens(self, pattern: tide.EventPattern, gap: Sequence[OracleEvent], at: Reading) -> bool:
        """Whether some of these events are a trace of a pattern under a binding."""
        most = 1 if isinstance(pattern, tide.Atom) else len(gap)
        for count in range(1, most + 1):
            for some in combinations(gap, count):
                inner = OracleReader(
                    some, some, self.now, self._tick_ms, self._encode, condition=self._condition
                )
                start = Reading(0, -1, -1, at.binding, named=at.named)
                for reading in inner.read(pattern, start):
                    whole = not reading.partial and reading.early is None
                    if whole and reading.taken == count:
                        return True
        return False

    def _follows(self, parts: Sequence[tide.EventPattern], at: Reading) -> Iterator[Reading]:
        if not parts:
            yield at
            return
        for reading in self.read(parts[0], at):
            if reading.partial:
                yield reading
            else:
                yield from self._follows(parts[1:], reading)

    def _repeat(self, repeat: tide.Repeat, at: Reading, done: int) -> Iterator[Reading]:
        more = repeat.most is None or done < repeat.most
        greedy = repeat.greedy and more and self._goes_on(repeat.part, at)
        if done >= repeat.least and not greedy:
            yield at
        if not more:
            return
        beyond = done >= repeat.least and not repeat.greedy
        again = replace(at, round=at.round if done == 0 else beyond)
        for reading in self.read(repeat.part, again):
            if reading.partial:
                yield replace(reading, round=False)
            elif reading.taken > at.taken:
                yield from self._repeat(repeat, replace(reading, round=False), done + 1)

    def _goes_on(self, part: tide.EventPattern, at: Reading) -> bool:
        """Whether the next event is one more of a repeated part."""
        return at.taken < len(self.used) and any(
            reading.taken > at.taken and not reading.partial for reading in self.read(part, at)
        )

    def _within(self, part: tide.EventPattern, most: float, at: Reading) -> Iterator[Reading]:
        begun = at.time if isinstance(part, tide.Not) else None
        for reading in self.read(part, replace(at, zones=(*at.zones, OracleZone(begun, most)))):
            if reading.partial:
                yield reading
                continue
            zone, zones = reading.zones[-1], reading.zones[:-1]
            if reading.absent and zone.first is not None:
                yield from self._passed(replace(reading, zones=zones), int(zone.first + most))
            else:
                yield replace(reading, zones=zones)

    def _passed(self, reading: Reading, end: int) -> Iterator[Reading]:
        """Continue after the end of a duration, if no absent pattern matches in the gap."""
        gap = [e for e in self.stream if e.number > reading.last and e.time <= end]
        if not self._clear(gap, reading):
            return
        if any(z.first is not None and end - z.first > z.most for z in reading.zones):
            return
        if self.now <= end:
            if reading.taken == len(self.used):
                yield replace(reading, partial=True, waits=end)
            return
        before = max((e.number for e in self.stream if e.time <= end), default=-1)
        yield replace(reading, last=max(before, reading.last), time=end, absent=())

    def _holds(self, part: tide.EventPattern, least: float, at: Reading) -> Iterator[Reading]:
        for reading in self.read(
            part, replace(at, zones=(*at.zones, OracleZone(None, float("inf"))))
        ):
            if reading.partial:
                yield reading
                continue
            zone, zones = reading.zones[-1], reading.zones[:-1]
            short = reading.time - (zone.first or 0) < least
            early = reading.taken if short else reading.early
            yield replace(reading, zones=zones, early=early)

    def _interleaved(self, parts: Sequence[tide.EventPattern], at: Reading) -> Iterator[Reading]:
        """Assign each remaining event to one of the parts, until all are complete."""
        rest = list(self.used[at.taken :])
        for count in range(len(rest) + 1):
            for owners in product(range(len(parts)), repeat=count):
                shares = [
                    [e for e, owner in zip(rest, owners, strict=False) if owner == number]
                    for number in range(len(parts))
                ]
                yield from self._shared(parts, shares, at, count, count == len(rest))

    def _shared(
        self,
        parts: Sequence[tide.EventPattern],
        shares: Sequence[Sequence[OracleEvent]],
        at: Reading,
        count: int,
        may_end: bool,
    ) -> Iterator[Reading]:
        events = sorted((e for share in shares for e in share), key=lambda e: e.number)
        for zone in at.zones:
            first = zone.first if zone.first is not None else (events[0].time if events else None)
            end = self.now if may_end and not events else (events[-1].time if events else self.now)
            if first is not None and end - first > zone.most:
                return
        if events and (events[0].number <= at.last or at.early is not None):
            return
        gap_end = events[0].number if events else 1 << 60
        if not self._clear([e for e in self.stream if at.last < e.number < gap_end], at):
            return
        zones = tuple(
            replace(z, first=events[0].time) if z.first is None and events else z for z in at.zones
        )
        first = events[0].number if events else 1 << 60
        noise = frozenset(number for number in self._noise if number > first)
        for binding, partial, early in self._together(parts, shares, at.binding, noise):
            if partial and not may_end:
                continue
            alive = all(z.first is None or self.now - z.first <= z.most for z in zones)
            if partial and not alive:
                continue
            last = events[-1] if events else None
            yield Reading(
                at.taken + count,
                last.number if last else at.last,
                last.time if last else at.time,
                binding,
                absent=() if events else at.absent,
                zones=zones,
                partial=partial,
                early=at.taken + count if early else None,
            )

    def _together(
        self,
        parts: Sequence[tide.EventPattern],
        shares: Sequence[Sequence[OracleEvent]],
        binding: Binding,
        noise: frozenset[int],
    ) -> Iterator[tuple[Binding, bool, bool]]:
        """Read each part with its share: the binding; whether one is partial, or early."""
        if not parts:
            yield binding, False, False
            return
        inner = OracleReader(shares[0], self.stream, self.now, self._tick_ms, self._encode, noise)
        start = Reading(0, -1, -1, binding)
        for reading in inner.read(parts[0], start):
            if reading.taken < len(shares[0]):
                continue
            rest = self._together(parts[1:], shares[1:], reading.binding, noise)
            for more, partial, early in rest:
                yield more, partial or reading.partial, early or reading.early is not None


def _operands(pattern: tide.Both) -> list[tide.EventPattern]:
    """The parts of an AND, with nested ANDs flattened."""
    parts: list[tide.EventPattern] = []
    for part in pattern.parts:
        parts += _operands(part) if isinstance(part, tide.Both) else [part]
    return parts


def holds(pattern: tide.EventPattern, stream: Sequence[OracleEvent], tick_ms: int = 1) -> bool:
    """Whether some events of a stream are a trace (Definition 7), in any context.

    >>> a, b = tide.Atom("a", ()), tide.Atom("b", ())
    >>> holds(
    ...     tide.Follows((a, b)),
    ...     [OracleEvent(0, "a", (), 1), OracleEvent(1, "c", (), 2), OracleEvent(2, "b", (), 3)],
    ... )
    True
    >>> holds(tide.Follows((b, a)), [OracleEvent(0, "a", (), 1), OracleEvent(1, "b", (), 2)])
    False
    """
    now = stream[-1].time if stream else 0
    for count in range(1, len(stream) + 1):
        for some in combinations(stream, count):
            for reading in OracleReader(some, stream, now, tick_ms).readings(pattern):
                if not reading.partial and reading.early is None:
                    return True
    return False


def atoms_of(pattern: tide.EventPattern) -> Iterator[tide.Atom]:
    """The atoms of a pattern, including those in NOT."""
    match pattern:
        case tide.Atom():
            yield pattern
        case tide.Follows(parts) | tide.Either(parts) | tide.Both(parts) | tide.Interleaved(parts):
            for part in parts:
                yield from atoms_of(part)
        case tide.Repeat() | tide.Not() | tide.Within() | tide.HoldsFor():
            yield from atoms_of(pattern.part)
