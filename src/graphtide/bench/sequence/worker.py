"""One measurement in a process of its own: `python -m … JSON` prints its figures as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

from graphtide.bench.own_process import measured
from graphtide.bench.sequence.measure import Task, measure

WARM_UP = 1_000


def figures(task: Task) -> dict[str, Any]:
    """The figures of a task."""
    return measured(measure, task, replace(task, events=WARM_UP))


if __name__ == "__main__":
    print(json.dumps(figures(Task(**json.loads(sys.argv[1])))))
