"""A standalone cluster whose hosts are cut off and killed: `make cluster-test`."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "cluster-test.sh"


@pytest.mark.slow
def test_nothing_is_lost_when_hosts_are_cut_off_and_killed():
    ran = subprocess.run(
        ["bash", str(SCRIPT)], capture_output=True, text=True, timeout=850, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "equal to the in-process engine's" in ran.stdout
