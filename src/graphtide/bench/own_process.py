"""Measurements in a process of their own, so that none is warmed up or weighed down by another."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance

Task = TypeVar("Task", bound="DataclassInstance")


def measured(
    measure: Callable[[Task], DataclassInstance], task: Task, warm_up: Task
) -> dict[str, Any]:
    """The figures of a task; another one before it has all code compiled and loaded."""
    measure(warm_up)
    gc.collect()
    gc.disable()
    try:
        return asdict(measure(task))
    finally:
        gc.enable()


def run_worker(
    module: str, task: DataclassInstance, what: str, hint: str | None = None
) -> dict[str, Any]:
    """What a module prints as JSON when it is run with a task; `what` names it if it fails."""
    command = [sys.executable, "-P", "-m", module, json.dumps(asdict(task))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.strip() and line[0] != " "]
        last = (told or [f"exit code {done.returncode}"])[-1]
        raise GraphtideError(f"the measurement ({what}) failed: {last}", hint=hint)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
