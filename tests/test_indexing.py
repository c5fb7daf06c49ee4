"""Indexes of compiled loops: not compared with zero in this package, as ever in other code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from graphtide import jit

pytestmark = pytest.mark.skipif(not jit.JIT, reason="there is no compiler")

PROBE = """
import sys
import numba
import numpy as np
from graphtide.jit import compiled

def element(values: "Longs1", at: "Int"):
    return values[at]

def last(values: "Longs2", at: "Int"):
    return values[at, -1]

def attempt(function, *given):
    try:
        return str(function(*given))
    except IndexError as error:
        return f"IndexError: {error}"

row, table = np.arange(3), np.arange(6).reshape(2, 3)
theirs = [numba.njit(element), numba.njit(last)]
print(*(theirs[0](row, at) for at in (0, 2, -1)), theirs[1](table, 0))
element.__module__ = last.__module__ = "graphtide.probe"
ours = [compiled(element), compiled(last)]
for at in (0, 2, 3, -1):
    print(at, attempt(ours[0], row, at))
print(attempt(ours[1], table, 0))
"""

OUTSIDE = "IndexError: an index is outside of its array in the compiled "


def test_with_checks_an_index_outside_of_its_array_raises():
    environment = os.environ | {"GRAPHTIDE_CHECK_INDEXES": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [
        "0 2 2 2", "0 0", "2 2", f"3 {OUTSIDE}element", f"-1 {OUTSIDE}element", f"{OUTSIDE}last",
    ]  # fmt: skip


def test_functions_of_others_count_from_the_end():
    import numba

    @numba.njit
    def from_the_end(values, at):
        return values[at] + values[-1]

    assert from_the_end(np.arange(4), -2) == 5
