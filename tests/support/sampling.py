"""Large groups of parameters of which only a sample is quick; the others are marked as slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def quick_sample(values: Iterable[object], every: int) -> list[object]:
    """The values as parameters; of each `every` in a row, the first is quick."""
    return [value if at % every == 0 else slow(value) for at, value in enumerate(values)]


def slow(*values: object, **options: object) -> object:
    """The values of one test, which is slow."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)
