"""Gestures of bodies before a camera: the event engine alone, and the chain from coordinates.

The case study of paper 4. A frame is a transaction; how many bodies can be followed at the camera's
25 frames per second? `Chain` connects posture queries and a pattern detector by hand;
`ProgramChain` runs the same as a program on a live graph, with a rule that fires for each gesture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from benchmarks.datasets import gesture_scene
from benchmarks.datasets.gesture import FrameColumns, GestureEncoder
from benchmarks.datasets.queries import GESTURE, program_text
from benchmarks.harness import Benchmark, BenchmarkError, peak_rss_mb
from benchmarks.report import Cell, Panel, Plot, Report, Table, group_points
from benchmarks.sequence import pattern_detector
from graphtide.graph import LiveGraph
from graphtide.kernel.batch import DIFF, TX, Ints, Longs
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.lang.tide.ast import QueryChange
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.engine.results import TransactionTimes
    from graphtide.engine.watch import Query
    from graphtide.patterns.general import MatchColumns

Answer = TypeVar("Answer")
Mode = Literal["events", "chain, ids", "chain, terms", "program, ids", "program, smoothed"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
"""The event engine alone; the chain, fed with ids or with texts; the same as a program of a user,
with a rule that fires for each gesture; and that with an angle of the arm that is smoothed."""

SMOOTH: Final = 2
"""Frames of the moving average: with more, the postures of the recording would be too short."""

ENOUGH_S: Final = 1.0
"""Target duration of a measurement."""

MIN_CYCLES: Final = 3
MAX_CYCLES: Final = MIN_CYCLES << 10
EVENTS_PER_BATCH: Final = 2_000

SEARCH_FROM: Final = 200
MAX_TRIES: Final = 10
"""Numbers of bodies that are tried in the search for the maximum."""


# --- from changes of coordinates to gestures: as a chain of parts, and as a program ---

RULE: Final = "RULE NextSlide ON Forward(?body) THEN CALL next_slide(?body)\n"

EVENTS_PER_GESTURE: Final = 6


class Chain:
    """A live graph with the posture queries, and a detector for the events that they output.

    >>> from benchmarks.datasets.gesture import GestureEncoder
    >>> from benchmarks.datasets.gesture_scene import GestureScene
    >>> chain = Chain()
    >>> for frame in GestureEncoder(GestureScene(bodies=2, cycles=1)).frames():
    ...     chain.graph.apply(frame.changes())
    ...     found = chain.detect()
    >>> chain.events, chain.gestures
    (12, 2)
    """

    def __init__(self) -> None:
        program = Program.parse(program_text())
        self.graph = LiveGraph(tick_ms=1)
        self.events = 0
        self.gestures = 0
        queries = {query.name: query.text for query in program.queries}
        watches = {name: self.graph.watch(text) for name, text in queries.items()}
        self._sources: dict[Query, dict[bool, int]] = {watch: {} for watch in watches.values()}
        types: dict[str, int] = {}
        for event in program.events:
            if isinstance(event.source, QueryChange):
                types[event.name] = len(types)
                watch = watches[event.source.query]
                self._sources[watch][event.source.appears] = types[event.name]
        (pattern,) = (each for each in program.patterns if each.name == GESTURE)
        self.detector = pattern_detector(pattern, types, self.graph.terms.encode, tick_ms=1)
        self.graph.terms.holders.add(self.detector)

    def detect(self) -> MatchColumns | None:
        """Feed the deltas since the last call to the detector; the gestures that it finds."""
        parts = [
            part
            for watch, types in self._sources.items()
            for net, stamps in watch.drain()
            for part in _events(net, stamps, types)
        ]
        if not parts:
            return None
        type_, body, time = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((type_, time))
        self.events += len(order)
        found = self.detector.feed(type_[order], body[order], time[order])
        self.gestures += len(found.time)
        return found


class EventColumns(NamedTuple):
    """Columns of events."""

    types: Longs
    values: Longs
    times: Longs


def _events(net: Ints, stamps: TransactionTimes, types: dict[bool, int]) -> list[EventColumns]:
    """Rows of a delta as events: rows that appear, and rows that disappear."""
    before = net[:, COUNT_BEFORE]
    after = before + net[:, DIFF]
    found: list[EventColumns] = []
    for appears, number in types.items():
        rows = net[(before <= 0) & (after > 0) if appears else (after <= 0) & (before > 0)]
        times = np.asarray(stamps.times, np.int64)[rows[:, TX]]
        values = rows[:, DELTA_VALUES:].astype(np.int64)
        found.append(EventColumns(np.full(len(rows), number, np.int64), values, times))
    return found


class ProgramChain:
    """A live graph on which the program runs; its rule counts the gestures.

    >>> from benchmarks.datasets.gesture import GestureEncoder
    >>> from benchmarks.datasets.gesture_scene import GestureScene
    >>> program = ProgramChain()
    >>> for frame in GestureEncoder(GestureScene(bodies=2, cycles=1)).frames():
    ...     program.graph.apply(frame.changes())
    >>> program.gestures
    2
    """

    def __init__(self, *, smoothed: bool = False) -> None:
        self.graph = LiveGraph(tick_ms=1)
        self.gestures = 0
        program = Program.parse(program_text(smoothed=smoothed) + RULE)
        self.running = self.graph.run(program, functions={"next_slide": self._next_slide})

    def _next_slide(self, _body: object) -> None:
        self.gestures += 1

    @property
    def events(self) -> int:
        """Atomic events as the paper counts them: six for each gesture."""
        return EVENTS_PER_GESTURE * self.gestures

    def detect(self) -> None:
        """Nothing: rules fire at the end of each transaction."""


# --- what is measured ---


class PaperFigures(NamedTuple):
    """A line of the paper's Table 3."""

    complex_per_s: int
    atomic_per_s: int
    speed: float


PAPER: Final = {
    1: PaperFigures(69_041, 414_248, 69.041),
    2: PaperFigures(63_458, 380_749, 31.729),
    4: PaperFigures(66_094, 396_562, 16.523),
    8: PaperFigures(41_907, 251_442, 5.238),
    16: PaperFigures(35_003, 210_017, 2.188),
    24: PaperFigures(24_220, 145_322, 1.009),
    25: PaperFigures(20_611, 123_664, 0.824),
}
"""Bodies -> complex events per second, atomic events per second, speed (in multiples of 25 FPS)."""


@dataclass(frozen=True, slots=True)
class GestureTask:
    """A number of bodies; with `search`, the maximum that keeps pace is searched from there on."""

    bodies: int
    mode: Mode
    enough_s: float = ENOUGH_S
    search: bool = False

    def __str__(self) -> str:
        return f"{self.mode}, {'most' if self.search else self.bodies} bodies"


@dataclass(frozen=True, slots=True)
class GestureResult:
    """Atomic events, gestures and frames per second.

    With `found_max`, these are the most bodies that kept pace. `speed` is the frame rate divided by
    the camera's. `busy` is processor time divided by elapsed time: less than 1 on a busy machine.
    """

    found_max: bool
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


class CallTimes:
    """Elapsed time of each call, and the processor time of all of them."""

    def __init__(self) -> None:
        self.each: list[float] = []
        self.cpu_s = 0.0

    @property
    def seconds(self) -> float:
        """The elapsed time of all calls."""
        return sum(self.each)

    def of(self, call: Callable[[], Answer]) -> Answer:
        """Make a call and record its times."""
        busy, start = process_time(), perf_counter()
        answer = call()
        self.each.append(perf_counter() - start)
        self.cpu_s += process_time() - busy
        return answer


class Played(NamedTuple):
    """The time of each frame, and the numbers of atomic events and gestures."""

    times: CallTimes
    events: int
    gestures: int


def make_tasks(
    sizes: Sequence[int] = tuple(PAPER), enough: float = ENOUGH_S, *, search: bool = True
) -> list[GestureTask]:
    """Each number of bodies in each mode, for so many seconds.

    With `search`, also the most bodies at 25 frames per second, in all modes with a graph.
    """
    tasks = [GestureTask(count, mode, enough) for mode in MODES for count in sizes]
    chains = [mode for mode in MODES if mode != "events"] if search else []
    return [*tasks, *(GestureTask(SEARCH_FROM, mode, enough, search=True) for mode in chains)]


def measure(task: GestureTask) -> GestureResult:
    """Measure a task."""
    if task.search:
        return _search_max(task)
    return (_measure_events if task.mode == "events" else _measure_chain)(task)


def _search_max(task: GestureTask) -> GestureResult:
    """The largest number of bodies that kept pace, to about 5 %."""
    best: GestureResult | None = None
    too_many: int | None = None
    bodies = task.bodies
    for _ in range(MAX_TRIES):
        result = measure(replace(task, bodies=bodies, search=False))
        if result.speed >= 1:
            best = result if best is None or result.bodies > best.bodies else best
        else:
            too_many = bodies if too_many is None else min(too_many, bodies)
        low = 0 if best is None else best.bodies
        if too_many is None:
            bodies = round(bodies * min(max(result.speed, 1.1), 4))
        elif too_many > low * 1.05 + 1:
            bodies = (low + too_many) // 2
        else:
            break
    if best is None:
        raise BenchmarkError("not even one body could be followed at 25 frames per second")
    return replace(best, found_max=True)


def _measure_events(task: GestureTask) -> GestureResult:
    """Feed atomic events, some turns of all arms at a time, until enough time has been measured."""
    (pattern,) = (p for p in Program.parse(program_text()).patterns if p.name == GESTURE)
    detector = pattern_detector(pattern, gesture_scene.TYPES, tick_ms=1)
    times = CallTimes()
    found = events = 0
    turns = max(1, EVENTS_PER_BATCH // task.bodies)
    while times.seconds < task.enough_s:
        batch = _turns(task.bodies, len(times.each) * turns, turns)
        columns = times.of(partial(detector.feed, *batch))
        events += len(batch.types)
        found += len(columns.time)
    return _result(task, Played(times, events, found), len(times.each) * turns)


def _turns(bodies: int, first: int, count: int) -> gesture_scene.AtomicEvents:
    """Events of some turns; those of a batch are over before the next begins."""
    events = gesture_scene.atomic_events(gesture_scene.GestureScene(bodies, count))
    return events._replace(
        times=events.times + first * 2 * gesture_scene.CYCLE * gesture_scene.FRAME_MS
    )


def _measure_chain(task: GestureTask) -> GestureResult:
    """Play a scene frame by frame, with more turns until enough time is measured."""
    cycles = MIN_CYCLES
    while True:
        played = _play(gesture_scene.GestureScene(task.bodies, cycles), task.mode)
        seconds = played.times.seconds
        if seconds >= task.enough_s or cycles >= MAX_CYCLES:
            return _result(task, played, cycles)
        cycles = round(cycles * min(max(1.2 * task.enough_s / seconds, 2), 100))


def _play(scene: gesture_scene.GestureScene, mode: Mode) -> Played:
    """Load the initial graph, then measure all frames."""
    smoothed = mode == "program, smoothed"
    encoder, times = GestureEncoder(scene, smooth=SMOOTH if smoothed else 0), CallTimes()
    chain = ProgramChain(smoothed=smoothed) if mode.startswith("program") else Chain()
    frames = frame_loaders(encoder, chain.graph, mode)
    next(frames)()
    for load in frames:
        times.of(partial(_process, load, chain))
    return Played(times, chain.events, chain.gestures)


def _process(load: Callable[[], None], chain: Chain | ProgramChain) -> None:
    load()
    chain.detect()


def frame_loaders(
    encoder: GestureEncoder, graph: LiveGraph, mode: Mode
) -> Iterator[Callable[[], None]]:
    """For each frame, the call that applies it to the graph: as ids, or as columns of texts."""
    ids = None if mode == "chain, terms" else encoder.ids(graph.terms)
    for frame in encoder.frames():
        if ids is None:
            yield partial(_apply_texts, graph, frame.columns())
        else:
            s, p, o = np.ascontiguousarray(ids[frame.triples.rows].T)
            diff, (time, tx) = frame.diff.astype(np.int32), frame.timestamps()
            yield partial(graph.apply_ids, s, p, o, diff=diff, time=time, tx=tx)


def _apply_texts(graph: LiveGraph, columns: FrameColumns) -> None:
    graph.apply(ChangeBatch(*columns))


def _result(task: GestureTask, played: Played, cycles: int) -> GestureResult:
    times, events, found = played
    if found != task.bodies * cycles or events != EVENTS_PER_GESTURE * found:
        raise BenchmarkError(
            f"{task.bodies} bodies made {task.bodies * cycles} gestures, {found} were found, "
            f"with {events} events"
        )
    has_graph = task.mode != "events"
    seconds = times.seconds
    # Without a graph there are no frames: a turn of the arms counts as the frames it takes.
    frames = len(times.each) if has_graph else cycles * gesture_scene.CYCLE
    return GestureResult(
        found_max=False,
        mode=task.mode,
        bodies=task.bodies,
        events=events,
        matches=found,
        frames=frames,
        seconds=seconds,
        events_per_s=events / seconds,
        matches_per_s=found / seconds,
        updates_per_s=frames * task.bodies * gesture_scene.CHANGES / seconds if has_graph else 0.0,
        speed=frames / seconds / gesture_scene.FRAMES_PER_SECOND,
        slowest_ms=max(times.each) * 1000 if has_graph else 0.0,
        busy=times.cpu_s / seconds,
        rss_mb=peak_rss_mb(),
    )


def report(results: Sequence[GestureResult]) -> Report:
    """A line for each measurement, with the paper's figures; speed over the number of bodies."""
    rows: list[dict[str, Cell]] = []
    for r in results:
        paper = PAPER.get(r.bodies)
        rows.append(
            {
                "mode": f"{r.mode}: max" if r.found_max else r.mode,
                "bodies": r.bodies,
                "complex/s": round(r.matches_per_s),
                "paper: complex/s": paper and paper.complex_per_s,
                "atomic/s": round(r.events_per_s),
                "paper: atomic/s": paper and paper.atomic_per_s,
                "updates/s": round(r.updates_per_s) or None,
                "× 25 FPS": r.speed,
                "paper: × 25 FPS": paper and paper.speed,
                "max ms": r.slowest_ms or None,
                "busy": r.busy,
                "MB": round(r.rss_mb),
            }
        )
    points: list[tuple[str, float, float]] = [(r.mode, r.bodies, r.speed) for r in results]
    points += [("paper 4", bodies, paper.speed) for bodies, paper in PAPER.items()]
    lines = group_points(points)
    panel = Panel("", lines, "bodies", "multiple of 25 frames per second", reference=1.0)
    plot = Plot("Gestures: speed by number of bodies", [[panel]])
    return Report([Table("Gestures", rows)], plot)


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=GestureTask,
    result=GestureResult,
    tasks=make_tasks,
    small={"sizes": (3,), "enough": 0.01, "search": False},
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, bodies=2, enough_s=0.01, search=False)],
)
