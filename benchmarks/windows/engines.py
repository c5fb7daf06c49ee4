"""Windows over graph streams: incremental evaluation, re-evaluation, and pyoxigraph.

pyoxigraph evaluates the query after every batch of events. As all engines of the paper it receives
only the triples that pass the query's pruning filter, and the content of the window is maintained
for it: expired triples are removed before new ones are added.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING, Final

import numpy as np
from pyoxigraph import Quad, RdfFormat, Store, parse

from benchmarks.datasets.lubm import Lubm
from benchmarks.datasets.seas import PREDICATES, SAMPLES_PER_DAY, Seas
from benchmarks.datasets.triples import IndexedTriples
from benchmarks.harness import BenchmarkError, peak_rss_mb
from benchmarks.windows.benchmark import Mode, WindowsResult, WindowsTask
from graphtide.graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary

STREAM: Final = "<ex:s>"

BATCH: Final = 1_000
"""Triples between two evaluations by pyoxigraph."""

PUSH: Final = 10_000
"""Triples per call of `push_ids`: those of a second."""

MIN_TRIPLES_PER_UNIVERSITY: Final = 90_000

ENOUGH_S: Final = 2.0
"""Re-evaluation is measured for about so long, or for `MAX_EVALUATIONS`."""

MIN_EVALUATIONS: Final = 3
MAX_EVALUATIONS: Final = 300

PIECE: Final = 100
"""Events that re-evaluation gets at most in one call; each is evaluated by itself."""

MAX_EVENTS: Final = 100_000
"""Events that it gets altogether, where two seconds suffice for more."""

MAX_SINGLE_TRIPLES: Final = 20_000
"""Triples whose events are pushed one by one, after the window is full."""


# ---- the stream ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class StreamSlice:
    """Consecutive triples of the stream, and their times."""

    triples: IndexedTriples
    times: Longs

    def __len__(self) -> int:
        return len(self.times)

    def part(self, which: slice | NDArray[np.bool_]) -> StreamSlice:
        """Some of the triples."""
        return StreamSlice(replace(self.triples, rows=self.triples.rows[which]), self.times[which])

    def quads(self, terms: TermDictionary) -> Ints:
        """The triples as quads of ids."""
        rows = np.zeros((len(self), 4), np.int32)
        rows[:, :3] = self.triples.ids(terms)
        return rows

    def lines(self) -> bytes:
        """The triples as N-Triples."""
        return bytes(self.triples.columns().lines()) if len(self) else b""


def slices(task: WindowsTask, first: int, last: int, size: int) -> Iterator[StreamSlice]:
    """The triples `first` to `last - 1` of the stream, at most `size` in a slice.

    >>> task = WindowsTask("figure7", "seas", "Q1", 50, 1, "incremental", event=20)
    >>> [(len(each), each.times[[0, -1]].tolist()) for each in slices(task, 10, 70, 40)]
    [(40, [0, 40]), (20, [40, 60])]
    """
    start = 0
    for block in _blocks(task, last):
        begin, end = max(first - start, 0), min(last - start, len(block))
        for at in range(begin, end, size):
            rows = block.rows[at : min(at + size, end)]
            events = np.arange(start + at, start + at + len(rows), dtype=np.int64) // task.event
            times = events * task.event  # an event comes when its first triple is due
            yield StreamSlice(IndexedTriples(block.terms, rows), times)
        start += len(block)
        if start >= last:
            return


def _blocks(task: WindowsTask, count: int) -> Iterator[IndexedTriples]:
    if task.data == "lubm":
        universities = count // MIN_TRIPLES_PER_UNIVERSITY + 1
        return Lubm(universities, repeats=True).indexed_blocks()
    triples_per_day = SAMPLES_PER_DAY * PREDICATES * Seas().meters
    return Seas(days=count // triples_per_day + 1).indexed_blocks()


def _single_events(task: WindowsTask, first: int, last: int) -> Iterator[StreamSlice]:
    for each in slices(task, first, last, PUSH):
        for at in range(0, len(each), task.event):
            yield each.part(slice(at, at + task.event))


# ---- Graphtide -----------------------------------------------------------------------------------


@dataclass(slots=True)
class WindowFigures:
    """What was measured so far; see `WindowsResult`."""

    triples: int = 0
    seconds: float = 0.0
    matches: int = 0
    encode_s: float = 0.0
    pruned: float | None = None


class LiveWindow:
    """A live graph with the query of a task over its stream.

    >>> window = LiveWindow(WindowsTask("table1", "lubm", "Q2", 5_000, 5_000, "incremental"))
    >>> window.push(slices(window.task, 0, 12_500, 1_000), WindowFigures()).triples
    12500
    """

    def __init__(self, task: WindowsTask, *, store_all: bool = False) -> None:
        self.task = task
        self.graph = LiveGraph(store="all" if store_all else "matched")
        self.stream = self.graph.stream(STREAM)
        self.query = self.graph.watch(task.text, report="change", name="maintained")

    def push(self, stream: Iterator[StreamSlice], figures: WindowFigures) -> WindowFigures:
        """Push a part of the stream, and add up the time it takes."""
        last = 0
        for each in stream:
            start = process_time()
            quads = each.quads(self.graph.terms)
            figures.encode_s += process_time() - start
            start = process_time()
            self.stream.push_ids(each.times, quads)
            figures.seconds += process_time() - start
            figures.triples += len(each)
            last = int(each.times[-1])
        start = process_time()
        self.graph.advance(last + 1)
        figures.seconds += process_time() - start
        figures.matches = self.query.count()
        figures.pruned = self.stream.pruned / max(self.stream.received, 1)
        return figures

    def switch_to_reevaluation(self) -> None:
        """From now on, re-evaluate the query at every event. The window's content stays."""
        maintained = self.query
        self.query = self.graph.watch(self.task.text, report="change", reevaluate=True, name="q")
        maintained.close()


def incremental(task: WindowsTask) -> WindowFigures:
    """Incremental evaluation; events are pushed in bulk, and each has its report."""
    return LiveWindow(task).push(slices(task, 0, task.length, PUSH), WindowFigures())


def one_by_one(task: WindowsTask) -> WindowFigures:
    """Incremental evaluation of events that are pushed one by one."""
    window = LiveWindow(task)
    window.push(slices(task, 0, task.before, PUSH), WindowFigures())
    end = task.before + min(MAX_SINGLE_TRIPLES, task.length)
    return window.push(_single_events(task, task.before, end), WindowFigures())


def reevaluation(task: WindowsTask) -> WindowFigures:
    """Fill the window, then measure some events with an evaluation after each.

    As in the paper's re-evaluating engine, plan and indexes are kept; only matches are found anew.
    Events come in pieces, as with incremental evaluation, at first in small ones: an evaluation may
    take long.
    """
    window = LiveWindow(task, store_all=True)
    window.push(slices(task, 0, task.before, PUSH), WindowFigures())
    window.switch_to_reevaluation()
    figures = WindowFigures()
    begin, events = task.before, 1
    end = min(task.before + MAX_EVENTS * task.event, task.next_tumble)
    while begin < end and (figures.seconds < ENOUGH_S or begin == task.before):
        last = min(begin + events * task.event, end)
        window.push(slices(task, begin, last, PUSH), figures)
        begin, events = last, min(2 * events, PIECE)
    check_matches(task, begin, figures.matches)
    return figures


def check_matches(task: WindowsTask, end: int, matches: int) -> None:
    """Raise unless incremental evaluation has as many matches at that point of the stream."""
    found = LiveWindow(task).push(slices(task, 0, end, PUSH), WindowFigures()).matches
    if found != matches:
        raise BenchmarkError(f"{task}: {matches} matches, but incremental evaluation finds {found}")


# ---- pyoxigraph ----------------------------------------------------------------------------------


class StoreWindow:
    """The content of a window in a pyoxigraph store.

    >>> task = WindowsTask("figure7", "seas", "Q1", 1_000, 1, "pyoxigraph")
    >>> window = StoreWindow(task)
    >>> window.fill()
    >>> window.push(next(slices(task, task.before, 2_000, 500)), WindowFigures()).matches
    100
    """

    def __init__(self, task: WindowsTask) -> None:
        self._task = task
        self._live = LiveWindow(task)  # for its pruning filter
        self._store = Store()
        self._content: deque[StreamSlice] = deque()

    def fill(self) -> None:
        """Load the content of the window before the measured part."""
        task = self._task
        begin = max(int(task.shape.begin(np.array([task.before - 1]))[0]), 0)
        for each in slices(task, begin, task.before, PUSH):
            relevant = self._pruned(each)
            self._content.append(relevant)
            self._store.bulk_load(relevant.lines(), format=RdfFormat.N_TRIPLES)

    def push(self, batch: StreamSlice, figures: WindowFigures) -> WindowFigures:
        """Add a batch, remove expired triples, evaluate, and add up the time it takes.

        Of a batch that is longer than the window, the first triples have left before it ends.
        """
        begin = int(self._task.shape.begin(batch.times[-1:])[0])
        relevant = self._pruned(batch.part(batch.times >= begin))
        added, removed = _parsed(relevant), self._expired(begin)
        self._content.append(relevant)
        start = process_time()
        for quad in removed:
            self._store.remove(quad)
        self._store.extend(added)
        # The result of a SELECT is lazy: it is evaluated by iterating over it.
        figures.matches = sum(1 for _ in self._store.query(self._task.plain))  # type: ignore[union-attr, misc]
        figures.seconds += process_time() - start
        figures.triples += len(batch)
        return figures

    def _pruned(self, batch: StreamSlice) -> StreamSlice:
        mask = self._live.stream.filter.mask(batch.quads(self._live.graph.terms))
        return batch if mask is None else batch.part(mask)

    def _expired(self, begin: int) -> list[Quad]:
        """The quads that are older than the window. No triple of a sliding window occurs twice."""
        expired: list[Quad] = []
        content = self._content
        while content and (not len(content[0]) or content[0].times[0] < begin):
            oldest = content.popleft()
            count = int(np.searchsorted(oldest.times, begin))
            expired += _parsed(oldest.part(slice(0, count)))
            if count < len(oldest):
                content.appendleft(oldest.part(slice(count, None)))
        return expired


def _parsed(batch: StreamSlice) -> list[Quad]:
    return list(parse(batch.lines(), format=RdfFormat.N_TRIPLES))


def pyoxigraph(task: WindowsTask) -> WindowFigures:
    """Fill the window, then measure some batches of events."""
    window = StoreWindow(task)
    window.fill()
    figures = WindowFigures()
    end = min(task.before + MAX_EVALUATIONS * BATCH, task.next_tumble)
    for count, batch in enumerate(slices(task, task.before, end, BATCH), start=1):
        window.push(batch, figures)
        if figures.seconds > ENOUGH_S and count >= MIN_EVALUATIONS:
            break
    check_matches(task, task.before + figures.triples, figures.matches)
    return figures


MEASURES: Final[dict[Mode, Callable[[WindowsTask], WindowFigures]]] = {
    "incremental": incremental,
    "incremental, one by one": one_by_one,
    "re-evaluation": reevaluation,
    "pyoxigraph": pyoxigraph,
}


def measure_window(task: WindowsTask) -> WindowsResult:
    """Measure a task in its mode."""
    figures = MEASURES[task.mode](task)
    return WindowsResult(
        part=task.part,
        query=task.query,
        window=task.window,
        slide=task.slide,
        event=task.event,
        mode=task.mode,
        triples=figures.triples,
        seconds=figures.seconds,
        matches=figures.matches,
        encode_s=figures.encode_s,
        pruned=figures.pruned,
        rss_mb=peak_rss_mb(),
    )
