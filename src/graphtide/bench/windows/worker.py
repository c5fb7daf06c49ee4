"""One cell in a process of its own: `python -m … JSON` prints its figures as JSON.

A small cell of the same kind is measured first, to have all code compiled and loaded.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.windows.cell import Cell
from graphtide.bench.windows.ours import Figures, incremental, one_by_one, reevaluation
from graphtide.bench.windows.peer import peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.bench.windows.cell import Mode

MEASURES: Final[dict[Mode, Callable[[Cell], Figures]]] = {
    "incremental": incremental,
    "incremental, one by one": one_by_one,
    "re-evaluation": reevaluation,
    "pyoxigraph": peer,
}

WARM: Final = 100
"""Triples of the window that everything is warmed up with."""


def measure(cell: Cell) -> dict[str, Any]:
    """The figures of a cell, without the stops of Python's garbage collection.

    >>> cell = Cell("table1", "lubm", "Q2", 1_000, 1_000, "incremental", least=0)
    >>> measure(cell)["triples"]
    2500
    """
    run = MEASURES[cell.mode]
    slide = WARM if cell.slide == cell.window else 1
    run(replace(cell, window=WARM, slide=slide, least=0))
    gc.collect()
    gc.disable()
    try:
        figures = run(cell)
    finally:
        gc.enable()
    return asdict(figures) | {"rss_mb": peak_rss_mb()}


if __name__ == "__main__":
    print(json.dumps(measure(Cell(**json.loads(sys.argv[1])))))
