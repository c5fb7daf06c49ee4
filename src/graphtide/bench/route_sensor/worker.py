"""One measurement in a process of its own: `python worker.py NAME EDGES SEED` prints JSON.

The name `compile` measures nothing, but leaves compiled code on disk for the processes to come.
Run as a file: the process of a peer must not carry Graphtide's own engine in its memory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.bench.route_sensor.workload import Workload

    Measure = Callable[[Workload], dict[str, float]]

OURS = ("ids", "strings", "calls")

PEERS = ("clipspy", "duckdb")

WARM_EDGES = 2000


def run(name: str, edges: int, seed: int) -> dict[str, float]:
    """Measure a tiny graph, to compile and load all code; then the wanted one."""
    from graphtide.bench.route_sensor.workload import make_workload

    measure = _measure(name)
    measure(make_workload(WARM_EDGES, seed, updates=20))
    return measure(make_workload(edges, seed))


def compile_all() -> dict[str, float]:
    """Run all our ways once, so that compiled code is on disk: compiling takes memory, too."""
    from graphtide.bench.route_sensor.workload import make_workload

    for name in OURS:
        _measure(name)(make_workload(WARM_EDGES, 0, updates=20))
    return {}


def _measure(name: str) -> Measure:
    match name:
        case "clipspy":
            from graphtide.bench.route_sensor.peer_clips import measure_clipspy

            return measure_clipspy
        case "duckdb":
            from graphtide.bench.route_sensor.peer_duckdb import measure_duckdb

            return measure_duckdb
        case _:
            from graphtide.bench.route_sensor import ours

            return {"ids": ours.load_ids, "strings": ours.load_strings, "calls": ours.load_calls}[
                name
            ]


def _bare_package() -> None:
    """Let `graphtide.bench` be imported without the package's own start-up, and so its engine."""
    package = ModuleType("graphtide")
    package.__path__ = [str(Path(__file__).parents[2])]
    sys.modules["graphtide"] = package


if __name__ == "__main__":
    if sys.argv[1] in PEERS:
        _bare_package()
    if sys.argv[1] == "compile":
        print(json.dumps(compile_all()))
    else:
        print(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
