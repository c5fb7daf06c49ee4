"""Tokens (instances of a pattern) and configurations (ways to read the events of a token)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from graphtide.patterns.gather import Gathered, GatheredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from graphtide.patterns.automaton import Automaton, Spans, Transition


class Event(NamedTuple):
    """One way to read an event: its type, values (ids) and time."""

    type: int
    values: tuple[int, ...]
    time: int


@dataclass(frozen=True, slots=True)
class Configuration:
    """A state of the nondeterministic automaton: one way to read the events of a token.

    `entries` are the times at which zones began (None: not active), `last` is the time of the
    position. `violated` are the NOTs that were violated since, `runs` the partial matches of
    composite NOTs, `fired` the timer positions that it was copied to. `noisy`: there was noise
    since, in a context that allows it only where a NOT applies. `gathered` are the events that
    conditions and computed parameters refer to.
    """

    position: int
    values: tuple[int, ...]
    entries: tuple[int | None, ...]
    last: int
    violated: frozenset[int] = frozenset()
    runs: tuple[tuple[int, frozenset[Configuration]], ...] = ()
    fired: frozenset[int] = frozenset()
    noisy: bool = False
    gathered: Gathered = ()


class Used(NamedTuple):
    """An event was consumed: the configuration after it, None if a HOLDS FOR ended too early."""

    after: Configuration | None
    spare: bool


class ConfigurationMover:
    """Moves configurations of one automaton."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.inner = {n.number: ConfigurationMover(n.automaton) for n in automaton.negations}
        self.watched = _nots(automaton)
        greedy = any(t.greedy for out in automaton.transitions for t in out)
        self._plain = not (greedy or automaton.gathers or automaton.gathered)
        """Whether events are compared by their values alone: the common case, without detours."""
        self.timed: bool = any(p.timer for p in automaton.positions) or any(
            r.timed for r in self.inner.values()
        )

    def start(self, values: tuple[int, ...], gathered: Gathered = ()) -> Configuration:
        """The initial configuration; `values` are the slots that are bound already."""
        start = gathered or ((),) * self.automaton.gathered
        return Configuration(0, values, (None,) * len(self.automaton.zones), 0, gathered=start)

    def use(self, at: Configuration, ways: Sequence[Event]) -> Iterator[Used]:
        """All ways to consume an event, which may be of several types."""
        if self._plain:
            for transition in self.open(at):
                letter = self.automaton.positions[transition.target].letter
                for event in ways if letter is not None else ():
                    values = letter.match(event, at.values)  # type: ignore[union-attr]
                    if values is not None and event.time <= self._latest(at, transition):
                        after = self._moved(at, transition, values, event.time, ())
                        yield Used(after, transition.spare)
            return
        used = [
            (transition, event, found)
            for transition in self.open(at)
            for event in ways
            if (found := self._taken(at, transition, event)) is not None
        ]
        greedy = {loop for transition, *_ in used for loop in transition.greedy}
        for transition, event, (values, gathered) in used:
            if greedy.isdisjoint(transition.past):
                after = self._moved(at, transition, values, event.time, gathered)
                yield Used(after, transition.spare)

    def _taken(
        self, at: Configuration, transition: Transition, event: Event
    ) -> tuple[tuple[int, ...], Gathered] | None:
        """The slots and gathered events after an event; None if the transition cannot take it."""
        position = self.automaton.positions[transition.target]
        values = None if position.letter is None else position.letter.match(event, at.values)
        if values is None or event.time > self._latest(at, transition):
            return None
        gathered = at.gathered
        if position.gathers is not None:
            own = (*gathered[position.gathers], GatheredEvent(event.values, event.time))
            gathered = (*gathered[: position.gathers], own, *gathered[position.gathers + 1 :])
        if position.condition is not None:
            evaluator = self.automaton.evaluator
            assert evaluator is not None  # noqa: S101 - who runs such a pattern gives terms
            if not evaluator.holds(position.condition, values, gathered):
                return None
        return values, gathered

    def open(self, at: Configuration) -> Iterator[Transition]:
        """The transitions that are not blocked."""
        for transition in self.automaton.transitions[at.position]:
            closed = (
                at.violated.intersection(transition.nots)
                or transition.target in at.fired
                or (at.noisy and not transition.nots)
            )
            if not closed and _have_held(at, transition.held, at.last):
                yield transition

    def miss(
        self, at: Configuration, ways: Sequence[Event], time: int, *, noise: bool = False
    ) -> Configuration | None:
        """The configuration after an event that it did not consume; None if it is dead."""
        watched = self.watched[at.position]
        if not watched:
            return None if noise else at
        violated, runs = set(at.violated), dict(at.runs)
        for number in watched.difference(violated):
            letter = self.automaton.negations[number].letter
            if letter is not None:
                seen = any(letter.match(event, at.values) is not None for event in ways)
            else:
                run = runs.get(number, frozenset())
                after = self.inner[number].run(run, ways, time, at)
                seen, runs[number] = after is None, after or frozenset()
            if seen:
                violated.add(number)
        if noise:
            at = replace(at, noisy=True)
        return self._after_miss(at, violated, runs, time)

    def run(
        self,
        run: frozenset[Configuration],
        ways: Sequence[Event],
        time: int,
        outer: Configuration,
    ) -> frozenset[Configuration] | None:
        """All partial matches of a NOT after one more event; None if one of them is complete."""
        after: set[Configuration] = set()
        for at in (*run, self.start(outer.values, outer.gathered)):
            for used in self.use(at, ways):
                if used.after is not None and self.final(used.after):
                    return None
                after.update([used.after] if used.after is not None else [])
            stays = self.miss(at, ways, time) if at.position else None
            after.update([stays] if stays is not None else [])
        return frozenset(at for at in after if self.deadline(at) >= time)

    def final(self, at: Configuration) -> bool:
        """Whether it accepts."""
        ends = self.automaton.positions[at.position].final
        return any(_have_held(at, held, at.last) for held in ends)

    def deadline(self, at: Configuration) -> float:
        """The last time at which it can move; -inf if it cannot."""
        return max((self._until(at, t) for t in self.open(at)), default=-inf)

    def timers(self, at: Configuration) -> Iterator[tuple[int, Transition]]:
        """The timers of open transitions, with their times."""
        for transition in self.open(at):
            end = self._end(at, transition)
            if end is not None and self._until(at, transition) >= end:
                yield end, transition

    def fire(
        self, at: Configuration, transition: Transition, end: int
    ) -> tuple[Configuration | None, Configuration | None]:
        """Fire a timer: the configuration after it, and the one that ignores it (if any)."""
        after = self._moved(at, transition, at.values, end, at.gathered)
        rest = replace(at, fired=at.fired | {transition.target})
        return after, rest if self.deadline(rest) >= end else None

    def pass_time(self, at: Configuration, until: int) -> Configuration | None:
        """Fire the timers of composite NOTs, up to a time; None if it cannot complete now."""
        if not self.inner or not any(reader.timed for reader in self.inner.values()):
            return at
        violated, runs = set(at.violated), {}
        for number, run in at.runs:
            found = self.inner[number].run_time(run, until)
            if found is None:
                violated.add(number)
            runs[number] = found or frozenset()
        return self._after_miss(at, violated, runs, None)

    def run_time(
        self, run: frozenset[Configuration], until: int
    ) -> frozenset[Configuration] | None:
        """`run` for the timers up to a time."""
        todo, after = list(run), set[Configuration]()
        while todo:
            at = todo.pop()
            due = min((t for t in self.timers(at) if t[0] <= until), key=_when, default=None)
            now = self.pass_time(at, until if due is None else due[0])
            if now is None or due is None or now.violated.intersection(due[1].nots):
                after.update([now] if now is not None and due is None else [])
                todo += [now] if now is not None and due is not None else []
                continue
            moved, rest = self.fire(now, due[1], due[0])
            if moved is not None and self.final(moved):
                return None
            todo += [c for c in (moved, rest) if c is not None]
        return frozenset(after)

    def _after_miss(
        self,
        at: Configuration,
        violated: set[int],
        runs: dict[int, frozenset[Configuration]],
        time: int | None,
    ) -> Configuration | None:
        running = tuple((n, run) for n, run in sorted(runs.items()) if run and n not in violated)
        after = replace(at, violated=frozenset(violated), runs=running)
        deadline = self.deadline(after)
        return after if deadline > -inf and (time is None or deadline >= time) else None

    def _moved(
        self,
        at: Configuration,
        by: Transition,
        values: tuple[int, ...],
        time: int,
        gathered: Gathered,
    ) -> Configuration | None:
        """The configuration at the target; None if a HOLDS FOR ends there too early."""
        entries = list(at.entries)
        for zone in by.leaves:
            entries[zone] = None
        timer = self.automaton.positions[by.target].timer
        for zone in by.enters:
            entries[zone] = time if timer is None else at.last
        after = Configuration(by.target, values, tuple(entries), time, gathered=gathered)
        return after if _have_held(after, by.early, time) else None

    def _end(self, at: Configuration, transition: Transition) -> int | None:
        """The time of a transition's timer; None if it has none."""
        timer = self.automaton.positions[transition.target].timer
        if timer is None:
            return None
        zone, length = timer
        entry = at.last if zone in transition.enters else at.entries[zone]
        return None if entry is None else entry + length

    def _until(self, at: Configuration, transition: Transition) -> float:
        """The last time at which a transition can be taken; of a timer, its time."""
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
    """The time at which a zone began; a timer's own zone begins at the position before."""
    entry = None if zone in fresh else at.entries[zone]
    return at.last if entry is None else entry


def _have_held(at: Configuration, spans: Spans, time: int) -> bool:
    return all(time - (at.entries[zone] or 0) >= least for zone, least in spans)


def _when(timer: tuple[int, Transition]) -> int:
    return timer[0]


def distinct(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Without duplicates, in order.

    >>> at = Configuration(1, (), (), 0)
    >>> len(distinct([at, at]))
    1
    """
    return list(dict.fromkeys(configurations))


def _nots(automaton: Automaton) -> list[frozenset[int]]:
    """The NOTs that apply at each position."""
    return [frozenset(n for t in out for n in t.nots) for out in automaton.transitions]


NEVER: Final = 1 << 62
"""Later than any time."""


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A match: the values of the parameters, its time, the time of its first event.

    `used` are the indices of its events in the input.
    """

    values: tuple[int, ...]
    time: int
    start: int
    used: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Token:
    """An instance of a pattern. `order` is its rank by age, `key` its values of PER."""

    order: int
    start: int
    key: tuple[int, ...]
    used: list[int]
    configurations: list[Configuration]
    due: set[float] = field(default_factory=set)
    """Times for which it is in the timer queue."""

    def rows(self) -> Iterator[tuple[int, ...]]:
        """All values that it holds: its key, and those of its configurations."""
        yield self.key
        ahead = list(self.configurations)
        while ahead:
            at = ahead.pop()
            yield at.values
            yield from (event.values for events in at.gathered for event in events)
            ahead += [inner for _, run in at.runs for inner in run]

    def forward(self, uses: list[Used]) -> bool:
        """Whether a use does more than repeat a loop."""
        return any(not use.spare for use in uses)

    def uses(self, reader: ConfigurationMover, ways: Sequence[Event]) -> list[Used]:
        """All ways to consume an event."""
        return [use for at in self.configurations for use in reader.use(at, ways)]

    def take(self, reader: ConfigurationMover, uses: list[Used], time: int, number: int) -> None:
        """Consume an event: only the configurations that used it remain."""
        self.used.append(number)
        self.retain(reader, [use.after for use in uses if use.after is not None], time)

    def retain(self, reader: ConfigurationMover, after: list[Configuration], time: int) -> None:
        """Retain the configurations that accept or can still get there."""
        self.configurations = distinct(
            at for at in after if reader.final(at) or reader.deadline(at) >= time
        )

    def miss(
        self, reader: ConfigurationMover, ways: Sequence[Event], time: int, *, noise: bool
    ) -> bool:
        """An event that it did not consume; False if it cannot complete now."""
        after = (reader.miss(at, ways, time, noise=noise) for at in self.configurations)
        self.configurations = distinct(at for at in after if at is not None)
        return bool(self.configurations)

    def ends(self, reader: ConfigurationMover) -> list[Configuration]:
        """The configurations that accept."""
        return [at for at in self.configurations if reader.final(at)]

    def deadline(self, reader: ConfigurationMover) -> float:
        """The last time at which it can move."""
        return max(map(reader.deadline, self.configurations), default=-inf)

    def timer(self, reader: ConfigurationMover) -> float:
        """The time of its next timer."""
        ends = (end for at in self.configurations for end, _ in reader.timers(at))
        return min(ends, default=inf)

    def fire(self, reader: ConfigurationMover, time: int) -> None:
        """Fire the timers of a time; configurations without one stay."""
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
        self.retain(reader, after, time)
