"""Which cells the table and the figures have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.windows.cell import PARTS, Cell, Mode, Part
from graphtide.datasets.queries import LUBM_QUERIES
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TUMBLING: Final = (100_000, 500_000, 1_000_000)
_DECADES: Final = (100, 1_000, 10_000, 100_000)
_SLIDING: Final = (10_000, 50_000, 100_000, 500_000)


def check_part(name: str) -> Part:
    """The part of that name.

    >>> check_part("figure6")
    'figure6'
    """
    for part in PARTS:
        if part == name:
            return part
    raise GraphtideError(f"--only {name!r} is unknown", hint=f"choose from {', '.join(PARTS)}")


def cells_of(part: Part, *, quick: bool = False) -> list[Cell]:
    """The cells of a part, in order.

    >>> len(cells_of("table1")), len(cells_of("figure6", quick=True))
    (63, 12)
    """
    least = 100_000 if quick else 1_000_000
    match part:
        case "table1":
            return list(_table1((10_000,) if quick else _TUMBLING, least))
        case "figure6":
            return list(_figure6(_DECADES[1:3] if quick else _DECADES, least))
        case "figure7":
            return list(_sliding(part, "Q1", _SLIDING[:1] if quick else _SLIDING, least))
        case "figure8":
            return list(_sliding(part, "Q2", _SLIDING[:1] if quick else _SLIDING, least))
        case "figure9":
            return list(_memory(_SLIDING[:2] if quick else (*_SLIDING, 1_000_000)))


def _table1(windows: tuple[int, ...], least: int) -> Iterator[Cell]:
    for window in windows:
        for query in LUBM_QUERIES:
            for mode in _MODES:
                yield Cell("table1", "lubm", query, window, window, mode, least=least)


_MODES: Final[tuple[Mode, ...]] = ("incremental", "re-evaluation", "pyoxigraph")


def _figure6(windows: tuple[int, ...], least: int) -> Iterator[Cell]:
    modes: tuple[Mode, ...] = ("incremental", "incremental, one by one", "re-evaluation")
    for query in ("Q5", "Q7"):
        for window in windows:
            for mode in modes:
                yield Cell("figure6", "lubm", query, window, window, mode, least=least)


def _sliding(part: Part, query: str, windows: tuple[int, ...], least: int) -> Iterator[Cell]:
    for window in windows:
        for event in (1, 20):
            yield Cell(part, "seas", query, window, 1, "incremental", event, least)
        for mode in _MODES[1:]:
            yield Cell(part, "seas", query, window, 1, mode, least=least)


def _memory(windows: tuple[int, ...]) -> Iterator[Cell]:
    for window in windows:
        for mode in (_MODES[0], _MODES[-1]):
            yield Cell("figure9", "seas", "Q1", window, 1, mode, least=0)
