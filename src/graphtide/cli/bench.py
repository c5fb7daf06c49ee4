"""`graphtide bench`: every figure that we claim, measured here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from graphtide.cli.bench_help import HELP
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from rich.table import Table

app = App(name="bench", help="Measure it yourself, beside other engines.")
for _name, _help in HELP.items():
    app.command(f"graphtide.cli.bench_{_name}:{_name}", name=_name, help=_help)

FEWEST_EDGES = 100
FEWEST_CHANGES = 1000


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
    from graphtide.bench.route_sensor.report import to_object, to_table
    from graphtide.bench.route_sensor.run import run_benchmark
    from graphtide.bench.route_sensor.worker import PEERS

    if edges < FEWEST_EDGES:
        raise GraphtideError(f"--edges {edges} is too small", hint=f"{FEWEST_EDGES} is the least")
    with telling() as progress:
        results = run_benchmark(edges, seed=seed, peers=PEERS if peers else (), progress=progress)
    for name, reason in results.missing.items():
        print(f"{name} was left out: {reason}", file=sys.stderr)
    if as_json:
        print(json.dumps(to_object(results)))
    else:
        show_table(to_table(results))


@app.command
def spark(
    *,
    changes: int = 2_000_000,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    master: str | None = None,
    seed: int = 0,
) -> None:
    """RouteSensor on Spark: beside a pipeline that only moves the data, and beside Spark SQL.

    Example: `graphtide bench spark --changes 200000`

    A graph grows to a twentieth, a quarter and all of its edges, with small micro-batches at each
    size. Each pipeline runs in its own process, one after the other; use a quiet machine.

    Parameters
    ----------
    changes
        About how many edges the stream inserts.
    as_json
        Print one JSON object instead of a table.
    master
        Where Spark runs; by default two executors of one core on this machine.
    seed
        The edges are random; equal seeds give equal edges.
    """
    from graphtide.bench.spark import MASTER
    from graphtide.bench.spark.report import to_object, to_table
    from graphtide.bench.spark.run import run_benchmark
    from graphtide.cli.run_needs import check_needs

    if changes < FEWEST_CHANGES:
        hint = f"{FEWEST_CHANGES} is the least"
        raise GraphtideError(f"--changes {changes} is too small", hint=hint)
    check_needs()
    with telling() as progress:
        results = run_benchmark(changes, seed=seed, master=master or MASTER, progress=progress)
    if as_json:
        print(json.dumps(to_object(results)))
    else:
        show_table(to_table(results, changes))


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """Something to call with what is measured next: it is shown while it goes on."""
    from rich.console import Console

    screen = Console(stderr=True, highlight=False)
    with screen.status("starting") as shown:

        def progress(step: str) -> None:
            shown.update(step)
            if not screen.is_terminal:
                print(step, file=sys.stderr)

        yield progress


def show_table(table: Table, width: int = 100) -> None:
    """Print a table, as wide as it needs to be where nobody looks at a terminal."""
    from rich.console import Console

    Console(highlight=False, width=None if sys.stdout.isatty() else width).print(table)
