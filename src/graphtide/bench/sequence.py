"""The sequence a -> b -> c -> d of one key within 10 s, over random events of many keys.

Compared are Graphtide's pattern detector, an automaton in plain Python for this one pattern, and
Flink's MATCH_RECOGNIZE where PyFlink is installed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from zlib import crc32

import numpy as np

from graphtide.bench.harness import Benchmark, peak_rss_mb
from graphtide.bench.report import BenchReport, TableColumn, make_table, to_objects
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import AnyDetector, KernelDetector, make_detector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from graphtide.kernel.batch import Longs
    from graphtide.lang.tide.ast import PatternDeclaration
    from graphtide.rdf.terms import Term

Mode = Literal["graphtide", "plain python", "pyflink"]
MODES: Final[tuple[Mode, ...]] = ("graphtide", "plain python", "pyflink")

TYPES: Final = {"A": 0, "B": 1, "C": 2, "D": 3}

WITHIN_MS: Final = 10_000

PROGRAM: Final = """
PREFIX : <http://example.org/>
EVENT A(?k) AS { ?k a :A }
EVENT B(?k) AS { ?k a :B }
EVENT C(?k) AS { ?k a :C }
EVENT D(?k) AS { ?k a :D }
PATTERN Sequence(?k) AS (A(?k) -> B(?k) -> C(?k) -> D(?k)) WITHIN 10s CONTEXT CHRONICLE PER ?k
"""
"""In CHRONICLE, PER has no effect where all parts share the key; it documents that they do."""

BATCH: Final = 10_000
"""Events per batch for the detector: those of ten seconds."""

ROUNDS: Final = 5
"""The median of these rounds is reported."""

WARM_UP: Final = 1_000

Match = tuple[int, int, int]
"""The index of the last event, the key, and the time of the first event."""


@dataclass(frozen=True, slots=True)
class SequenceTask:
    """An engine, and the events it has to process."""

    mode: Mode
    events: int = 1_000_000
    keys: int = 1_000
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.mode}, {self.events:,} events"


@dataclass(frozen=True, slots=True)
class SequenceResult:
    """The median round; `checksum` covers all matches, in order.

    `max_tokens` is the peak number of partial matches. `busy` is processor time divided by elapsed
    time: less than 1 on a busy machine.
    """

    name: str
    mode: str
    keys: int
    events: int
    matches: int
    seconds: float
    events_per_s: float
    max_tokens: int
    busy: float
    rss_mb: float
    checksum: int


@dataclass(frozen=True, slots=True)
class SequenceEvents:
    """Types, keys (from 1) and times in milliseconds."""

    types: Longs
    keys: Longs
    times: Longs

    def __len__(self) -> int:
        return len(self.types)


class SequenceMatches(NamedTuple):
    """The matches of an engine, and its peak number of partial matches."""

    matches: Sequence[Match] | Longs
    max_tokens: int = 0


def check_sizes(count: int, keys: int) -> None:
    """Raise unless there is at least one event and one key."""
    if count < 1 or keys < 1:
        raise GraphtideError(
            f'invalid --events "{count}" or --keys "{keys}": the minimum of both is 1'
        )


def make_events(count: int, keys: int, seed: int = 0) -> SequenceEvents:
    """Random events of four types in order of time, a millisecond apart on average.

    >>> events = make_events(1000, 10)
    >>> len(events), int(events.keys.max()), bool((np.diff(events.times) >= 0).all())
    (1000, 10, True)
    """
    check_sizes(count, keys)
    random = np.random.default_rng(seed)
    types = random.integers(0, len(TYPES), count)
    owners = random.integers(1, keys + 1, count)
    times = np.cumsum(random.exponential(1.0, count)).astype(np.int64)
    return SequenceEvents(types, owners, times)


def missing(mode: Mode) -> str | None:
    """Why an engine cannot be measured here, or None.

    >>> missing("graphtide")
    """
    if mode == "pyflink" and find_spec("pyflink") is None:
        return "apache-flink is not installed"
    return None


def make_tasks(events: int, keys: int, seed: int) -> list[SequenceTask]:
    """A task for each engine that is installed.

    >>> [task.mode for task in make_tasks(100, 2, 0)][:2]
    ['graphtide', 'plain python']
    """
    check_sizes(events, keys)
    return [SequenceTask(mode, events, keys, seed) for mode in MODES if missing(mode) is None]


# ---- the engines ---------------------------------------------------------------------------------


def sequence_pattern() -> PatternDeclaration:
    """The pattern that is measured.

    >>> sequence_pattern().context
    'CHRONICLE'
    """
    (pattern,) = Program.parse(PROGRAM).patterns
    return pattern


def pattern_detector(
    pattern: PatternDeclaration,
    types: Mapping[str, int],
    encode: Callable[[Term], int] = lambda _: 0,
    *,
    tick_ms: int,
) -> AnyDetector:
    """A detector for a pattern; `types` numbers the events, `encode` the constants.

    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> pattern_detector(pattern, {"A": 0, "B": 1}, tick_ms=1).tokens()
    []
    """
    return make_detector(compile_pattern(pattern, types, encode, tick_ms))


def detect(events: SequenceEvents) -> SequenceMatches:
    """The matches of Graphtide's detector, which is fed batch by batch.

    >>> detect(make_events(100, 1)).matches.shape[1]
    3
    """
    detector = pattern_detector(sequence_pattern(), TYPES, tick_ms=1)
    keys = events.keys.reshape(-1, 1)
    found: list[Longs] = []
    tokens = 0
    for begin in range(0, len(events), BATCH):
        part = slice(begin, begin + BATCH)
        columns = detector.feed(events.types[part], keys[part], events.times[part])
        found.append(np.column_stack((columns.at + begin, columns.values[:, 0], columns.start)))
        tokens = max(tokens, _token_count(detector))
    return SequenceMatches(np.concatenate(found), tokens)


def _token_count(detector: AnyDetector) -> int:
    """The peak number of tokens; of the plain-Python twin, the present number."""
    if isinstance(detector, KernelDetector):
        return detector.table.most
    return len(detector.tokens())


def plain_matches(events: SequenceEvents, within: int, keys: int) -> list[Match]:
    """The matches of an automaton in plain Python, in order.

    An event goes to the oldest partial match of its key that waits for it, and is used once. Those
    that wait for the same type are in the order of their first events, so a queue is enough.

    >>> order = np.array([0, 0, 1, 2, 3, 3])
    >>> plain_matches(SequenceEvents(order, np.full(6, 7), np.arange(6)), 10, 7)
    [(4, 7, 0)]
    """
    waiting = [[deque[int]() for _ in range(keys + 1)] for _ in range(3)]
    found: list[Match] = []
    columns = zip(events.types.tolist(), events.keys.tolist(), events.times.tolist(), strict=True)
    for number, (type_, key, time) in enumerate(columns):
        if type_ == 0:
            waiting[0][key].append(time)
            continue
        queue = waiting[type_ - 1][key]
        while queue and queue[0] + within < time:
            queue.popleft()
        if queue:
            start = queue.popleft()
            if type_ == 3:
                found.append((number, key, start))
            else:
                waiting[type_][key].append(start)
    return found


FLINK_SOURCE: Final = """
CREATE TABLE events (number BIGINT, type STRING, k BIGINT, ms BIGINT,
    at AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""

FLINK_QUERY: Final = """
SELECT number, k, start FROM events MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY at
    MEASURES D.number AS number, A.ms AS start
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B Y* C Z* D) WITHIN INTERVAL '{seconds}' SECOND
    DEFINE A AS A.type = 'A', X AS X.type <> 'B', B AS B.type = 'B', Y AS Y.type <> 'C',
        C AS C.type = 'C', Z AS Z.type <> 'D', D AS D.type = 'D')
"""
"""Each A takes the next B, C and D of its key. With SKIP TO NEXT ROW, an event may be part of
several matches, so there are more of them than in the CHRONICLE context."""


def flink_matches(events: SequenceEvents) -> list[Match]:
    """The matches that Flink finds in a file, with a parallelism of 1."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    names = np.array(list(TYPES))
    with TemporaryDirectory() as folder:
        path = Path(folder, "events.csv")
        columns = zip(
            names[events.types].tolist(), events.keys.tolist(), events.times.tolist(), strict=True
        )
        lines = (f"{number},{t},{k},{ms}\n" for number, (t, k, ms) in enumerate(columns))
        path.write_text("".join(lines), encoding="utf-8")
        table: Any = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        table.get_config().set("parallelism.default", "1")
        table.execute_sql(FLINK_SOURCE.format(path=path))
        answer = table.execute_sql(FLINK_QUERY.format(seconds=WITHIN_MS // 1000))
        with answer.collect() as rows:
            return [(row[0], row[1], row[2]) for row in rows]


# ---- measuring and reporting ---------------------------------------------------------------------


def measure(task: SequenceTask) -> SequenceResult:
    """Run an engine over all events, several times.

    >>> ours = measure(SequenceTask("graphtide", events=2000, keys=3))
    >>> plain = measure(SequenceTask("plain python", events=2000, keys=3))
    >>> ours.matches == plain.matches > 100, ours.checksum == plain.checksum
    (True, True)
    """
    events = make_events(task.events, task.keys, task.seed)
    engines: dict[Mode, Callable[[], SequenceMatches]] = {
        "graphtide": lambda: detect(events),
        "plain python": lambda: SequenceMatches(plain_matches(events, WITHIN_MS, task.keys)),
        "pyflink": lambda: SequenceMatches(flink_matches(events)),
    }
    rounds = []
    for _ in range(1 if task.mode == "pyflink" else ROUNDS):
        busy, start = process_time(), perf_counter()
        found = engines[task.mode]()
        rounds.append((perf_counter() - start, process_time() - busy))
    seconds, busy = sorted(rounds)[len(rounds) // 2]
    return SequenceResult(
        name="sequence",
        mode=task.mode,
        keys=task.keys,
        events=task.events,
        matches=len(found.matches),
        seconds=seconds,
        events_per_s=task.events / seconds,
        max_tokens=found.max_tokens,
        busy=busy / seconds,
        rss_mb=peak_rss_mb(),
        checksum=crc32(np.array(found.matches, np.int64).tobytes()),
    )


def check_agreement(results: Sequence[SequenceResult]) -> None:
    """Raise unless all found the same matches, except Flink, whose semantics differ."""
    same = [result for result in results if result.mode != "pyflink"]
    for result in same[1:]:
        first = same[0]
        if (result.matches, result.checksum) != (first.matches, first.checksum):
            raise GraphtideError(
                f"{result.mode} found {result.matches:,} matches, {first.mode} {first.matches:,}",
                hint="this is a bug: please report it",
            )


COLUMNS: Final[Sequence[TableColumn[SequenceResult]]] = (
    TableColumn("engine", lambda result: result.mode, left=True),
    TableColumn("events", lambda result: f"{result.events:,}"),
    TableColumn("keys", lambda result: f"{result.keys:,}"),
    TableColumn("events/s", lambda result: f"{result.events_per_s:,.0f}"),
    TableColumn("matches", lambda result: f"{result.matches:,}"),
    TableColumn("max tokens", lambda r: f"{r.max_tokens:,}" if r.mode == "graphtide" else ""),
    TableColumn("busy", lambda result: f"{result.busy:.0%}"),
    TableColumn("MB", lambda result: f"{result.rss_mb:,.0f}"),
)


def report(results: Sequence[SequenceResult]) -> BenchReport:
    """A line for each engine."""
    table = make_table("a -> b -> c -> d, one key, within 10 s", COLUMNS, results)
    notes = [f"{mode} was left out: {why}" for mode in MODES if (why := missing(mode)) is not None]
    return BenchReport(to_objects(results), [table], notes=notes)


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=SequenceTask,
    result=SequenceResult,
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, events=WARM_UP)],
    check=check_agreement,
)
