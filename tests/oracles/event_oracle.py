"""Oracle for event patterns: the definitions as a program, slow and without automata.

An instance (partial match) is the list of events that it has consumed; `event_readings` says what
they are for the pattern. `graphtide.patterns` is tested against this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oracles.event_readings import OracleEvent, OracleReader, Reading, atoms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.lang.tide import ast as tide
    from graphtide.rdf.terms import Term
    from oracles.event_readings import Condition


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
        condition: Condition | None = None,
    ) -> None:
        self.pattern = pattern
        self._condition = condition
        self._tick_ms, self._encode = tick_ms, encode
        self.stream: list[OracleEvent] = []
        self.instances: dict[tuple[int, ...], list[tuple[OracleEvent, ...]]] = {}
        self.now = 0
        self._keys = _key_arguments(pattern)
        self._noise: list[tuple[tuple[int, ...], OracleEvent]] = []

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
        for key in self._streams(event):
            instances = self.instances.get(key, [])
            instances = [used for used in instances if self._viable(used, before)]
            kept, done = self._offer(instances, event, key)
            self.instances[key] = [used for used in kept if self._viable(used, self.stream)]
            found += done
        return found

    def _streams(self, event: OracleEvent) -> list[tuple[int, ...]]:
        """The values of PER in whose streams an event is: those with which it agrees."""
        if not self.pattern.per:
            return [()]
        found: dict[tuple[int, ...], None] = {}
        for type_, values in ((event.type, event.values), *event.others):
            for columns in self._keys.get(type_, ()):
                given = [None if at is None else values[at] for at in columns]
                known = [tuple(given)] if None not in given else list(self.instances)
                for key in known:
                    agrees = all(g in (None, k) for g, k in zip(given, key, strict=True))
                    found |= {key: None} if agrees else {}  # type: ignore[dict-item]
        return list(found)

    def _offer(
        self, instances: list[tuple[OracleEvent, ...]], event: OracleEvent, key: tuple[int, ...]
    ) -> tuple[list[tuple[OracleEvent, ...]], list[OracleMatch]]:
        context = self.pattern.context
        if context == "UNRESTRICTED":
            return self._offer_all(instances, event, key)
        forward = self._first(instances, event, spare=False)
        if forward is not None:
            return self._used(instances, forward, event)
        begins = self._begins(event, key)
        if begins and not (context == "STRICT" and instances):
            return self._used([*instances, ()], len(instances), event)
        round_ = self._first(instances, event, spare=True)
        if round_ is not None:
            return self._used(instances, round_, event)
        if context == "CHRONICLE":
            return instances, []
        self._noise.append((key, event))
        left = [used for used in instances if self._viable(used, self.stream)]
        return (left, []) if left or not begins else self._used([()], 0, event)

    def _begins(self, event: OracleEvent, key: tuple[int, ...]) -> bool:
        """Whether a trace of a stream can begin with an event."""
        per = self.pattern.per
        return any(
            tuple(dict(way.binding).get(v) for v in per) == key for way in self._ways((event,))
        )

    def _offer_all(
        self, instances: list[tuple[OracleEvent, ...]], event: OracleEvent, key: tuple[int, ...]
    ) -> tuple[list[tuple[OracleEvent, ...]], list[OracleMatch]]:
        """Every instance goes on without the event, and with it if it can."""
        begun = [()] if self._begins(event, key) else []
        complete: list[tuple[tuple[OracleEvent, ...], list[OracleMatch]]] = []
        kept = list(instances)
        for used in (*instances, *begun):
            ways = [w for w in self._ways((*used, event)) if w.early is None]
            whole = [way for way in ways if not way.partial]
            if whole:
                complete.append(((*used, event), self._found((*used, event), whole)))
            elif ways:
                kept.append((*used, event))
        found: list[OracleMatch] = []
        over: set[int] = set()
        for used, rows in sorted(complete, key=lambda one: [e.number for e in one[0]]):
            if used[0].number not in over and not (found and self.pattern.skip == "SKIP PAST LAST"):
                found += rows
                over |= {used[0].number} if self.pattern.skip == "SKIP TO NEXT" else set()
        if found and self.pattern.skip == "SKIP PAST LAST":
            kept = []
        return [used for used in kept if used[0].number not in over], found

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
        (own,) = self._streams(used[0])[:1] or [()]
        noise = frozenset(
            event.number
            for key, event in self._noise
            if event.number > used[0].number and key == own
        )
        return OracleReader(
            used, stream, self.now, self._tick_ms, self._encode, noise, self._condition
        )

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


def _key_arguments(
    pattern: tide.PatternDeclaration,
) -> dict[str, list[tuple[int | None, ...]]]:
    """For each event type, the argument positions of the PER variables; None if it lacks one."""
    found: dict[str, list[tuple[int | None, ...]]] = {}
    for atom in atoms_of(pattern.body):
        given = list(atom.arguments)
        columns = tuple(given.index(v) if v in given else None for v in pattern.per)
        if columns not in found.setdefault(atom.event, []):
            found[atom.event].append(columns)
    return found
