"""Run the benchmark of the pipeline: each of the three in its own process, one after the other."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtide.bench.spark import MASTER, PIPELINES
from graphtide.bench.spark.stream import FEW_BATCHES, SMALL_BATCHES, Batch, write_stream
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Figures:
    """One pipeline: its speed in bulk, and what a small micro-batch takes at which size."""

    rows_per_s: float
    batch_ms_median_small: float
    batch_ms_by_graph_size: dict[int, float]
    matches: int | None


@dataclass(frozen=True, slots=True)
class Results:
    """All pipelines; how often an engine was at hand; how long it takes to build the largest."""

    pipelines: dict[str, Figures]
    cache_hit_ratio: float
    rebuild_ms: float


def run_benchmark(
    changes: int,
    *,
    seed: int = 0,
    master: str = MASTER,
    progress: Callable[[str], None] = lambda _: None,
) -> Results:
    """Measure the three pipelines. `progress` hears what is next; raises if answers differ."""
    with tempfile.TemporaryDirectory(prefix="graphtide-bench-") as temporary:
        folder = Path(temporary)
        progress(f"writing a stream of {changes:,} changes")
        many = write_stream(folder / "input", changes, seed, SMALL_BATCHES)
        few = write_stream(folder / "few", changes, seed, FEW_BATCHES)
        found: dict[str, Figures] = {}
        notes: dict[str, Any] = {}
        for name in PIPELINES:
            progress(f"{name}: {changes:,} changes")
            output = measure(name, folder, master)
            found[name] = to_figures(output, few if name == "reevaluate" else many)
            notes |= {key: output[key] for key in ("notes", "rebuilds") if key in output}
    check_agreement(found)
    return Results(found, hit_ratio(notes["notes"]), rebuild_ms(notes["notes"], notes["rebuilds"]))


def measure(name: str, folder: Path, master: str) -> dict[str, Any]:
    """One pipeline in a fresh process."""
    command = [sys.executable, "-m", "graphtide.bench.spark.worker", name, str(folder), master]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise GraphtideError(
            f"the measurement {name!r} failed: {last}",
            hint="a smaller --changes, or another --master, shows whether memory is the problem",
        )
    output: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return output


def to_figures(output: dict[str, Any], batches: list[Batch]) -> Figures:
    """Medians over the micro-batches. The first of each kind is left out: it warms up.

    >>> batches = [Batch("bulk", 1000, 1000), Batch("bulk", 2000, 1000)]
    >>> batches += [Batch("small", 2000, 10)] * 3
    >>> took = {"0": 9000, "1": 500, "2": 80, "3": 20, "4": 30}
    >>> to_figures({"batch_ms": took, "matches": 7}, batches)
    Figures(rows_per_s=2000.0, batch_ms_median_small=25.0, \
batch_ms_by_graph_size={2000: 25.0}, matches=7)
    """
    took = {int(batch): float(ms) for batch, ms in output["batch_ms"].items()}
    full = max(batch.rows for batch in batches)
    bulk = [
        1000 * batch.rows / took[number]
        for number, batch in enumerate(batches)
        if batch.kind == "bulk" and number and 2 * batch.rows > full
    ]
    small: dict[int, list[float]] = {}
    for number, batch in enumerate(batches):
        if batch.kind == "small" and batches[number - 1].kind == "small":
            small.setdefault(batch.edges, []).append(took[number])
    return Figures(
        rows_per_s=round(statistics.median(bulk), 1),
        batch_ms_median_small=statistics.median(ms for each in small.values() for ms in each),
        batch_ms_by_graph_size={size: statistics.median(each) for size, each in small.items()},
        matches=output["matches"],
    )


def hit_ratio(notes: list[dict[str, Any]]) -> float:
    """How often an engine stood where its log stood.

    >>> hit_ratio([{"hit": False}, {"hit": True}, {"hit": True}, {"hit": True}])
    0.75
    """
    hits = sum(bool(note["hit"]) for note in notes)
    return round(hits / max(len(notes), 1), 3)


def rebuild_ms(notes: list[dict[str, Any]], rebuilds: list[dict[str, Any]]) -> float:
    """What a cell takes when its engine is gone, without what the batch takes anyway.

    >>> rebuild_ms([{"hit": True, "ms": 5.0}], [{"rebuilt": True, "ms": 905.0}])
    900.0
    """
    usual: list[float] = [note["ms"] for note in notes if note["hit"]]
    lost: list[float] = [note["ms"] for note in rebuilds if note["rebuilt"]]
    if not usual or not lost:
        return 0.0
    return round(statistics.median(lost) - statistics.median(usual), 1)


def check_agreement(found: dict[str, Figures]) -> None:
    """Both pipelines that answer must have found the same number of matches."""
    ours, theirs = (found[name].matches for name in ("graphtide", "reevaluate"))
    if ours != theirs:
        raise GraphtideError(
            f"the pipelines disagree on the matches: graphtide {ours}, reevaluate {theirs}"
        )
