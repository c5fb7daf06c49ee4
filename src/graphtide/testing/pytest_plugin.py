"""A plugin of pytest that collects the TESTs of `.tide` programs.

In `conftest.py`: `pytest_plugins = ["graphtide.testing.pytest_plugin"]`. Files without a TEST are
left alone. The option `tide_tick_ms` of pytest's configuration has the milliseconds per tick.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from graphtide.lang.tide.program import PROGRAM_SUFFIX, Program
from graphtide.testing.program_tests import run_test

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphtide.lang.tide import ast as tide

_TEST: Final = re.compile(
    r"^\s*TEST\s+\w+\s+(?:GIVEN|UNTIL|EXPECT)\b", re.IGNORECASE | re.MULTILINE
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addini(
        "tide_tick_ms", "milliseconds per tick in tests of .tide programs", default="1000"
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TideFile | None:
    """Collect a program that declares tests."""
    if file_path.suffix != PROGRAM_SUFFIX:
        return None
    if _TEST.search(file_path.read_text(encoding="utf-8-sig")) is None:
        return None
    made: TideFile = TideFile.from_parent(parent, path=file_path)
    return made


class TideFile(pytest.File):
    """A program with tests."""

    def collect(self) -> Iterator[TideItem]:
        """Its tests, and those that it includes."""
        program = Program.read(self.path)
        for test in program.tests:
            yield TideItem.from_parent(self, name=test.name, program=program, test=test)


class TideTestError(AssertionError):
    """A test failed; its text is the difference."""


class TideItem(pytest.Item):
    """A test of a program."""

    def __init__(
        self,
        *,
        program: Program,
        test: tide.TestDeclaration,
        **given: Any,  # noqa: ANN401 - those of pytest
    ) -> None:
        super().__init__(**given)
        self._program = program
        self._test = test

    def runtest(self) -> None:
        """Run it."""
        tick_ms = int(self.config.getini("tide_tick_ms"))
        outcome = run_test(self._program, self._test, tick_ms=tick_ms)
        if not outcome.passed:
            raise TideTestError(f"{outcome.place} TEST {self.name}\n{outcome.diff()}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: object) -> Any:  # noqa: ANN401 - pytest's
        """The difference alone, without the code that found it."""
        if isinstance(excinfo.value, TideTestError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the test."""
        return self.path, self._test.line - 1, f"TEST {self.name}"
