"""Alarms of random equipments, and confirmations of some of them: in time, or too late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Longs = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

PER_TICK = 200
"""Alarms at each tick."""

CONFIRMED = 0.6
ACTIVE = 0.8
"""How many alarms are confirmed, sooner or later; how many equipments are active."""

LATEST = 8
"""Confirmations come 1 to so many ticks after their alarms; up to 5 is in time."""

LOW, HIGH = 1, 5


@dataclass(frozen=True, slots=True)
class Workload:
    """Events in order of time. `subject` numbers alarms, or confirmations from `alarms` on.

    `about` is the equipment of an alarm, or the alarm of a confirmation.
    """

    active: Flags
    alarms: int
    confirms: Flags
    subject: Longs
    about: Longs
    time: Longs

    def __len__(self) -> int:
        return len(self.time)

    def first(self, events: int) -> Workload:
        """Some events only, from the first on."""
        return Workload(
            self.active, self.alarms, self.confirms[:events], self.subject[:events],
            self.about[:events], self.time[:events],
        )  # fmt: skip

    def expected(self) -> tuple[int, int]:
        """How many firings there have to be, and the checksum of their pairs."""
        raised = np.zeros(self.alarms, np.int64)
        own = np.zeros(self.alarms, np.int64)
        alarm = ~self.confirms
        raised[self.subject[alarm]] = self.time[alarm]
        own[self.subject[alarm]] = self.about[alarm]
        about, by = self.about[self.confirms], self.subject[self.confirms]
        late = self.time[self.confirms] - raised[about]
        fires = (late >= LOW) & (late <= HIGH) & self.active[own[about]]
        return int(fires.sum()), checksum(about[fires], by[fires])


def checksum(alarms: Longs, confirmations: Longs) -> int:
    """A number that pairs have in any order, and hardly any others.

    >>> one = checksum(np.array([1, 2]), np.array([3, 4]))
    >>> one == checksum(np.array([2, 1]), np.array([4, 3]))
    True
    """
    a, c = alarms.astype(np.uint64), confirmations.astype(np.uint64)
    mixed = (a * np.uint64(0x9E3779B97F4A7C15)) ^ (c * np.uint64(0xBF58476D1CE4E5B9))
    return int((mixed >> np.uint64(16)).sum() % np.uint64(1 << 48))


def make_workload(equipments: int, events: int, seed: int) -> Workload:
    """About so many events.

    >>> load = make_workload(10, 100, 0)
    >>> len(load) >= 90, bool((load.time[1:] >= load.time[:-1]).all())
    (True, True)
    """
    rng = np.random.default_rng(seed)
    alarms = max(1, round(events / (1 + CONFIRMED)))
    time = np.arange(alarms) // PER_TICK
    chosen = np.flatnonzero(rng.random(alarms) < CONFIRMED)
    later = time[chosen] + rng.integers(1, LATEST + 1, len(chosen))
    times = np.concatenate([time, later])
    order = np.argsort(times, kind="stable")
    subject = np.arange(alarms + len(chosen))
    about = np.concatenate([rng.integers(0, equipments, alarms), chosen])
    return Workload(
        active=rng.random(equipments) < ACTIVE,
        alarms=alarms,
        confirms=subject[order] >= alarms,
        subject=subject[order],
        about=about[order],
        time=times[order],
    )
