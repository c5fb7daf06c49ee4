"""One datum walks through few files: the limits of `scripts/walks.py`, and the docs show them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_walks_keep_to_their_limits_and_the_docs_show_them():
    ran = subprocess.run(
        [sys.executable, ROOT / "scripts" / "walks.py"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    files = {tuple(line.split(" | ")[:2]) for line in ran.stdout.splitlines()[2:]}
    shown = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    for name, count in files:
        assert f"{name} | {count} |" in shown
