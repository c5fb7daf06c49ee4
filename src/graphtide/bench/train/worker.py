"""One workload in a process of its own: `python -m … JSON` prints its figures as JSON.

An empty workload is run first, to have all code compiled and loaded.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict, replace
from typing import Any

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.train.workload import Workload

WARM_ROUNDS = 2


def measure(workload: Workload) -> dict[str, Any]:
    """The figures of a run, without the stops of Python's garbage collection."""
    if workload.engine != "spark":
        replace(workload, size=1, rounds=min(workload.rounds, WARM_ROUNDS)).run()
    gc.collect()
    gc.disable()
    try:
        figures = workload.run()
    finally:
        gc.enable()
    return asdict(figures) | {"rss_mb": peak_rss_mb()}


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(measure(Workload(**given | {"queries": tuple(given["queries"])}))))
