"""What patterns of events mean, straight from the definitions: slow, and without automata.

An instance is the list of events that it has used; `event_readings.py` says what they are worth.
The engine in `graphtide.events` is tested against this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.testing.event_readings import Event, Reader, Reading, atoms_of, holds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.lang.event_algebra import PatternDeclaration
    from graphtide.rdf.term import Term

__all__ = ["Event", "Found", "Oracle", "Reader", "holds"]


@dataclass(frozen=True, slots=True)
class Found:
    """A match: the parameters' values (0: none), when it ended, and the events it has used."""

    values: tuple[int, ...]
    time: int
    used: tuple[int, ...]


class Oracle:
    """The instances of a pattern, and what becomes of them as events come and time passes."""

    def __init__(
        self,
        pattern: PatternDeclaration,
        *,
        tick_ms: int = 1,
        encode: Callable[[Term], int] | None = None,
    ) -> None:
        self.pattern = pattern
        self._tick_ms, self._encode = tick_ms, encode
        self.stream: list[Event] = []
        self.instances: dict[tuple[int, ...], list[tuple[Event, ...]]] = {}
        self.now = 0
        self._keys = _key_places(pattern)

    def step(self, type_: str, values: tuple[int, ...], time: int) -> list[Found]:
        """An event comes; the matches that this or the time before it completes."""
        found = self.advance(time)
        event = Event(len(self.stream), type_, values, time)
        before = [*self.stream]
        self.stream.append(event)
        if self.pattern.per and type_ not in self._keys:
            return found
        key = tuple(values[place] for place in self._keys[type_]) if self.pattern.per else ()
        instances = self.instances.get(key, [])
        instances = [used for used in instances if self._viable(used, before)]
        kept, done = self._offer(instances, event)
        self.instances[key] = [used for used in kept if self._viable(used, self.stream)]
        return found + done

    def _offer(
        self, instances: list[tuple[Event, ...]], event: Event
    ) -> tuple[list[tuple[Event, ...]], list[Found]]:
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
        return self._used([()], 0, event) if begins else ([], [])

    def _first(
        self, instances: list[tuple[Event, ...]], event: Event, *, spare: bool
    ) -> int | None:
        for number, used in enumerate(instances):
            if any(way.spare is spare for way in self._ways((*used, event))):
                return number
        return None

    def _used(
        self, instances: list[tuple[Event, ...]], number: int, event: Event
    ) -> tuple[list[tuple[Event, ...]], list[Found]]:
        used = (*instances[number], event)
        ways = [way for way in self._ways(used) if way.early is None]
        whole = [way for way in ways if not way.partial]
        rest = [*instances[:number], *instances[number + 1 :]]
        if whole:
            return rest, self._found(used, whole)
        if not ways:
            return rest, []
        return [*instances[:number], used, *instances[number + 1 :]], []

    def _ways(self, used: tuple[Event, ...]) -> list[Reading]:
        return list(self._reader(used, self.stream).readings(self.pattern.body))

    def _reader(self, used: tuple[Event, ...], stream: Sequence[Event]) -> Reader:
        return Reader(used, stream, self.now, self._tick_ms, self._encode)

    def _viable(self, used: tuple[Event, ...], stream: Sequence[Event]) -> bool:
        readings = self._reader(used, stream).readings(self.pattern.body)
        return any(way.early is None for way in readings)

    def _found(self, used: tuple[Event, ...], ways: list[Reading]) -> list[Found]:
        rows = {tuple(dict(way.binding).get(v, 0) for v in self.pattern.parameters) for way in ways}
        numbers = tuple(e.number for e in used)
        return [Found(row, ways[0].time, numbers) for row in sorted(rows)]

    def advance(self, to: int) -> list[Found]:
        """Time passes; what waited for the end of a time is complete when it is over."""
        found: list[tuple[int, int, list[Found]]] = []
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

    def _all(self) -> Iterator[tuple[Event, ...]]:
        for instances in self.instances.values():
            yield from instances


def _key_places(pattern: PatternDeclaration) -> dict[str, tuple[int, ...]]:
    """Where the events of a pattern have the variables of PER."""
    places: dict[str, tuple[int, ...]] = {}
    for atom in atoms_of(pattern.body):
        if set(pattern.per) <= set(atom.arguments):
            places[atom.event] = tuple(atom.arguments.index(v) for v in pattern.per)
    return places
