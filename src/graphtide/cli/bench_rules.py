"""`graphtide bench rules`: events per second through the rule of paper 2, beside clipspy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling
from graphtide.errors import GraphtideError


def rules(
    *,
    sizes: str = "1000,10000,100000",
    events: int = 300_000,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    plot: Path | None = None,
    seed: int = 0,
) -> None:
    """AlarmConfirmation over facts and events: events per second, beside clipspy.

    Parameters
    ----------
    sizes
        How many equipments, one number or several with commas.
    events
        About how many events; call by call only the first 50,000 of them.
    as_json
        Print a list of JSON objects instead of a table.
    plot
        Draw events per second over equipments, to FILE.png and FILE.svg.
    seed
        The events are random; equal seeds give equal events.
    """
    from graphtide.bench.rules.plot import write_plot
    from graphtide.bench.rules.report import to_objects, to_table
    from graphtide.bench.rules.run import has_peer, run_benchmark
    from graphtide.bench.train.plot import check_plot

    try:
        chosen = [int(size) for size in sizes.split(",")]
    except ValueError:
        chosen = []
    if not chosen or min(*chosen, events) < 1:
        raise GraphtideError(
            f"--sizes {sizes} --events {events} cannot be measured",
            hint="give whole numbers from 1 on: --sizes 1000,10000",
        )
    if plot is not None:
        check_plot(plot)
    with telling() as progress:
        results = run_benchmark(chosen, events, seed=seed, progress=progress)
    if not has_peer():
        print("clipspy was left out: pip install 'graphtide[bench]'", file=sys.stderr)
    if as_json:
        print(json.dumps(to_objects(results)))
    else:
        show_table(to_table(results))
    if plot is not None:
        for path in write_plot(results, plot):
            print(f"drew {path}", file=sys.stderr)
