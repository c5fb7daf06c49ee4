"""Measure the sequence: our detector, the automaton by hand, and Flink where it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, Literal
from zlib import crc32

import numpy as np

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.sequence.detector import make_detector, most_tokens
from graphtide.bench.sequence.events import TYPES, WITHIN_MS, Events, make_events, sequence_pattern
from graphtide.bench.sequence.plain import plain_matches
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.sequence.plain import Match
    from graphtide.kernel.batch import Longs

Mode = Literal["graphtide", "plain python", "pyflink"]

MODES: Final[tuple[Mode, ...]] = ("graphtide", "plain python", "pyflink")

AT_ONCE: Final = 10_000
"""Events that are handed to the detector in a batch: those of ten seconds."""


ROUNDS: Final = 5
"""Of so many the median counts."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to measure."""

    mode: Mode
    events: int = 1_000_000
    keys: int = 1_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """So many events in so many seconds, the median; `checksum` stands for all matches, in order.

    `most_tokens` is the greatest number of instances that waited at once. `busy` is the share of
    the time in which the process had a core to itself.
    """

    name: str
    mode: str
    keys: int
    events: int
    matches: int
    seconds: float
    events_per_s: float
    most_tokens: int
    busy: float
    rss_mb: float
    checksum: int


def missing(mode: Mode) -> str | None:
    """Why a mode cannot be measured here, if so.

    >>> missing("graphtide")
    """
    if mode == "pyflink" and find_spec("pyflink") is None:
        return "apache-flink is not installed"
    return None


def measure(task: Task) -> Result:
    """Measure a task.

    >>> ours = measure(Task("graphtide", events=2000, keys=3))
    >>> by_hand = measure(Task("plain python", events=2000, keys=3))
    >>> ours.matches == by_hand.matches > 100, ours.checksum == by_hand.checksum
    (True, True)
    """
    events = make_events(task.events, task.keys, task.seed)
    ways: dict[Mode, Callable[[], tuple[Sequence[Match] | Longs, int]]] = {
        "graphtide": lambda: detect(events),
        "plain python": lambda: (plain_matches(events, WITHIN_MS, task.keys), 0),
        "pyflink": lambda: _flink(events),
    }
    rounds = []
    for _ in range(1 if task.mode == "pyflink" else ROUNDS):
        busy, start = process_time(), perf_counter()
        found, tokens = ways[task.mode]()
        rounds.append((perf_counter() - start, process_time() - busy))
    seconds, busy = sorted(rounds)[len(rounds) // 2]
    return Result(
        name="sequence",
        mode=task.mode,
        keys=task.keys,
        events=task.events,
        matches=len(found),
        seconds=seconds,
        events_per_s=task.events / seconds,
        most_tokens=tokens,
        busy=busy / seconds,
        rss_mb=peak_rss_mb(),
        checksum=crc32(np.array(found, np.int64).tobytes()),
    )


def detect(events: Events) -> tuple[Longs, int]:
    """The matches that our detector finds, batch by batch, and the most tokens it had.

    >>> detect(make_events(100, 1))[0].shape[1]
    3
    """
    detector = make_detector(sequence_pattern(), TYPES, tick_ms=1)
    keys = events.keys.reshape(-1, 1)
    found: list[Longs] = []
    tokens = 0
    for begin in range(0, len(events), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        columns = detector.feed(events.types[part], keys[part], events.times[part])
        found.append(np.column_stack((columns.at + begin, columns.values[:, 0], columns.start)))
        tokens = max(tokens, most_tokens(detector))
    return np.concatenate(found), tokens


def _flink(events: Events) -> tuple[list[Match], int]:
    from graphtide.bench.sequence.peer_flink import flink_matches

    return flink_matches(events), 0


def check_agreement(results: Sequence[Result]) -> None:
    """Raise unless all found the same: figures of a wrong answer mean nothing.

    Flink is not asked the same: an event may be part of several of its matches.
    """
    same = [result for result in results if result.mode != "pyflink"]
    for result in same[1:]:
        first = same[0]
        if (result.matches, result.checksum) != (first.matches, first.checksum):
            raise GraphtideError(
                f"{result.mode} found {result.matches:,} matches, {first.mode} {first.matches:,}",
                hint="this is a bug: please report it",
            )
