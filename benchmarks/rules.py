"""AlarmConfirmation, the rule of paper 2, over facts and events: Graphtide beside CLIPS.

A confirmation counts if it is 1 to 5 ticks after an alarm of an active equipment. Events are
applied as ids, as Arrow columns of texts, and one call per event. Nothing here imports the engine:
the process that measures CLIPS must not load it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.harness import Benchmark, BenchmarkError, peak_rss_mb
from benchmarks.report import Cell, Report, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PEER: Final = "clipspy"
INPUTS: Final = ("ids", "texts", "calls", PEER)
"""How events are applied to Graphtide; and the peer."""

MAX_CALLS: Final = 50_000
"""Events that are applied one by one: the rate is the same for more."""

WARM_EQUIPMENTS, WARM_EVENTS = 100, 3000

ALARMS_PER_TICK: Final = 200

CONFIRMED: Final = 0.6
ACTIVE: Final = 0.8
"""Share of alarms that are confirmed, in time or not; share of equipments that are active."""

LATEST: Final = 8
"""Confirmations are 1 to 8 ticks after their alarms."""

LOW, HIGH = 1, 5
"""Ticks after an alarm in which a confirmation counts."""


@dataclass(frozen=True, slots=True)
class RulesTask:
    """A way to apply the events, and the size of the workload."""

    way: str
    equipments: int
    events: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.way}: {self.equipments:,} equipments, {self.events:,} events"


@dataclass(frozen=True, slots=True)
class RulesResult:
    """Events per second; the rule fired for exactly the pairs that follow from the data."""

    way: str
    equipments: int
    events: int
    events_per_s: int
    firings: int
    rss_mb: float


@dataclass(frozen=True, slots=True)
class FiringFigures:
    """What an engine reports: the seconds it took, its firings, and a checksum of their pairs."""

    seconds: float
    firings: int
    checksum: int


@dataclass(frozen=True, slots=True)
class AlarmWorkload:
    """Events in order of time. `subject` numbers alarms, or confirmations from `alarms` on.

    `about` is the equipment of an alarm, or the alarm of a confirmation.
    """

    active: NDArray[np.bool_]
    alarms: int
    confirms: NDArray[np.bool_]
    subject: NDArray[np.int64]
    about: NDArray[np.int64]
    time: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)

    def first(self, events: int) -> AlarmWorkload:
        """The first events only."""
        return AlarmWorkload(
            self.active, self.alarms, self.confirms[:events], self.subject[:events],
            self.about[:events], self.time[:events],
        )  # fmt: skip

    def expected(self) -> tuple[int, int]:
        """The number of firings that follow from the data, and the checksum of their pairs."""
        raised = np.zeros(self.alarms, np.int64)
        own = np.zeros(self.alarms, np.int64)
        alarm = ~self.confirms
        raised[self.subject[alarm]] = self.time[alarm]
        own[self.subject[alarm]] = self.about[alarm]
        about, by = self.about[self.confirms], self.subject[self.confirms]
        delay = self.time[self.confirms] - raised[about]
        fires = (delay >= LOW) & (delay <= HIGH) & self.active[own[about]]
        return int(fires.sum()), checksum(about[fires], by[fires])


def checksum(alarms: NDArray[np.int64], confirmations: NDArray[np.int64]) -> int:
    """A checksum of pairs that does not depend on their order.

    >>> one = checksum(np.array([1, 2]), np.array([3, 4]))
    >>> one == checksum(np.array([2, 1]), np.array([4, 3]))
    True
    """
    a, c = alarms.astype(np.uint64), confirmations.astype(np.uint64)
    mixed = (a * np.uint64(0x9E3779B97F4A7C15)) ^ (c * np.uint64(0xBF58476D1CE4E5B9))
    return int((mixed >> np.uint64(16)).sum() % np.uint64(1 << 48))


def make_workload(equipments: int, events: int, seed: int) -> AlarmWorkload:
    """About `events` events: alarms of random equipments, and confirmations of some of them.

    >>> load = make_workload(10, 100, 0)
    >>> len(load) >= 90, bool((load.time[1:] >= load.time[:-1]).all())
    (True, True)
    """
    rng = np.random.default_rng(seed)
    alarms = max(1, round(events / (1 + CONFIRMED)))
    time = np.arange(alarms) // ALARMS_PER_TICK
    chosen = np.flatnonzero(rng.random(alarms) < CONFIRMED)
    later = time[chosen] + rng.integers(1, LATEST + 1, len(chosen))
    times = np.concatenate([time, later])
    order = np.argsort(times, kind="stable")
    subject = np.arange(alarms + len(chosen))
    about = np.concatenate([rng.integers(0, equipments, alarms), chosen])
    return AlarmWorkload(
        active=rng.random(equipments) < ACTIVE,
        alarms=alarms,
        confirms=subject[order] >= alarms,
        subject=subject[order],
        about=about[order],
        time=times[order],
    )


def make_tasks(
    sizes: Sequence[int] = (1_000, 10_000, 100_000), events: int = 300_000, seed: int = 0
) -> list[RulesTask]:
    """All ways to apply about so many events, and clipspy, for each number of equipments."""
    return [RulesTask(way, size, events, seed) for size in sizes for way in INPUTS]


def measure(task: RulesTask) -> RulesResult:
    """Apply all events; raises unless the rule fired for exactly the right pairs."""
    workload = make_workload(task.equipments, task.events, task.seed)
    if task.way == "calls":
        workload = workload.first(MAX_CALLS)
    figures = _run(task.way, workload)
    rss_mb = peak_rss_mb()
    expected = workload.expected()
    if (figures.firings, figures.checksum) != expected:
        raise BenchmarkError(
            f"{task.way} fired {figures.firings} times, expected are {expected[0]}"
        )
    return RulesResult(
        way=task.way,
        equipments=task.equipments,
        events=len(workload),
        events_per_s=round(len(workload) / figures.seconds),
        firings=figures.firings,
        rss_mb=rss_mb,
    )


def _run(way: str, workload: AlarmWorkload) -> FiringFigures:
    if way == PEER:
        from benchmarks.peers import clips_alarms

        return clips_alarms(workload)
    from benchmarks import rules_engine

    return rules_engine.INPUTS[way](workload)


def report(results: Sequence[RulesResult]) -> Report:
    """Events per second, and the ratio to clipspy at the same number of equipments."""
    peers = {r.equipments: r.events_per_s for r in results if r.way == PEER}
    rows: list[dict[str, Cell]] = [
        {
            "equipments": r.equipments,
            "from": r.way,
            "events": r.events,
            "firings": r.firings,
            "events/s": r.events_per_s,
            "× clipspy": r.events_per_s / peers[r.equipments],
            "MB": round(r.rss_mb),
        }
        for r in results
    ]
    return Report([Table("AlarmConfirmation", rows)])


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=RulesTask,
    result=RulesResult,
    tasks=make_tasks,
    small={"sizes": (30,), "events": 2000},
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, equipments=WARM_EQUIPMENTS, events=WARM_EVENTS)],
    garbage_collection=True,
)
