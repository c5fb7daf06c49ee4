"""One measurement in a process of its own: `python worker.py NAME EQUIPMENTS EVENTS SEED`.

It prints JSON. Run as a file: the process of the peer must not carry Graphtide's own engine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.bench.rules.workload import Workload

    Measure = Callable[[Workload], dict[str, float]]

OURS = ("ids", "texts", "calls")
PEER = "clipspy"

MOST_CALLS = 50_000
"""Events that are asserted one by one: the rate is the same for more."""


def run(name: str, equipments: int, events: int, seed: int) -> dict[str, float]:
    """Measure a small stream, to compile and load all code; then the wanted one."""
    from graphtide.bench.rules.workload import make_workload

    measure = _measure(name)
    measure(make_workload(100, 3000, seed))
    workload = make_workload(equipments, events, seed)
    if name == "calls":
        workload = workload.first(MOST_CALLS)
    figures = measure(workload)
    firings, total = workload.expected()
    if (figures["firings"], figures.pop("checksum")) != (firings, total):
        raise SystemExit(f"{name} fired {figures['firings']} times, but it should be {firings}")
    return figures


def _measure(name: str) -> Measure:
    if name == PEER:
        from graphtide.bench.rules.peer_clips import measure_clipspy

        return measure_clipspy
    from graphtide.bench.rules import ours

    return {"ids": ours.from_ids, "texts": ours.from_texts, "calls": ours.from_calls}[name]


def _bare_package() -> None:
    """Let `graphtide.bench` be imported without the package's own start-up, and so its engine."""
    package = ModuleType("graphtide")
    package.__path__ = [str(Path(__file__).parents[2])]
    sys.modules["graphtide"] = package


if __name__ == "__main__":
    if sys.argv[1] == PEER:
        _bare_package()
    print(json.dumps(run(sys.argv[1], *map(int, sys.argv[2:5]))))
