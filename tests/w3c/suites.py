"""The tests as parameters, and the line of the summary that each of them counts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.sampling import slow
from w3c.manifest import EvaluationTest, SyntaxTest, UpdateTest, suite_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

ABSENT = pytest.param(
    None,
    id="absent",
    marks=pytest.mark.skip(reason=f"the W3C suites are not at {suite_folder().name}"),
)


def parameters(tests, every: int = 1) -> list:
    """Tests for `parametrize`, by name; of each `every` of them, one is quick.

    One that is skipped when the suites are absent.
    """
    return [
        (slow if at % every else pytest.param)(test, id=test.name) for at, test in enumerate(tests)
    ] or [ABSENT]


def sampled_parameters(tests, others: Sequence[object], every: int) -> list:
    """Pairs of a test and one of the others, by name; of each `every` of them, one is quick."""
    pairs = [(test, other) for test in tests for other in others]
    return [
        (slow if at % every else pytest.param)(test, other, id=f"{test.name}-{other}")
        for at, (test, other) in enumerate(pairs)
    ] or [pytest.param(None, None, id="absent", marks=ABSENT.marks)]


def suite_of(test: EvaluationTest | SyntaxTest | UpdateTest) -> str:
    """The suite of a test, such as `sparql11-update`."""
    suite = test.name.split("/")[0]
    if isinstance(test, UpdateTest):
        return f"{suite}-update"
    if isinstance(test, SyntaxTest):
        return f"{suite}-update-syntax" if test.update else f"{suite}-syntax"
    return suite


def line(test: EvaluationTest | SyntaxTest | UpdateTest, way: str) -> tuple[str, str]:
    """The arguments of `record_property`: the line of the summary in which a test counts."""
    return "w3c", f"{suite_of(test)} {way}"
