"""`graphtide bench sparql`: what one change costs each operator, as its state grows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling
from graphtide.errors import GraphtideError

SMALLEST = 1000


def sparql(
    *,
    sizes: str = "10000,100000,1000000",
    operators: str = "all",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    plot: Path | None = None,
    seed: int = 0,
) -> None:
    """Cost of one change per SPARQL operator, while its state grows; use a quiet machine.

    Parameters
    ----------
    sizes
        Numbers of quads (pairs for a path), separated by commas.
    operators
        Names of operators, separated by semicolons, or all.
    as_json
        Print a list of JSON objects instead of a table.
    plot
        Draw the cost over the size, to FILE.png and FILE.svg.
    seed
        What changes is random; equal seeds give equal changes.
    """
    from graphtide.bench.sparql.operators import find_operators
    from graphtide.bench.sparql.plot import write_plot
    from graphtide.bench.sparql.report import to_objects, to_table
    from graphtide.bench.sparql.run import run_benchmark
    from graphtide.bench.train.plot import check_plot

    wanted = _sizes(sizes)
    chosen = find_operators([name.strip() for name in operators.split(";")])
    if plot is not None:
        check_plot(plot)
    with telling() as progress:
        results = run_benchmark(chosen, wanted, seed=seed, progress=progress)
    if as_json:
        print(json.dumps(to_objects(results)))
    else:
        show_table(to_table(results))
    if plot is not None:
        for path in write_plot(results, plot):
            print(f"drew {path}", file=sys.stderr)


def _sizes(text: str) -> list[int]:
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isdigit() and int(part) >= SMALLEST for part in parts):
        hint = f"give numbers from {SMALLEST} on, such as 10000,100000"
        raise GraphtideError(f"--sizes {text!r}: these are no sizes", hint=hint)
    return sorted({int(part) for part in parts})
