"""Run the rules benchmark: each measurement in its own process, one after the other."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphtide.bench.rules.worker import OURS, PEER
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WORKER = Path(__file__).with_name("worker.py")

SIZES = (1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Result:
    """One way to take in the events, at one number of equipments.

    Every way has fired for the same pairs of alarm and confirmation: those that follow from the
    data. Else there is no result.
    """

    way: str
    equipments: int
    events: int
    events_per_s: int
    firings: int
    rss_mb: float


def run_benchmark(
    sizes: Sequence[int] = SIZES,
    events: int = 300_000,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Measure our ways and clipspy (if it is installed) at each number of equipments."""
    ways = [*OURS, PEER] if has_peer() else [*OURS]
    results = []
    for equipments in sizes:
        for way in ways:
            progress(f"{way}: {equipments:,} equipments, {events:,} events")
            results.append(measure(way, equipments, events, seed))
    return results


def has_peer() -> bool:
    """Whether clipspy is installed."""
    return importlib.util.find_spec("clips") is not None


def measure(way: str, equipments: int, events: int, seed: int) -> Result:
    """One measurement in a fresh process."""
    numbers = map(str, (equipments, events, seed))
    command = [sys.executable, "-P", str(WORKER), way, *numbers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise GraphtideError(
            f"the measurement {way!r} failed: {last}",
            hint=f"run it alone to see more: {' '.join(command)}",
        )
    return Result(way, equipments, **json.loads(done.stdout))
