"""A token is an instance: the events that it has used, and every way to read them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.patterns.automaton import Automaton, Spans, Transition


# --- One way to read the events that an instance has used: where it stands, and what it knows.


class Event(NamedTuple):
    """An event as a detector sees it: type, values (ids), time."""

    type: int
    values: tuple[int, ...]
    time: int


@dataclass(frozen=True, slots=True)
class Configuration:
    """Where a reading stands, and what it needs to go on.

    `entries` are the times at which zones began (None: not now), `last` the time of the position,
    `spoilt` the NOTs that were seen since, `runs` the beginnings of the composite ones, `fired` the
    timer positions that it has been copied to.
    """

    position: int
    values: tuple[int, ...]
    entries: tuple[int | None, ...]
    last: int
    spoilt: frozenset[int] = frozenset()
    runs: tuple[tuple[int, frozenset[Configuration]], ...] = ()
    fired: frozenset[int] = frozenset()


class Used(NamedTuple):
    """An event was used: the configuration after it, None if a HOLDS FOR ended too early."""

    after: Configuration | None
    spare: bool


class ConfigurationMover:
    """Moves configurations of one automaton."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.inner = {n.number: ConfigurationMover(n.automaton) for n in automaton.negations}
        self.watched = _nots(automaton)
        self.timed: bool = any(p.timer for p in automaton.positions) or any(
            r.timed for r in self.inner.values()
        )

    def start(self, values: tuple[int, ...]) -> Configuration:
        """The configuration that has used nothing; `values` are what the slots hold already."""
        return Configuration(0, values, (None,) * len(self.automaton.zones), 0)

    def use(self, at: Configuration, event: Event) -> Iterator[Used]:
        """All ways to use an event."""
        for transition in self.open(at):
            letter = self.automaton.positions[transition.target].letter
            if letter is None or letter.type != event.type:
                continue
            values = letter.match(event.values, at.values)
            if values is not None and event.time <= self._latest(at, transition):
                after = self._moved(at, transition, values, event.time)
                yield Used(after, transition.spare)

    def open(self, at: Configuration) -> Iterator[Transition]:
        """The transitions that nothing has closed so far."""
        for transition in self.automaton.transitions[at.position]:
            closed = at.spoilt.intersection(transition.nots) or transition.target in at.fired
            if not closed and _have_held(at, transition.held, at.last):
                yield transition

    def miss(self, at: Configuration, event: Event) -> Configuration | None:
        """The configuration after an event that it has not used; None if it can go nowhere now."""
        watched = self.watched[at.position]
        if not watched:
            return at
        spoilt, runs = set(at.spoilt), dict(at.runs)
        for number in watched.difference(spoilt):
            letter = self.automaton.negations[number].letter
            if letter is not None:
                seen = letter.type == event.type and (
                    letter.match(event.values, at.values) is not None
                )
            else:
                run = runs.get(number, frozenset())
                found = self.inner[number].run(run, event, at.values)
                seen, runs[number] = found is None, found or frozenset()
            if seen:
                spoilt.add(number)
        return self._kept(at, spoilt, runs, event.time)

    def run(
        self, run: frozenset[Configuration], event: Event, values: tuple[int, ...]
    ) -> frozenset[Configuration] | None:
        """The beginnings of a trace after one more event, all of them; None if a trace is whole."""
        after: set[Configuration] = set()
        for at in (*run, self.start(values)):
            for used in self.use(at, event):
                if used.after is not None and self.final(used.after):
                    return None
                after.update([used.after] if used.after is not None else [])
            stays = self.miss(at, event) if at.position else None
            after.update([stays] if stays is not None else [])
        return frozenset(at for at in after if self.deadline(at) >= event.time)

    def final(self, at: Configuration) -> bool:
        """Is it at an end of the pattern?"""
        ends = self.automaton.positions[at.position].final
        return any(_have_held(at, held, at.last) for held in ends)

    def deadline(self, at: Configuration) -> float:
        """The last time at which it can go on; -inf if it cannot."""
        return max((self._until(at, t) for t in self.open(at)), default=-inf)

    def timers(self, at: Configuration) -> Iterator[tuple[int, Transition]]:
        """When which timer fires."""
        for transition in self.open(at):
            end = self._end(at, transition)
            if end is not None and self._until(at, transition) >= end:
                yield end, transition

    def fire(
        self, at: Configuration, transition: Transition, end: int
    ) -> tuple[Configuration | None, Configuration | None]:
        """What a timer makes of it: the configuration after it, and what else it may become."""
        after = self._moved(at, transition, at.values, end)
        rest = replace(at, fired=at.fired | {transition.target})
        return after, rest if self.deadline(rest) >= end else None

    def pass_time(self, at: Configuration, until: int) -> Configuration | None:
        """Fires the timers of what NOT forbids, up to a time; None if it can go nowhere now."""
        if not self.inner or not any(reader.timed for reader in self.inner.values()):
            return at
        spoilt, runs = set(at.spoilt), {}
        for number, run in at.runs:
            found = self.inner[number].run_time(run, until)
            if found is None:
                spoilt.add(number)
            runs[number] = found or frozenset()
        return self._kept(at, spoilt, runs, None)

    def run_time(
        self, run: frozenset[Configuration], until: int
    ) -> frozenset[Configuration] | None:
        """As `run`, for the timers up to a time."""
        todo, after = list(run), set[Configuration]()
        while todo:
            at = todo.pop()
            due = min((t for t in self.timers(at) if t[0] <= until), key=_when, default=None)
            now = self.pass_time(at, until if due is None else due[0])
            if now is None or due is None or now.spoilt.intersection(due[1].nots):
                after.update([now] if now is not None and due is None else [])
                todo += [now] if now is not None and due is not None else []
                continue
            moved, rest = self.fire(now, due[1], due[0])
            if moved is not None and self.final(moved):
                return None
            todo += [c for c in (moved, rest) if c is not None]
        return frozenset(after)

    def _kept(
        self,
        at: Configuration,
        spoilt: set[int],
        runs: dict[int, frozenset[Configuration]],
        time: int | None,
    ) -> Configuration | None:
        running = tuple((n, run) for n, run in sorted(runs.items()) if run and n not in spoilt)
        after = replace(at, spoilt=frozenset(spoilt), runs=running)
        deadline = self.deadline(after)
        return after if deadline > -inf and (time is None or deadline >= time) else None

    def _moved(
        self, at: Configuration, by: Transition, values: tuple[int, ...], time: int
    ) -> Configuration | None:
        """At the target of a transition; None if a HOLDS FOR ends there too early."""
        entries = list(at.entries)
        for zone in by.leaves:
            entries[zone] = None
        timer = self.automaton.positions[by.target].timer
        for zone in by.enters:
            entries[zone] = time if timer is None else at.last
        after = Configuration(by.target, values, tuple(entries), time)
        return after if _have_held(after, by.early, time) else None

    def _end(self, at: Configuration, transition: Transition) -> int | None:
        """When a transition's timer fires; None if it has none."""
        timer = self.automaton.positions[transition.target].timer
        if timer is None:
            return None
        zone, length = timer
        entry = at.last if zone in transition.enters else at.entries[zone]
        return None if entry is None else entry + length

    def _until(self, at: Configuration, transition: Transition) -> float:
        """The last time at which a transition can be used; of a timer, when it fires."""
        latest = self._latest(at, transition)
        end = self._end(at, transition)
        if end is None:
            return latest
        return end if end <= latest else -inf

    def _latest(self, at: Configuration, transition: Transition) -> float:
        fresh = transition.enters
        return max(
            (
                min((_entry(at, z, fresh) + amount for z, amount in bound.latest), default=inf)
                for bound in transition.bounds
                if all(
                    _entry(at, i, fresh) + amount <= _entry(at, o, fresh)
                    for i, o, amount in bound.order
                )
            ),
            default=-inf,
        )


def _entry(at: Configuration, zone: int, fresh: tuple[int, ...]) -> int:
    """When a zone began; one that a timer's transition begins does so at the position before."""
    entry = None if zone in fresh else at.entries[zone]
    return at.last if entry is None else entry


def _have_held(at: Configuration, spans: Spans, time: int) -> bool:
    return all(time - (at.entries[zone] or 0) >= least for zone, least in spans)


def _when(timer: tuple[int, Transition]) -> int:
    return timer[0]


def distinct(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Each once, in order.

    >>> at = Configuration(1, (), (), 0)
    >>> len(distinct([at, at]))
    1
    """
    return list(dict.fromkeys(configurations))


def _nots(automaton: Automaton) -> list[frozenset[int]]:
    """The NOTs to look out for at each position."""
    return [frozenset(n for t in out for n in t.nots) for out in automaton.transitions]


NEVER: Final = 1 << 62
"""Later than any time."""


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A complex event: its parameters' values, its time, the time of its first event.

    `used` are the numbers of its events, counted as they came, from 0.
    """

    values: tuple[int, ...]
    time: int
    start: int
    used: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Token:
    """An instance. `order` says how old it is among all; `key` are its values of PER."""

    order: int
    start: int
    key: tuple[int, ...]
    used: list[int]
    configurations: list[Configuration]
    due: set[float] = field(default_factory=set)
    """When it has been noted to be looked at again."""

    def forward(self, uses: list[Used]) -> bool:
        """Does an event take it forward, or at least not only round a loop again?"""
        return any(not use.spare for use in uses)

    def uses(self, reader: ConfigurationMover, event: Event) -> list[Used]:
        """All ways to use an event."""
        return [use for at in self.configurations for use in reader.use(at, event)]

    def take(self, reader: ConfigurationMover, uses: list[Used], event: Event, number: int) -> None:
        """Uses an event: the readings that used it are those that are left."""
        self.used.append(number)
        self.settle(reader, [use.after for use in uses if use.after is not None], event.time)

    def settle(self, reader: ConfigurationMover, after: list[Configuration], time: int) -> None:
        """Keeps the configurations that are at the end or can still get there."""
        self.configurations = distinct(
            at for at in after if reader.final(at) or reader.deadline(at) >= time
        )

    def miss(self, reader: ConfigurationMover, event: Event) -> bool:
        """An event that it has not used; False if it can go nowhere now."""
        kept = (reader.miss(at, event) for at in self.configurations)
        self.configurations = distinct(at for at in kept if at is not None)
        return bool(self.configurations)

    def ends(self, reader: ConfigurationMover) -> list[Configuration]:
        """The readings that are complete."""
        return [at for at in self.configurations if reader.final(at)]

    def deadline(self, reader: ConfigurationMover) -> float:
        """The last time at which it can go on."""
        return max(map(reader.deadline, self.configurations), default=-inf)

    def timer(self, reader: ConfigurationMover) -> float:
        """When its next timer fires."""
        ends = (end for at in self.configurations for end, _ in reader.timers(at))
        return min(ends, default=inf)

    def fire(self, reader: ConfigurationMover, time: int) -> None:
        """Fires the timers of a time; readings that wait for something else stay."""
        passed = (reader.pass_time(at, time) for at in self.configurations)
        after: list[Configuration] = []
        for at in passed:
            if at is None:
                continue
            rest: Configuration | None = at
            for end, transition in list(reader.timers(at)):
                if end == time and rest is not None:
                    moved, rest = reader.fire(rest, transition, time)
                    after += [moved] if moved is not None else []
            after += [rest] if rest is not None else []
        self.settle(reader, after, time)
