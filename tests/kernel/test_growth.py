"""No kernel writes outside of its arrays after a fault between two lines that make room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

KERNELS = [
    "answer", "distinct", "groups", "instances", "join", "reach", "semijoin", "sorted", "store",
]  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_fault_leaves_arrays_that_fit(name):
    run = subprocess.run(
        [sys.executable, "-m", "kernel.growth", name], cwd=TESTS, capture_output=True, text=True,
        timeout=120, check=False, env={**os.environ, "GRAPHTIDE_NO_JIT": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-1000:]
