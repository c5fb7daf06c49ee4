"""Large groups of parameters of which only a sample is quick; the others are marked as slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def quick_sample(values: Iterable[object], every: int) -> list[object]:
    """The values as parameters; of each `every` in a row, the first is quick."""
    return [value if at % every == 0 else slow(value) for at, value in enumerate(values)]


def quick_sample_of(named: Mapping[str, object], every: int) -> list[object]:
    """As `quick_sample`, the values of a mapping, with its keys as ids."""
    return [
        (slow if at % every else pytest.param)(value, id=name)
        for at, (name, value) in enumerate(named.items())
    ]


def slow(*values: object, **options: object) -> object:
    """The values of one test, which is slow."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)
