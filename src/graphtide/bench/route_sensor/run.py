"""Run the RouteSensor benchmark: each measurement in its own process, one after the other."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from graphtide.bench.route_sensor.worker import OURS, PEERS
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Figures = dict[str, float]

WORKER = Path(__file__).with_name("worker.py")

MODULES = {"clipspy": "clips", "duckdb": "duckdb"}


@dataclass(slots=True)
class Results:
    """The figures of each measurement, by its name; and why a peer was left out."""

    ours: dict[str, Figures] = field(default_factory=dict)
    small: Figures = field(default_factory=dict)
    peers: dict[str, Figures] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def run_benchmark(
    edges: int,
    *,
    seed: int = 0,
    peers: Sequence[str] = PEERS,
    progress: Callable[[str], None] = lambda _: None,
) -> Results:
    """Measure our three ways to load and update, a tenth of the size, and the peers.

    `progress` hears what is measured next. Raises if the engines do not agree on the matches.
    """
    results = Results()
    progress("graphtide: compiling")
    measure("compile", edges, seed)
    for name in OURS:
        progress(f"graphtide: {edges:,} edges from {name}")
        results.ours[name] = measure(name, edges, seed)
    progress(f"graphtide: {edges // 10:,} edges from ids")
    results.small = measure("ids", max(1, edges // 10), seed)
    for name in peers:
        if importlib.util.find_spec(MODULES[name]) is None:
            results.missing[name] = "not installed: pip install 'graphtide[bench]'"
            continue
        progress(f"{name}: {edges:,} edges")
        results.peers[name] = measure(name, edges, seed)
    check_agreement(results)
    return results


def measure(name: str, edges: int, seed: int) -> Figures:
    """One measurement in a fresh process."""
    command = [sys.executable, "-P", str(WORKER), name, str(edges), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise GraphtideError(
            f"the measurement {name!r} failed: {last}",
            hint=f"run it alone to see more: {' '.join(command)}",
        )
    figures: Figures = json.loads(done.stdout)
    return figures


def check_agreement(results: Results) -> None:
    """Every engine must have found the same number of matches.

    >>> check_agreement(Results(ours={"ids": {"matches": 3}}, peers={"duckdb": {"matches": 4}}))
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the engines disagree on the matches: ids 3, duckdb 4
    """
    found = {name: figures["matches"] for name, figures in (results.ours | results.peers).items()}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {matches}" for name, matches in found.items())
        raise GraphtideError(f"the engines disagree on the matches: {listed}")
