"""Windows over graph streams: what is measured, and how it is reported beside the paper's figures.

The measurements of paper 5: its Table 1 and Figures 6 to 9. Every event is followed by a report.
Incremental evaluation runs through whole windows; re-evaluation at every event takes so long that
only some events are measured, after the window has been filled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

from benchmarks.datasets.queries import LUBM_QUERIES, query_text
from benchmarks.harness import Benchmark, check_names
from benchmarks.report import Cell, Panel, Plot, Report, Table, group_points
from graphtide.streams.windows import ChangingWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Part = Literal["table1", "figure6", "figure7", "figure8", "figure9"]
Mode = Literal["incremental", "incremental, one by one", "re-evaluation", "pyoxigraph"]

PARTS: Final[tuple[Part, ...]] = get_args(Part)
MODES: Final[tuple[Mode, ...]] = ("incremental", "re-evaluation", "pyoxigraph")
TABLE_MODES: Final[tuple[Mode, ...]] = get_args(Mode)

RATE: Final = 10_000
"""Triples per second of the stream. A tick of the clock is one triple."""

MEASURED_TRIPLES: Final = 1_000_000
"""Minimum number of triples that incremental evaluation is measured with."""

QUICK_TRIPLES: Final = 100_000
WARM_UP_WINDOW: Final = 100

TUMBLING: Final = (100_000, 500_000, 1_000_000)
DECADES: Final = (100, 1_000, 10_000, 100_000)
SLIDING: Final = (10_000, 50_000, 100_000, 500_000)
"""Windows of Table 1, Figure 6, and Figures 7 to 9, in triples."""


@dataclass(frozen=True, slots=True)
class WindowsTask:
    """A query of a dataset over windows of `window` triples, which slide by `slide` triples.

    >>> task = WindowsTask("table1", "lubm", "Q5", 100_000, 100_000, mode="incremental")
    >>> task.window_s, task.before
    (10.0, 250000)
    """

    part: Part
    data: Literal["lubm", "seas"]
    query: str
    window: int
    slide: int
    mode: Mode
    event: int = 1
    min_triples: int = MEASURED_TRIPLES

    @property
    def window_s(self) -> float:
        """The length of the window, in seconds."""
        return self.window / RATE

    @property
    def before(self) -> int:
        """Triples before those that re-evaluation is measured with: whole events.

        A tumbling window contains between one and two times its length: here it is in the middle.
        """
        filled = self.window * 5 // 2 if self.slide == self.window else self.window * 3 // 2
        return -(-filled // self.event) * self.event

    @property
    def next_tumble(self) -> int:
        """Where a tumbling window next evicts triples; a sliding window always does."""
        return 3 * self.window if self.slide == self.window else 1 << 62

    @property
    def length(self) -> int:
        """Triples that incremental evaluation is measured with."""
        return max(self.before, self.min_triples)

    @property
    def shape(self) -> ChangingWindow:
        """Which events the window contains at which time."""
        return ChangingWindow(self.window, self.slide)

    @property
    def text(self) -> str:
        """The query with its window.

        >>> task = WindowsTask("table1", "lubm", "Q2", 50, 50, "incremental")
        >>> "[RANGE 50 STEP 50]" in task.text
        True
        """
        head, _, rest = self.plain.partition("SELECT")
        variables, _, body = rest.partition("WHERE")
        window = f"FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE {self.window} STEP {self.slide}]"
        select = f"REGISTER ISTREAM <ex:q> AS SELECT{variables}{window}"
        return f"{head}{select} WHERE {{ WINDOW <ex:w> {body} }}"

    @property
    def plain(self) -> str:
        """The query without a window."""
        return query_text(self.data, self.query)

    def __str__(self) -> str:
        events = f", events of {self.event}" if self.event > 1 else ""
        return f"{self.part} {self.query}, {self.window:,} triples{events}, {self.mode}"


@dataclass(frozen=True, slots=True)
class WindowsResult:
    """Triples and seconds that were measured, and the matches of the last report.

    Encoding texts as ids takes `encode_s` more. `pruned` is the share of triples that the query
    cannot match.
    """

    part: Part
    query: str
    window: int
    slide: int
    event: int
    mode: Mode
    triples: int
    seconds: float
    matches: int
    encode_s: float
    pruned: float | None
    rss_mb: float

    @property
    def triples_per_s(self) -> float:
        """The throughput."""
        return self.triples / self.seconds if self.seconds else 0.0


# ---- the tasks of each part ----------------------------------------------------------------------


def make_tasks(only: Sequence[str] = ("all",), *, quick: bool = False) -> list[WindowsTask]:
    """The tasks of some parts, in order; `quick` has only small windows, and shorter streams."""
    parts = check_names(only, PARTS, "--only")
    return [task for part in PARTS if part in parts for task in tasks_of(part, quick=quick)]


def tasks_of(part: Part, *, quick: bool = False) -> list[WindowsTask]:
    """The tasks of a part.

    >>> len(tasks_of("table1")), len(tasks_of("figure6", quick=True))
    (84, 12)
    """
    triples = QUICK_TRIPLES if quick else MEASURED_TRIPLES
    match part:
        case "table1":
            return list(_table1((10_000,) if quick else TUMBLING, triples))
        case "figure6":
            return list(_figure6(DECADES[1:3] if quick else DECADES, triples))
        case "figure7":
            return list(_sliding(part, "Q1", SLIDING[:1] if quick else SLIDING, triples))
        case "figure8":
            return list(_sliding(part, "Q2", SLIDING[:1] if quick else SLIDING, triples))
        case "figure9":
            return list(_memory(SLIDING[:2] if quick else (*SLIDING, 1_000_000)))


def _table1(windows: tuple[int, ...], triples: int) -> Iterator[WindowsTask]:
    for window in windows:
        for query in LUBM_QUERIES:
            for mode in TABLE_MODES:
                yield WindowsTask("table1", "lubm", query, window, window, mode, 1, triples)


def _figure6(windows: tuple[int, ...], triples: int) -> Iterator[WindowsTask]:
    modes: tuple[Mode, ...] = ("incremental", "incremental, one by one", "re-evaluation")
    for query in ("Q5", "Q7"):
        for window in windows:
            for mode in modes:
                yield WindowsTask("figure6", "lubm", query, window, window, mode, 1, triples)


def _sliding(
    part: Part, query: str, windows: tuple[int, ...], triples: int
) -> Iterator[WindowsTask]:
    for window in windows:
        for event in (1, 20):
            yield WindowsTask(part, "seas", query, window, 1, "incremental", event, triples)
        for mode in MODES[1:]:
            yield WindowsTask(part, "seas", query, window, 1, mode, 1, triples)


def _memory(windows: tuple[int, ...]) -> Iterator[WindowsTask]:
    for window in windows:
        for mode in (MODES[0], MODES[-1]):
            yield WindowsTask("figure9", "seas", "Q1", window, 1, mode, 1, min_triples=0)


# ---- reporting -----------------------------------------------------------------------------------

PAPER: Final[dict[Mode, dict[int, tuple[int, ...]]]] = {
    "incremental": {
        100_000: (81, 848, 54, 425, 980, 925, 73),
        500_000: (52, 567, 26, 180, 876, 853, 50),
        1_000_000: (30, 241, 18, 146, 540, 415, 27),
    },
    "re-evaluation": {
        100_000: (60, 750, 46, 356, 846, 796, 64),
        500_000: (36, 322, 15, 88, 637, 748, 28),
        1_000_000: (11, 80, 7, 56, 161, 179, 10),
    },
}
"""Table 1 of the paper in 1000 triples/s, Q1 to Q7, by mode (its S-Inc and S-Rev) and window."""

TITLES: Final = {
    "table1": "Table 1: LUBM, tumbling windows, one triple per event",
    "figure6": "Figure 6: LUBM, tumbling windows of few triples",
    "figure7": "Figure 7: SEAS Q1, windows that slide by one triple",
    "figure8": "Figure 8: SEAS Q2, windows that slide by one triple",
    "figure9": "Figure 9: SEAS Q1, memory of the process",
}

PANELS_PER_ROW: Final = 3


def paper_figure(result: WindowsResult) -> int | None:
    """The paper's figure for the same measurement, if it has one."""
    mode = "incremental" if result.mode.startswith("incremental") else result.mode
    figures = PAPER.get(mode, {}).get(result.window)
    if result.part != "table1" or figures is None:
        return None
    return figures[int(result.query[1:]) - 1] * 1000


def report(results: Sequence[WindowsResult]) -> Report:
    """A table for each part, and a diagram for each query of each part."""
    parts: dict[str, list[WindowsResult]] = {}
    queries: dict[tuple[str, str], list[WindowsResult]] = {}
    for result in results:
        parts.setdefault(result.part, []).append(result)
        queries.setdefault((result.part, result.query), []).append(result)
    tables = [Table(TITLES[part], [_row(each) for each in group]) for part, group in parts.items()]
    panels = [_panel(*name, group) for name, group in queries.items()]
    starts = range(0, len(panels), PANELS_PER_ROW)
    return Report(tables, Plot("", [panels[at : at + PANELS_PER_ROW] for at in starts]))


def _row(result: WindowsResult) -> dict[str, Cell]:
    return {
        "query": result.query,
        "window": result.window,
        "event": result.event,
        "mode": result.mode,
        "triples/s": round(result.triples_per_s),
        "paper": paper_figure(result),
        "measured": result.triples,
        "matches": result.matches,
        "pruned": result.pruned,
        "encoding s": result.encode_s,
        "MB": round(result.rss_mb),
    }


def _panel(part: str, query: str, results: Sequence[WindowsResult]) -> Panel:
    memory = part == "figure9"
    lines = group_points(
        (
            f"{result.mode}, events of {result.event}" if result.event > 1 else result.mode,
            result.window,
            result.rss_mb if memory else result.triples_per_s,
        )
        for result in results
    )
    title = f"{TITLES[part].partition(':')[0]}, {query}"
    ylabel = "MB" if memory else "triples/s"
    return Panel(title, lines, "triples of the window", ylabel)


def measure(task: WindowsTask) -> WindowsResult:
    """Measure a task."""
    from benchmarks.windows.engines import measure_window

    return measure_window(task)


def _small(task: WindowsTask) -> WindowsTask:
    slide = WARM_UP_WINDOW if task.slide == task.window else 1
    return replace(task, window=WARM_UP_WINDOW, slide=slide, min_triples=0)


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=WindowsTask,
    result=WindowsResult,
    tasks=make_tasks,
    small={"only": ("figure9",), "quick": True},
    measure=measure,
    report=report,
    warm_up=lambda task: [_small(task)],
)
