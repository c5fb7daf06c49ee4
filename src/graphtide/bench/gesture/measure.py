"""Measurements: the event engine alone, and the whole chain from attributes to gestures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

import numpy as np

from graphtide.bench.gesture.at_work import AtWork
from graphtide.bench.gesture.chain import Chain
from graphtide.bench.gesture.events import TYPES, atomic_events
from graphtide.bench.gesture.model import FRAME_MS, FRAMES_A_SECOND, Stage
from graphtide.bench.gesture.positions import CYCLE
from graphtide.bench.gesture.queries import GESTURE, program_text
from graphtide.bench.gesture.texts import Coder
from graphtide.bench.gesture.vocabulary import CHANGES
from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.sequence.detector import make_detector
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.bench.gesture.texts import Columns
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.kernel.batch import Longs

Answer = TypeVar("Answer")
Mode = Literal["events", "chain, ids", "chain, terms", "program, ids"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
"""The event engine alone; the chain of its parts, fed with ids or with texts; the same as a program
that a user would write, with a rule that fires for each gesture."""

ENOUGH_S: Final = 1.0
"""A measurement goes on for about so long."""

FEWEST_CYCLES: Final = 3

MOST_TRIES: Final = 10
"""Numbers of bodies that are tried, to find the largest that keeps pace."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to measure: so many bodies, or from there on the most that keep pace with a camera."""

    bodies: int
    mode: Mode
    enough_s: float = ENOUGH_S
    search: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """So many atomic events, gestures and frames in so many seconds.

    `speed` is how much faster the frames were gone through than a camera makes them. `busy` is the
    share of the time in which this process had a core to itself: on a busy machine, less than 1.
    """

    name: str
    mode: str
    bodies: int
    events: int
    matches: int
    frames: int
    seconds: float
    events_per_s: float
    matches_per_s: float
    updates_per_s: float
    speed: float
    slowest_ms: float
    busy: float
    rss_mb: float


class Times:
    """How long each of some calls took, and how much of that was work."""

    def __init__(self) -> None:
        self.each: list[float] = []
        self.cpu_s = 0.0

    @property
    def seconds(self) -> float:
        """All of them."""
        return sum(self.each)

    def of(self, call: Callable[[], Answer]) -> Answer:
        """Make a call and note how long it takes."""
        busy, start = process_time(), perf_counter()
        answer = call()
        self.each.append(perf_counter() - start)
        self.cpu_s += process_time() - busy
        return answer


def measure(task: Task) -> Result:
    """Measure a task.

    >>> measure(Task(2, "events", enough_s=0.01)).matches % 2
    0
    """
    if task.search:
        return _most(task)
    return (_events if task.mode == "events" else _chain)(task)


def _most(task: Task) -> Result:
    """The largest number of bodies that was seen to keep pace, to about a twentieth."""
    best: Result | None = None
    too_many: int | None = None
    bodies = task.bodies
    for _ in range(MOST_TRIES):
        result = measure(replace(task, bodies=bodies, search=False))
        if result.speed >= 1:
            best = result if best is None or result.bodies > best.bodies else best
        else:
            too_many = bodies if too_many is None else min(too_many, bodies)
        least = 0 if best is None else best.bodies
        if too_many is None:
            bodies = round(bodies * min(max(result.speed, 1.1), 4))
        elif too_many > least * 1.05 + 1:
            bodies = (least + too_many) // 2
        else:
            break
    if best is None:
        raise GraphtideError("not even one body could be followed at 25 frames a second")
    return replace(best, name="most bodies")


def _events(task: Task) -> Result:
    """Feed atomic events, a turn of all arms at a time, until enough time has been measured."""
    (pattern,) = (p for p in Program.parse(program_text()).patterns if p.name == GESTURE)
    detector = make_detector(pattern, TYPES, tick_ms=1)
    times = Times()
    found = events = 0
    at_once = max(1, 2_000 // task.bodies)
    while times.seconds < task.enough_s:
        batch = _turns(task.bodies, len(times.each) * at_once, at_once)
        columns = times.of(partial(detector.feed, *batch))
        events += len(batch[0])
        found += len(columns.time)
    return _result(task, times, len(times.each) * at_once, events, found)


def _turns(bodies: int, first: int, count: int) -> tuple[Longs, Longs, Longs]:
    """Events of some turns, as if those of a batch were over before the next begins."""
    types, values, times = atomic_events(Stage(bodies, count))
    return types, values, times + first * 2 * CYCLE * FRAME_MS


def _chain(task: Task) -> Result:
    """Play a stage, frame by frame, as often as enough time is measured."""
    cycles = FEWEST_CYCLES
    while True:
        times, events, found = _play(Stage(task.bodies, cycles), task.mode)
        if times.seconds >= task.enough_s or cycles >= FEWEST_CYCLES << 10:
            return _result(task, times, cycles, events, found)
        cycles = round(cycles * min(max(1.2 * task.enough_s / times.seconds, 2), 100))


def _play(stage: Stage, mode: Mode) -> tuple[Times, int, int]:
    """The time of each frame, atomic events and gestures; the model is loaded before."""
    coder, times = Coder(stage), Times()
    chain = AtWork() if mode == "program, ids" else Chain()
    frames = frame_takers(coder, chain.graph, mode)
    next(frames)()
    for take in frames:
        times.of(partial(_take, take, chain))
    return times, chain.events, chain.gestures


def _take(take: Callable[[], None], chain: Chain | AtWork) -> None:
    take()
    chain.listen()


def frame_takers(coder: Coder, graph: LiveGraph, mode: Mode) -> Iterator[Callable[[], None]]:
    """For each frame, what hands it to the graph: as ids, or as columns of texts."""
    ids = None if mode == "chain, terms" else coder.ids(graph.terms)
    for frame in coder.frames():
        if ids is None:
            yield partial(_apply_texts, graph, frame.columns())
        else:
            s, p, o = np.ascontiguousarray(ids[frame.coded.rows].T)
            diff, (time, tx) = frame.diff.astype(np.int32), frame.stamps()
            yield partial(graph.apply_ids, s, p, o, diff=diff, time=time, tx=tx)


def _apply_texts(graph: LiveGraph, columns: Columns) -> None:
    graph.apply(ChangeBatch(*columns))


def _result(task: Task, times: Times, cycles: int, events: int, found: int) -> Result:
    if found != task.bodies * cycles or events != 6 * found:
        raise GraphtideError(
            f"{task.bodies} bodies made {task.bodies * cycles} gestures, {found} were found, "
            f"with {events} events",
            hint="this is a bug: please report it",
        )
    whole = task.mode != "events"
    seconds = times.seconds
    # Without a graph there are no frames: a turn of the arms stands for those it takes.
    frames = len(times.each) if whole else cycles * CYCLE
    return Result(
        name="gesture",
        mode=task.mode,
        bodies=task.bodies,
        events=events,
        matches=found,
        frames=frames,
        seconds=seconds,
        events_per_s=events / seconds,
        matches_per_s=found / seconds,
        updates_per_s=frames * task.bodies * CHANGES / seconds if whole else 0.0,
        speed=frames / seconds / FRAMES_A_SECOND,
        slowest_ms=max(times.each) * 1000 if whole else 0.0,
        busy=times.cpu_s / seconds,
        rss_mb=peak_rss_mb(),
    )
