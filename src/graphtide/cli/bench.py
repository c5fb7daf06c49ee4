"""`graphtide bench`: every figure that we claim, measured here."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from cyclopts import App, Parameter

from graphtide.errors import GraphtideError

app = App(name="bench", help="Measure it yourself, beside other engines.")

FEWEST_EDGES = 100


@app.command
def route_sensor(
    *,
    edges: int = 1_300_000,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    peers: Annotated[bool, Parameter(negative="--no-peers")] = True,
    seed: int = 0,
) -> None:
    """RouteSensor, three joins and a negation: load edge by edge, then single updates.

    Example: `graphtide bench route-sensor --edges 130000 --no-peers`

    Each measurement runs in its own process, one after the other; use a quiet machine.

    Parameters
    ----------
    edges
        About how many edges to load.
    as_json
        Print one JSON object instead of a table.
    peers
        Measure clipspy and DuckDB on the same edges as well.
    seed
        The edges are random; equal seeds give equal edges.
    """
    from rich.console import Console

    from graphtide.bench.route_sensor.report import to_object, to_table
    from graphtide.bench.route_sensor.run import run_benchmark
    from graphtide.bench.route_sensor.worker import PEERS

    if edges < FEWEST_EDGES:
        raise GraphtideError(f"--edges {edges} is too small", hint=f"{FEWEST_EDGES} is the least")
    screen = Console(stderr=True, highlight=False)
    with screen.status("starting") as shown:

        def progress(step: str) -> None:
            shown.update(step)
            if not screen.is_terminal:
                print(step, file=sys.stderr)

        results = run_benchmark(edges, seed=seed, peers=PEERS if peers else (), progress=progress)
    for name, reason in results.missing.items():
        print(f"{name} was left out: {reason}", file=sys.stderr)
    if as_json:
        print(json.dumps(to_object(results)))
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else 100).print(
            to_table(results)
        )
