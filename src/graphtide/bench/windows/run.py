"""Measure cells: each in its own process, one after the other, so that memory does not add up."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.windows.cell import Cell


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of a cell."""

    cell: Cell
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


def run_cells(
    cells: Sequence[Cell],
    *,
    progress: Callable[[str], None] = lambda _: None,
    measure: Callable[[Cell], dict[str, Any]] | None = None,
) -> list[Result]:
    """Measure cells; `progress` hears which one is next."""
    results = []
    for number, cell in enumerate(cells, start=1):
        progress(f"{number} of {len(cells)}: {cell}")
        results.append(Result(cell, **(measure or measure_apart)(cell)))
    return results


def measure_apart(cell: Cell) -> dict[str, Any]:
    """Measure a cell in a fresh process."""
    command = [sys.executable, "-P", "-m", "graphtide.bench.windows.worker"]
    asked = json.dumps(asdict(cell))
    done = subprocess.run([*command, asked], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.strip() and line[0] != " "]
        last = (told or [f"exit code {done.returncode}"])[-1]
        raise GraphtideError(
            f"the measurement ({cell}) failed: {last}",
            hint="--quick shows whether memory is the problem",
        )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
