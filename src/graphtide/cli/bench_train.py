"""`graphtide bench train`: the phases of the Train Benchmark, measured here."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.bench.train.workload import Engine, Workload


def train(
    *,
    sizes: str = "1,2,4,8",
    queries: str = "all",
    scenario: str = "repair",
    strategy: str = "auto",
    plans: str = "default",
    rounds: int | None = None,
    select: str | None = None,
    together: bool = False,
    peer: bool = False,
    spark: bool = False,
    cells: int = 2,
    nodes: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    plot: Path | None = None,
) -> None:
    """Train Benchmark: read a railway model, check it, then transform and recheck it in rounds.

    Parameters
    ----------
    sizes
        Sizes of models; size 1 has about 4,000 triples, 1024 has 9 million.
    queries
        Names of queries, or all for the six that are transformed too. ActiveRoute,
        RouteReachability and RouteLength can be named beside them.
    scenario
        batch only checks; inject puts errors in; repair mends them.
    strategy
        How queries are maintained: search, rete, or auto for the planner's choice.
    plans
        Names of plans: default for the planner's, A to C for layouts of RouteSensor, A to F for
        those of SemaphoreNeighbor.
    rounds
        How often to transform and recheck; by default 12 times for inject, 8 for repair.
    select
        What a round transforms: fixed:10 for ten matches of a query, proportional:5 for 5 %.
    together
        Run all queries in one workload, instead of one after the other.
    peer
        Measure pyoxigraph as well, which evaluates the queries anew after every round.
    spark
        Run the same changes through the pipeline on Spark as well; sizes of 1 to 4 are enough.
    cells
        Into how many cells the pipeline divides the work.
    nodes
        Tell of each node of the plans what it stores and has sent; with --json only.
    as_json
        Print a list of JSON objects instead of a table.
    plot
        Draw the phases over the size of the model, to FILE.png and FILE.svg.
    """
    from graphtide.bench.train.plans import check_strategy
    from graphtide.bench.train.workload import make_workloads
    from graphtide.datasets.train import check_scenario, parse_size

    engines: list[Engine] = ["pyoxigraph"] if peer else []
    engines += ["spark"] if spark else []
    workloads = make_workloads(
        check_scenario(scenario),
        [parse_size(size) for size in names(sizes, "--sizes")],
        names(queries, "--queries"),
        [check_strategy(name) for name in names(strategy, "--strategy")],
        names(plans, "--plans"),
        together=together,
        rounds=rounds,
        select=select,
        engines=engines,
        cells=cells,
    )
    measure(workloads, as_json=as_json, nodes=nodes, plot=plot)


def measure(
    workloads: Sequence[Workload], *, as_json: bool, nodes: bool, plot: Path | None
) -> None:
    """Run workloads, print what was measured, and draw it if wanted."""
    from graphtide.bench.train.plot import check_plot, write_plot
    from graphtide.bench.train.report import to_objects, to_table
    from graphtide.bench.train.run import run_workloads

    if plot is not None:
        check_plot(plot)
    with telling() as progress:
        results = run_workloads(workloads, progress=progress)
    if as_json:
        print(json.dumps(to_objects(results, nodes=nodes)))
    else:
        show_table(to_table(results, workloads[0].scenario), width=140)
    if plot is not None:
        together = len(results) > len(workloads)
        for path in write_plot(results, plot, together=together):
            print(f"drew {path}", file=sys.stderr)


def names(text: str, option: str) -> list[str]:
    """Read a list of names, each once.

    >>> names("A, B,A", "--plans")
    ['A', 'B']
    """
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise GraphtideError(
            f"{option} {text!r}: a name is missing", hint="separate names by single commas"
        )
    return list(dict.fromkeys(found))
