"""Oracle for event patterns: the definitions as a program, slow and without automata.

An instance (partial match) is the list of events that it has consumed. `OracleReader` finds all
*readings* of them: whether they are a trace of the pattern, or a prefix of one, by dividing them
among the parts of the pattern in all possible ways. `graphtide.patterns` is tested against this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.lang.tide import ast as tide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    ) -> None:
        self.used, self.stream, self.now = used, stream, now
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
            if binding is not None:
                yield Reading(
                    at.taken + 1, event.number, event.time, binding, zones=zones, spare=at.round
                )

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
        return not any(self._happens(pattern, gap, at.binding) for pattern in at.absent)

    def _happens(
        self, pattern: tide.EventPattern, gap: Sequence[OracleEvent], binding: Binding
    ) -> bool:
        """Whether some of these events are a trace of a pattern under a binding."""
        for count in range(1, len(gap) + 1):
            for some in combinations(gap, count):
                inner = OracleReader(some, some, self.now, self._tick_ms, self._encode)
                start = Reading(0, -1, -1, binding)
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
        if done >= repeat.least:
            yield at
        if repeat.most is not None and done >= repeat.most:
            return
        again = replace(at, round=at.round if done == 0 else repeat.most is None)
        for reading in self.read(repeat.part, again):
            if reading.partial:
                yield replace(reading, round=False)
            elif reading.taken > at.taken:
                yield from self._repeat(repeat, replace(reading, round=False), done + 1)

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
        may_end: bool,  # noqa: FBT001 - one call
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


@dataclass(frozen=True, slots=True)
class OracleMatch:
    """A match: values of the parameters (0: unbound), end time, and consumed events."""

    values: tuple[int, ...]
    time: int
    used: tuple[int, ...]


class EventOracle:
    """Matches a pattern against a stream of events, event by event."""

    def __init__(
        self,
        pattern: tide.PatternDeclaration,
        *,
        tick_ms: int = 1,
        encode: Callable[[Term], int] | None = None,
    ) -> None:
        self.pattern = pattern
        self._tick_ms, self._encode = tick_ms, encode
        self.stream: list[OracleEvent] = []
        self.instances: dict[tuple[int, ...], list[tuple[OracleEvent, ...]]] = {}
        self.now = 0
        self._keys = _key_arguments(pattern)
        self._noise: list[OracleEvent] = []

    def step(
        self,
        type_: str,
        values: tuple[int, ...],
        time: int,
        others: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> list[OracleMatch]:
        """Process an event; the matches that are completed by it, or by the time until it.

        `others` are further types of it; with PER, all have to be of one stream.
        """
        found = self.advance(time)
        event = OracleEvent(len(self.stream), type_, values, time, others)
        before = [*self.stream]
        self.stream.append(event)
        key = self._key(event)
        if key is None:
            return found
        instances = self.instances.get(key, [])
        instances = [used for used in instances if self._viable(used, before)]
        kept, done = self._offer(instances, event)
        self.instances[key] = [used for used in kept if self._viable(used, self.stream)]
        return found + done

    def _key(self, event: OracleEvent) -> tuple[int, ...] | None:
        """The values of PER; None if the event is in no stream."""
        if not self.pattern.per:
            return ()
        for type_, values in ((event.type, event.values), *event.others):
            if type_ in self._keys:
                return tuple(values[argument] for argument in self._keys[type_])
        return None

    def _offer(
        self, instances: list[tuple[OracleEvent, ...]], event: OracleEvent
    ) -> tuple[list[tuple[OracleEvent, ...]], list[OracleMatch]]:
        context = self.pattern.context
        forward = self._first(instances, event, spare=False)
        if forward is not None:
            return self._used(instances, forward, event)
        begins = bool(self._ways((event,)))
        if begins and not (context == "STRICT" and instances):
            return self._used([*instances, ()], len(instances), event)
        round_ = self._first(instances, event, spare=True)
        if round_ is not None:
            return self._used(instances, round_, event)
        if context == "CHRONICLE":
            return instances, []
        self._noise.append(event)
        left = [used for used in instances if self._viable(used, self.stream)]
        return (left, []) if left or not begins else self._used([()], 0, event)

    def _first(
        self, instances: list[tuple[OracleEvent, ...]], event: OracleEvent, *, spare: bool
    ) -> int | None:
        for number, used in enumerate(instances):
            if any(way.spare is spare for way in self._ways((*used, event))):
                return number
        return None

    def _used(
        self, instances: list[tuple[OracleEvent, ...]], number: int, event: OracleEvent
    ) -> tuple[list[tuple[OracleEvent, ...]], list[OracleMatch]]:
        used = (*instances[number], event)
        ways = [way for way in self._ways(used) if way.early is None]
        whole = [way for way in ways if not way.partial]
        rest = [*instances[:number], *instances[number + 1 :]]
        if whole:
            return rest, self._found(used, whole)
        if not ways:
            return rest, []
        return [*instances[:number], used, *instances[number + 1 :]], []

    def _ways(self, used: tuple[OracleEvent, ...]) -> list[Reading]:
        return list(self._reader(used, self.stream).readings(self.pattern.body))

    def _reader(self, used: tuple[OracleEvent, ...], stream: Sequence[OracleEvent]) -> OracleReader:
        noise = frozenset(
            event.number
            for event in self._noise
            if event.number > used[0].number and self._key(event) == self._key(used[0])
        )
        return OracleReader(used, stream, self.now, self._tick_ms, self._encode, noise)

    def _viable(self, used: tuple[OracleEvent, ...], stream: Sequence[OracleEvent]) -> bool:
        readings = self._reader(used, stream).readings(self.pattern.body)
        return any(way.early is None for way in readings)

    def _found(self, used: tuple[OracleEvent, ...], ways: list[Reading]) -> list[OracleMatch]:
        rows = {tuple(dict(way.binding).get(v, 0) for v in self.pattern.parameters) for way in ways}
        numbers = tuple(e.number for e in used)
        return [OracleMatch(row, ways[0].time, numbers) for row in sorted(rows)]

    def advance(self, to: int) -> list[OracleMatch]:
        """Advance the time; the matches that the end of durations completes."""
        found: list[tuple[int, int, list[OracleMatch]]] = []
        while True:
            ends = sorted(
                way.waits
                for used in self._all()
                for way in self._ways(used)
                if way.waits is not None and way.early is None and way.waits < to
            )
            if not ends:
                break
            self.now = max(self.now, ends[0] + 1)
            for key, instances in self.instances.items():
                kept = []
                for used in instances:
                    ways = [way for way in self._ways(used) if way.early is None]
                    whole = [way for way in ways if not way.partial]
                    if whole:
                        found.append((whole[0].time, used[0].number, self._found(used, whole)))
                    elif ways:
                        kept.append(used)
                self.instances[key] = kept
        self.now = max(self.now, to)
        in_order = sorted(found, key=lambda item: item[:2])
        return [each for *_, rows in in_order for each in rows]

    def _all(self) -> Iterator[tuple[OracleEvent, ...]]:
        for instances in self.instances.values():
            yield from instances


def _key_arguments(pattern: tide.PatternDeclaration) -> dict[str, tuple[int, ...]]:
    """For each event type, the argument positions of the PER variables."""
    found: dict[str, tuple[int, ...]] = {}
    for atom in atoms_of(pattern.body):
        if set(pattern.per) <= set(atom.arguments):
            found[atom.event] = tuple(atom.arguments.index(v) for v in pattern.per)
    return found
