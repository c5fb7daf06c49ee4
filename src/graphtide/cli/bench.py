"""`graphtide bench`: the benchmarks. Their modules are imported when they run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from graphtide.bench.report import run_benchmark
from graphtide.cli import options as opt
from graphtide.cli.options import MasterOption, PartitionsOption, SeedOption

if TYPE_CHECKING:
    from graphtide.bench.train.benchmark import Engine

app = App(name="bench", help="Run the benchmarks, beside other engines.")

OWN_PROCESS: Final = (
    "Each measurement runs in its own process, one after the other; use a quiet machine."
)

AsJson = Annotated[bool, Parameter(name="--json", help=opt.JSON_HELP)]
PlotFile = Annotated[Path | None, Parameter(help="Draw the results, to FILE.png and FILE.svg.")]
Sizes = Annotated[
    str,
    Parameter(
        help="Sizes, separated by commas: of models of the Train Benchmark (size 1 has about 4,000 "
        "triples, 1024 has 9 million), or numbers of quads, equipments or bodies."
    ),
]
Events = Annotated[int, Parameter(help="Number of events.")]
Peers = Annotated[bool, Parameter(negative="--no-peers", help="Measure other engines as well.")]


@dataclass(frozen=True, slots=True)
class BenchCommand:
    """A benchmark: its command, what it measures, an example, and notes for its help."""

    run: Callable[..., None]
    measures: str
    example: str
    notes: str = OWN_PROCESS
    name: str | None = None


def train(
    *,
    sizes: Sizes | None = None,
    queries: str = "all",
    scenario: str = "repair",
    strategies: str = "auto",
    plans: str = "default",
    rounds: int | None = None,
    select: str | None = None,
    together: bool = False,
    protocol: str | None = None,
    runs: int = 10,
    run_limit: float = 900,
    peers: Peers = False,
    spark: bool = False,
    partitions: PartitionsOption = 2,
    nodes: bool = False,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Run the Train Benchmark.

    Parameters
    ----------
    queries
        Names of queries, separated by commas, or all. These are the six that are also transformed;
        ActiveRoute, RouteReachability and RouteLength are checked only.
    scenario
        Scenario of the Train Benchmark: batch only checks, inject injects errors, repair removes
        them.
    strategies
        How queries are maintained, separated by commas: search, rete, decomposed, counting, or auto
        for the planner's choice.
    plans
        Names of plans, separated by commas: default for the planner's, A to C for layouts of
        RouteSensor, A to F for those of SemaphoreNeighbor.
    rounds
        How often to transform and recheck; by default 12 times for inject, 8 for repair.
    select
        What a round transforms: fixed:10 for ten matches of a query, proportional:5 for 5 %.
    together
        Run all queries in one workload, instead of one after the other.
    protocol
        paper: the experiment of "Incremental graph queries", section 6. All layouts of RouteSensor
        and SemaphoreNeighbor are repaired in 100 rounds, ten times each, on models of size 1, 2, 4
        and so on up to 1024, as far as they fit into 15 minutes and 12 GB. --plot draws its two
        figures. --sizes, --queries, --rounds, --runs and --run-limit make it shorter.
    runs
        How often each measurement of the protocol is run.
    run_limit
        Seconds after which a run of the protocol is terminated.
    spark
        Also run the same changes through the pipeline on Spark; sizes of 1 to 4 are enough.
    nodes
        Print what each node of the plans stores and has output; with --json only.
    """
    from graphtide.bench.train import protocol as paper
    from graphtide.bench.train.benchmark import BENCHMARK, make_tasks, report
    from graphtide.bench.train.plans import check_strategy
    from graphtide.datasets.train import check_scenario, parse_size

    chosen = None if sizes is None else [parse_size(size) for size in opt.names(sizes, "--sizes")]
    if protocol is not None:
        fixed = (scenario, strategies, plans, together, peers, spark, nodes)
        if protocol != "paper" or fixed != ("repair", "auto", "default", *[False] * 4):
            allowed = (
                "write paper, beside it --sizes, --queries, --rounds, --select, --runs, --run-limit"
            )
            raise opt.invalid("--protocol", protocol, allowed)
        opt.check_minimum(runs, "--runs", 1)
        experiment = paper.PaperExperiment(runs, paper.LIMITS._replace(seconds=run_limit))
        names = opt.names(queries, "--queries")
        layouts = paper.make_tasks(chosen or paper.SIZES, names, rounds, select)
        run_benchmark(experiment, layouts, as_json=as_json, plot=plot)
        return
    engines: list[Engine] = ["pyoxigraph"] if peers else []
    engines += ["spark"] if spark else []
    tasks = make_tasks(
        check_scenario(scenario),
        chosen or (1, 2, 4, 8),
        opt.names(queries, "--queries"),
        [check_strategy(name) for name in opt.names(strategies, "--strategies")],
        opt.names(plans, "--plans"),
        together=together,
        rounds=rounds,
        select=select,
        engines=engines,
        partitions=2 if partitions is None else partitions,
    )
    benchmark = replace(BENCHMARK, report=partial(report, nodes=nodes))
    run_benchmark(benchmark, tasks, as_json=as_json, plot=plot)


def route_sensor(
    *, edges: int = 1_300_000, peers: Peers = True, as_json: AsJson = False, seed: SeedOption = 0
) -> None:
    """Run RouteSensor.

    Parameters
    ----------
    edges
        About how many edges to load.
    """
    from graphtide.bench.route_sensor import BENCHMARK, MIN_EDGES, make_tasks, report

    opt.check_minimum(edges, "--edges", MIN_EDGES)
    benchmark = replace(BENCHMARK, report=partial(report, peers=peers))
    run_benchmark(benchmark, make_tasks(edges, seed, peers=peers), as_json=as_json)


def memory(*, edges: int = 1_300_000, as_json: AsJson = False, seed: SeedOption = 0) -> None:
    """Measure memory.

    Parameters
    ----------
    edges
        About how many edges to load.
    """
    from graphtide.bench.memory import BENCHMARK, make_tasks
    from graphtide.bench.route_sensor import MIN_EDGES

    opt.check_minimum(edges, "--edges", MIN_EDGES)
    run_benchmark(BENCHMARK, make_tasks(edges, seed), as_json=as_json)


def sparql(
    *,
    sizes: Sizes = "10000,100000,1000000",
    operators: str = "all",
    as_json: AsJson = False,
    plot: PlotFile = None,
    seed: SeedOption = 0,
) -> None:
    """Measure SPARQL operators.

    Parameters
    ----------
    operators
        Names of operators, separated by semicolons, or all.
    """
    from graphtide.bench.sparql import BENCHMARK, MIN_SIZE, make_tasks

    chosen = [name.strip() for name in operators.split(";")]
    tasks = make_tasks(chosen, opt.numbers(sizes, "--sizes", MIN_SIZE), seed)
    run_benchmark(BENCHMARK, tasks, as_json=as_json, plot=plot)


def bgp(
    *,
    sizes: Sizes = "100000,1000000",
    as_json: AsJson = False,
    plot: PlotFile = None,
    seed: SeedOption = 0,
) -> None:
    """Measure standing basic graph patterns."""
    from graphtide.bench.bgp import BENCHMARK, MIN_TRIPLES, make_tasks

    tasks = make_tasks(opt.numbers(sizes, "--sizes", MIN_TRIPLES), seed)
    run_benchmark(BENCHMARK, tasks, as_json=as_json, plot=plot)


def planner(
    *,
    sizes: Sizes = "100000",
    queries: str = "all",
    as_json: AsJson = False,
    seed: SeedOption = 0,
) -> None:
    """Compare the planner's choices with every strategy.

    Parameters
    ----------
    queries
        Names of queries, separated by commas, or all.
    """
    from graphtide.bench.planner.benchmark import BENCHMARK, make_tasks
    from graphtide.bench.planner.workload import MIN_QUADS

    tasks = make_tasks(
        opt.numbers(sizes, "--sizes", MIN_QUADS), opt.names(queries, "--queries"), seed
    )
    run_benchmark(BENCHMARK, tasks, as_json=as_json)


def windows(
    *,
    only: str | None = None,
    quick: bool = False,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Measure windows over graph streams.

    Parameters
    ----------
    only
        One part: table1, figure6, figure7, figure8 or figure9.
    quick
        Smaller sizes: only small windows, and shorter streams.
    """
    from graphtide.bench.windows.benchmark import BENCHMARK, PARTS, check_part, make_tasks

    parts = PARTS if only is None else (check_part(only),)
    tasks = [task for part in parts for task in make_tasks(part, quick=quick)]
    run_benchmark(BENCHMARK, tasks, as_json=as_json, plot=plot)


def rules(
    *,
    sizes: Sizes = "1000,10000,100000",
    events: Events = 300_000,
    as_json: AsJson = False,
    plot: PlotFile = None,
    seed: SeedOption = 0,
) -> None:
    """Measure a rule over facts and events."""
    from graphtide.bench.rules import BENCHMARK, make_tasks

    opt.check_minimum(events, "--events", 1)
    tasks = make_tasks(opt.numbers(sizes, "--sizes"), events, seed)
    run_benchmark(BENCHMARK, tasks, as_json=as_json, plot=plot)


def sequence(
    *, events: Events = 1_000_000, keys: int = 1_000, as_json: AsJson = False, seed: SeedOption = 0
) -> None:
    """Measure the detection of a sequence.

    Parameters
    ----------
    keys
        Number of distinct keys.
    """
    from graphtide.bench.sequence import BENCHMARK, make_tasks

    run_benchmark(BENCHMARK, make_tasks(events, keys, seed), as_json=as_json)


def gesture(
    *,
    sizes: Sizes = "1,2,4,8,16,24,25",
    find_max: Annotated[bool, Parameter(negative="--no-find-max")] = True,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Measure the detection of gestures.

    Parameters
    ----------
    find_max
        Search for the largest number of bodies that can be followed at 25 frames per second.
    """
    from graphtide.bench.gesture import BENCHMARK, make_tasks

    tasks = make_tasks(opt.numbers(sizes, "--sizes"), search=find_max)
    run_benchmark(BENCHMARK, tasks, as_json=as_json, plot=plot)


def spark(
    *,
    edges: int = 2_000_000,
    batches: int = 15,
    master: MasterOption = None,
    as_json: AsJson = False,
    seed: SeedOption = 0,
) -> None:
    """Measure the pipeline on Spark.

    Parameters
    ----------
    edges
        About how many edges to load.
    batches
        How many small micro-batches to measure at each of three sizes.
    """
    from graphtide.bench.spark.benchmark import BENCHMARK, MIN_CHANGES, make_tasks
    from graphtide.cli.spark_engine import check_needs

    opt.check_minimum(edges, "--edges", MIN_CHANGES)
    opt.check_minimum(batches, "--batches", 2)
    check_needs()
    progress = partial(print, file=sys.stderr)
    with make_tasks(edges, seed, master, progress, batches) as tasks:
        run_benchmark(BENCHMARK, tasks, as_json=as_json)


def every(
    *,
    jobs: str = "all",
    quick: bool = False,
    peers: Peers = True,
    as_json: AsJson = False,
    seed: SeedOption = 0,
) -> None:
    """Measure every kind of change.

    Parameters
    ----------
    jobs
        Names of jobs, separated by semicolons, or all.
    quick
        Smaller sizes: a twentieth of the edges and events.
    """
    from graphtide.bench.table import BENCHMARK, SIZES, make_tasks, report

    chosen = list(SIZES) if jobs == "all" else [name.strip() for name in jobs.split(";")]
    unknown = [name for name in chosen if name not in SIZES]
    if unknown:
        raise opt.invalid("--jobs", unknown[0], f"the jobs are {'; '.join(SIZES)}")
    benchmark = replace(BENCHMARK, report=partial(report, peers=peers))
    tasks = make_tasks(chosen, quick=quick, peers=peers, seed=seed)
    run_benchmark(benchmark, tasks, as_json=as_json)


def soak(
    *,
    events: Events = 2_000_000,
    parts: str = "window,rule,pattern,none",
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Measure what endless events leave behind.

    Parameters
    ----------
    parts
        What takes in the events, separated by commas: window, rule, pattern, or none for a graph
        that stores no quads.
    """
    from graphtide.bench.soak import BENCHMARK, PARTS, make_tasks

    opt.check_minimum(events, "--events", 1)
    chosen = opt.names(parts, "--parts")
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        raise opt.invalid("--parts", unknown[0], f"the parts are {', '.join(PARTS)}")
    run_benchmark(BENCHMARK, make_tasks(events, chosen), as_json=as_json, plot=plot)


def durable(
    *,
    edges: int = 1_300_000,
    quads: int = 1_300_000,
    seed: SeedOption = 0,
    as_json: AsJson = False,
) -> None:
    """Measure what a store costs.

    Parameters
    ----------
    edges
        About how many edges to load.
    quads
        About how many edges the store has that is opened.
    """
    from graphtide.bench.durable import BENCHMARK, make_tasks

    opt.check_minimum(edges, "--edges", 1)
    opt.check_minimum(quads, "--quads", 1)
    run_benchmark(BENCHMARK, make_tasks(edges, quads, seed), as_json=as_json)


def serve(
    *,
    clients: int = 1000,
    query_count: int = 50,
    changes_per_second: int = 5000,
    seconds: float = 30,
    seed: SeedOption = 0,
    as_json: AsJson = False,
) -> None:
    """Measure a server under load.

    Parameters
    ----------
    clients
        How many subscribers, or clients that ask again.
    query_count
        How many queries they share.
    changes_per_second
        How many changes come in per second, two in each transaction.
    seconds
        How long the changes go on; memory is noted after a third of it, when what is retained for
        readers that come back is at its most.
    """
    from graphtide.bench.serve import BENCHMARK, make_tasks
    from graphtide.cli.serve import check_needs

    check_needs()
    opt.check_minimum(clients, "--clients", 1)
    opt.check_minimum(query_count, "--query-count", 1)
    opt.check_minimum(changes_per_second, "--changes-per-second", 1)
    tasks = make_tasks(clients, query_count, changes_per_second, seconds, seed)
    run_benchmark(BENCHMARK, tasks, as_json=as_json)


BENCHMARKS: Final = (
    BenchCommand(
        every,
        "Every kind of change in one run: queries, windows, rules and patterns, beside their aims.",
        "graphtide bench all --quick --no-peers --json",
        f"Through the public API, in batches and one call per event. {OWN_PROCESS}",
        name="all",
    ),
    BenchCommand(
        train,
        "Train Benchmark: read a railway model, check it, transform and recheck it in rounds.",
        "graphtide bench train --sizes 1,4,16 --queries RouteSensor --strategies search,rete",
    ),
    BenchCommand(
        route_sensor,
        "RouteSensor, three joins and a negation: load edge by edge, then single updates.",
        "graphtide bench route-sensor --edges 130000 --no-peers",
        f"The peers are clipspy and DuckDB, on the same edges. {OWN_PROCESS}",
    ),
    BenchCommand(
        memory,
        "Bytes per quad and per term, as a graph counts them and by the memory of the process.",
        "graphtide bench memory --edges 130000",
    ),
    BenchCommand(
        sparql,
        "Cost of one change for each SPARQL operator, while its state grows.",
        'graphtide bench sparql --sizes 10000,100000 --operators "COUNT; MIN; top 10"',
        "Each change is a transaction. All measurements run in this process; use a quiet machine.",
    ),
    BenchCommand(
        bgp,
        "Patterns of four classes: state, memory and cost per change of every strategy.",
        "graphtide bench bgp --sizes 100000 --plot bgp",
    ),
    BenchCommand(
        planner,
        "The planner's choice beside every strategy, on even, skewed and drifted graphs.",
        'graphtide bench planner --sizes 20000 --queries "triangle, NOT EXISTS over 2 hops"',
        "73 queries, three mixes of changes; the ratio to the best in time per change and bytes. "
        "All measurements run in this process; use a quiet machine.",
    ),
    BenchCommand(
        windows,
        "Windows over graph streams: incremental, re-evaluated, and pyoxigraph.",
        "graphtide bench windows --only table1 --quick",
        f"Every event has its report; all engines must find the same matches. {OWN_PROCESS}",
    ),
    BenchCommand(
        rules,
        "AlarmConfirmation, a rule over facts and events: events per second, beside clipspy.",
        "graphtide bench rules --sizes 1000 --events 100000",
        "Events are applied as ids, as Arrow columns of texts, and the first 50,000 one per call; "
        f"all must fire for the same pairs. {OWN_PROCESS}",
    ),
    BenchCommand(
        sequence,
        "The sequence a -> b -> c -> d of one key within 10 s, each event used once.",
        "graphtide bench sequence --events 100000",
        "Compared with an automaton in plain Python for this one pattern, and with Flink if it is "
        f"installed. {OWN_PROCESS}",
    ),
    BenchCommand(
        gesture,
        "Gestures before a camera: the event engine alone, and the chain from coordinates.",
        "graphtide bench gesture --sizes 24,100,500 --no-find-max",
        "40 attributes of each body change in every frame, which is one transaction. The chain is "
        "fed with ids or with texts, or is a program whose rule fires for each gesture. "
        f"{OWN_PROCESS}",
    ),
    BenchCommand(
        spark,
        "RouteSensor on Spark: beside a pipeline that only moves the data, and beside Spark SQL.",
        "graphtide bench spark --edges 200000",
        "A graph grows to a twentieth, a quarter and all of its edges, with small micro-batches at "
        f"each size; by default on two executors of one core. {OWN_PROCESS}",
    ),
    BenchCommand(
        soak,
        "Endless events, each with an id of its own: memory over events is flat.",
        "graphtide bench soak --events 200000 --parts rule",
        f"A window, a rule, a pattern, and a graph that stores no quads. {OWN_PROCESS}",
    ),
    BenchCommand(
        durable,
        "A durable graph: writing RouteSensor beside memory only, and opening the store.",
        "graphtide bench durable --edges 130000 --quads 10000000",
        f"Writing is timed until everything is on disk. {OWN_PROCESS}",
    ),
    BenchCommand(
        serve,
        "A server: subscribers that get every delta, beside clients that ask again every second.",
        "graphtide bench serve --clients 1000 --query-count 50 --changes-per-second 5000",
        f"The peer is an Oxigraph store behind the same HTTP server. {OWN_PROCESS}",
    ),
)

for _bench in BENCHMARKS:
    app.command(
        _bench.run,
        name=_bench.name,
        help=f"{_bench.measures}\n\nExample: `{_bench.example}`\n\n{_bench.notes}",
    )
