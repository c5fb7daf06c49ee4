"""One measurement in a process of its own: `python -m … JSON` prints its figures as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

from graphtide.bench.bgp.measure import Task, measure
from graphtide.bench.own_process import measured

WARM_UP = 900


def figures(task: Task) -> dict[str, Any]:
    """The figures of a task."""
    return measured(measure, task, replace(task, triples=WARM_UP))


if __name__ == "__main__":
    print(json.dumps(figures(Task(**json.loads(sys.argv[1])))))
