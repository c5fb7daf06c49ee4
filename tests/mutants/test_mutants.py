"""Each mutant still has its place in the sources, and is another program there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.mutants import MUTANTS, Mutant
from mutants.run import difference, edited

PACKAGE = Path(__file__).parents[2] / "src" / "graphtide"


def test_there_are_twenty_of_different_names():
    assert len(MUTANTS) == 20
    assert len({mutant.name for mutant in MUTANTS}) == 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_text_occurs_once_and_the_edit_compiles(mutant):
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    changed = edited(text, mutant)
    assert changed != text
    compile(changed, mutant.file, "exec")


def test_a_text_that_is_gone_is_an_error():
    with pytest.raises(ValueError, match=r"gone: x\.py has its text 0 times"):
        edited("a = 1\n", Mutant("gone", "x.py", "b = 1", "b = 2", ""))


def test_a_run_that_ends_early_differs():
    assert difference(["0 a=1", "1 a=1"], ["0 a=1"]) == "2 missing"
    assert difference(["0 a=1"], ["0 a=1"]) == ""
