"""A token is an instance: the events that it has used, and every way to read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from graphtide.events.configuration import distinct

if TYPE_CHECKING:
    from graphtide.events.configuration import Configuration, Event, Reader, Used


NEVER: Final = 1 << 62
"""Later than any time."""


@dataclass(frozen=True, slots=True)
class Found:
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

    def uses(self, reader: Reader, event: Event) -> list[Used]:
        """All ways to use an event."""
        return [use for at in self.configurations for use in reader.use(at, event)]

    def take(self, reader: Reader, uses: list[Used], event: Event, number: int) -> None:
        """Uses an event: the readings that used it are those that are left."""
        self.used.append(number)
        self.settle(reader, [use.after for use in uses if use.after is not None], event.time)

    def settle(self, reader: Reader, after: list[Configuration], time: int) -> None:
        """Keeps the configurations that are at the end or can still get there."""
        self.configurations = distinct(
            at for at in after if reader.final(at) or reader.deadline(at) >= time
        )

    def miss(self, reader: Reader, event: Event) -> bool:
        """An event that it has not used; False if it can go nowhere now."""
        kept = (reader.miss(at, event) for at in self.configurations)
        self.configurations = distinct(at for at in kept if at is not None)
        return bool(self.configurations)

    def ends(self, reader: Reader) -> list[Configuration]:
        """The readings that are complete."""
        return [at for at in self.configurations if reader.final(at)]

    def deadline(self, reader: Reader) -> float:
        """The last time at which it can go on."""
        return max(map(reader.deadline, self.configurations), default=-inf)

    def timer(self, reader: Reader) -> float:
        """When its next timer fires."""
        ends = (end for at in self.configurations for end, _ in reader.timers(at))
        return min(ends, default=inf)

    def fire(self, reader: Reader, time: int) -> None:
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
