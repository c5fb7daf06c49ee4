"""`graphtide bench windows`: the measurements of paper 5, made here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling


def windows(
    *,
    only: str | None = None,
    quick: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    plot: Path | None = None,
) -> None:
    """Windows over graph streams: incremental, evaluated anew, and pyoxigraph evaluating anew.

    Parameters
    ----------
    only
        One part: table1, figure6, figure7, figure8 or figure9.
    quick
        Only small windows, and shorter streams.
    as_json
        Print a list of JSON objects instead of tables.
    plot
        Draw throughput and memory over the size of the window, to FILE.png and FILE.svg.
    """
    from graphtide.bench.train.plot import check_plot
    from graphtide.bench.windows.cell import PARTS
    from graphtide.bench.windows.plan import cells_of, check_part
    from graphtide.bench.windows.plot import write_plot
    from graphtide.bench.windows.report import to_objects, to_table
    from graphtide.bench.windows.run import run_cells

    parts = PARTS if only is None else (check_part(only),)
    if plot is not None:
        check_plot(plot)
    cells = [cell for part in parts for cell in cells_of(part, quick=quick)]
    with telling() as progress:
        results = run_cells(cells, progress=progress)
    if as_json:
        print(json.dumps(to_objects(results)))
    else:
        for part in parts:
            show_table(to_table([r for r in results if r.cell.part == part]), width=120)
    if plot is not None:
        for path in write_plot(results, plot):
            print(f"drew {path}", file=sys.stderr)
