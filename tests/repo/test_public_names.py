"""The list of public names is that of the package: a review sees each change of it."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

from repo.public_names import public_names

HERE = Path(__file__).parent


def test_the_public_names_are_those_of_the_list():
    listed = (HERE / "public_names.txt").read_text(encoding="utf-8").splitlines()
    diff = list(unified_diff(listed, public_names(), "listed", "there", lineterm="", n=0))
    command = "python tests/repo/public_names.py > tests/repo/public_names.txt"
    assert not diff, "\n".join([*diff, f"if that is meant: {command}"])
