"""The sequence a -> b -> c -> d of one key within 10 s, over random events of many keys.

Compared are Graphtide's pattern detector and an automaton in plain Python for this one pattern.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args
from zlib import crc32

import numpy as np

from benchmarks.harness import Benchmark, check_same, peak_rss_mb
from benchmarks.report import Cell, Report, Table
from graphtide.lang.tide.program import Program
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import AnyDetector, KernelDetector, make_detector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from graphtide.kernel.batch import Longs
    from graphtide.lang.tide.ast import PatternDeclaration
    from graphtide.rdf.terms import Term

Mode = Literal["graphtide", "plain python"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

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


def make_events(count: int, keys: int, seed: int = 0) -> SequenceEvents:
    """Random events of four types in order of time, a millisecond apart on average.

    >>> events = make_events(1000, 10)
    >>> len(events), int(events.keys.max()), bool((np.diff(events.times) >= 0).all())
    (1000, 10, True)
    """
    random = np.random.default_rng(seed)
    types = random.integers(0, len(TYPES), count)
    owners = random.integers(1, keys + 1, count)
    times = np.cumsum(random.exponential(1.0, count)).astype(np.int64)
    return SequenceEvents(types, owners, times)


def make_tasks(events: int = 1_000_000, keys: int = 1_000, seed: int = 0) -> list[SequenceTask]:
    """So many events with so many distinct keys, for each engine."""
    return [SequenceTask(mode, events, keys, seed) for mode in MODES]


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


# ---- measuring and reporting ---------------------------------------------------------------------


def measure(task: SequenceTask) -> SequenceResult:
    """Run an engine over all events, several times."""
    events = make_events(task.events, task.keys, task.seed)
    rounds = []
    for _ in range(ROUNDS):
        busy, start = process_time(), perf_counter()
        if task.mode == "graphtide":
            found = detect(events)
        else:
            found = SequenceMatches(plain_matches(events, WITHIN_MS, task.keys))
        rounds.append((perf_counter() - start, process_time() - busy))
    seconds, busy = sorted(rounds)[len(rounds) // 2]
    return SequenceResult(
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
    """Raise unless both found the same matches."""
    check_same({r.mode: (r.matches, r.checksum) for r in results}, "matches")


def report(results: Sequence[SequenceResult]) -> Report:
    """A line for each engine."""
    rows: list[dict[str, Cell]] = [
        {
            "engine": r.mode,
            "events": r.events,
            "keys": r.keys,
            "events/s": round(r.events_per_s),
            "matches": r.matches,
            "max tokens": r.max_tokens or None,
            "busy": r.busy,
            "MB": round(r.rss_mb),
        }
        for r in results
    ]
    return Report([Table("a -> b -> c -> d, one key, within 10 s", rows)])


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=SequenceTask,
    result=SequenceResult,
    tasks=make_tasks,
    small={"events": 2000, "keys": 5},
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, events=WARM_UP)],
    check=check_agreement,
)
