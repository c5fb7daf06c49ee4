"""One measurement in a process of its own: `python -m … JSON` prints its figures as JSON."""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict, replace
from typing import Any

from graphtide.bench.gesture.measure import Task, measure


def measured(task: Task) -> dict[str, Any]:
    """The figures of a task; a small one before it has all code compiled and loaded."""
    measure(replace(task, bodies=2, enough_s=0.01, search=False))
    gc.collect()
    gc.disable()
    try:
        return asdict(measure(task))
    finally:
        gc.enable()


if __name__ == "__main__":
    print(json.dumps(measured(Task(**json.loads(sys.argv[1])))))
