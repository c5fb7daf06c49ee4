"""The tests as parameters, and the line of the summary that each of them counts in."""

from __future__ import annotations

import pytest
from w3c.manifest import EvaluationTest, SyntaxTest, UpdateTest, suite_folder

ABSENT = pytest.param(
    None,
    id="absent",
    marks=pytest.mark.skip(reason=f"the W3C suites are not at {suite_folder().name}"),
)


def parameters(tests) -> list:
    """Tests for `parametrize`, by name; one that is skipped when the suites are absent."""
    return [pytest.param(test, id=test.name) for test in tests] or [ABSENT]


def suite_of(test: EvaluationTest | SyntaxTest | UpdateTest) -> str:
    """The suite of a test, such as `sparql11-update`."""
    suite = test.name.split("/")[0]
    if isinstance(test, UpdateTest):
        return f"{suite}-update"
    if isinstance(test, SyntaxTest):
        return f"{suite}-update-syntax" if test.update else f"{suite}-syntax"
    return suite


def line(test: EvaluationTest | SyntaxTest | UpdateTest, way: str) -> tuple[str, str]:
    """What `record_property` is told: in which line of the summary a test counts."""
    return "w3c", f"{suite_of(test)} {way}"
