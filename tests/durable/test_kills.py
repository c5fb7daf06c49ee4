"""SIGKILL at random moments: whole transactions are there, and none that was acknowledged is lost.

GRAPHTIDE_KILLS sets how many kills there are of each kind; `make faults` makes at least 200.
"""

from __future__ import annotations

import os

import pytest
from durable.kills import check, kill_often, write

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("GRAPHTIDE_KILLS", "4"))


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory):
    """Load the compiled loops before processes are forked."""
    folder = tmp_path_factory.mktemp("warm")
    write(folder, "none", 0, os.open(os.devnull, os.O_WRONLY), rules=True, until=40)
    assert check(folder, "none", 0, 0, rules=True) == 40


@pytest.mark.parametrize("durability", ["transaction", "batch", "none"])
def test_a_killed_process_leaves_whole_transactions(tmp_path, durability):
    assert kill_often(tmp_path, durability, KILLS, seed=1000) > 0


@pytest.mark.parametrize("durability", ["transaction", "batch"])
def test_a_killed_process_with_a_program(tmp_path, durability):
    assert kill_often(tmp_path, durability, KILLS, seed=2000, rules=True) > 0
