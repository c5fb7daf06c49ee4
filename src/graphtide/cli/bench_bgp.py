"""`graphtide bench bgp`: what standing patterns keep in memory, by class and strategy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling
from graphtide.errors import GraphtideError

FEWEST_TRIPLES = 900


def bgp(
    *,
    sizes: str = "100000,1000000",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    plot: Path | None = None,
    seed: int = 0,
) -> None:
    """Patterns of four classes: cache entries, bytes and cost per change of every strategy.

    Parameters
    ----------
    sizes
        How many triples to load, separated by commas.
    as_json
        Print a list of JSON objects instead of a table.
    plot
        Draw the figures, to FILE.png and FILE.svg.
    seed
        The triples are random; equal seeds give equal triples.
    """
    from graphtide.bench.bgp.plot import write_plot
    from graphtide.bench.bgp.report import to_objects, to_table
    from graphtide.bench.bgp.run import make_tasks, run_tasks
    from graphtide.bench.train.plot import check_plot

    tasks = make_tasks([_size(text) for text in sizes.split(",")], seed)
    if plot is not None:
        check_plot(plot)
    with telling() as progress:
        results = run_tasks(tasks, progress=progress)
    if as_json:
        print(json.dumps(to_objects(results)))
    else:
        show_table(to_table(results), width=120)
    if plot is not None:
        for path in write_plot(results, plot):
            print(f"drew {path}", file=sys.stderr)


def _size(text: str) -> int:
    """A number of triples.

    >>> _size("100000")
    100000
    """
    try:
        size = int(text)
    except ValueError:
        size = 0
    if size < FEWEST_TRIPLES:
        raise GraphtideError(
            f"--sizes: {text.strip()!r} is not a number of triples",
            hint=f"give whole numbers from {FEWEST_TRIPLES} on, separated by commas",
        )
    return size
