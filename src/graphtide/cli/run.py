"""`graphtide run` and `replay`: a program over change logs, or over the inputs of a store."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from graphtide.cli import options as opt
from graphtide.cli.explain import called_functions, no_functions
from graphtide.cli.inputs import STANDARD_INPUT, reject_query
from graphtide.errors import DataError, GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.limits import Limits
from graphtide.rules.warnings import warnings_of
from graphtide.spark.files import Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.durable.store import Store
    from graphtide.rdf.changes import OnError

OutputFormat = Literal["parquet", "json"]
Start = Literal["earliest", "latest"]

DEFAULT_MASTER: Final = "local[*,4]"
"""All cores of this machine, with four attempts at each task."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A program, its input and output, and the options of a run.

    With `kafka`, changes come from topics, and `changes` is not used.
    """

    program: Program
    changes: Path
    data: tuple[Path, ...] = ()
    out: Path | None = None
    checkpoint: Path | None = None
    follow: bool = False
    as_json: bool = False
    output_format: OutputFormat = "parquet"
    on_error: OnError = "skip"
    max_quarantined: int | None = None
    start: Start = "earliest"
    tick_ms: int = 1000
    lateness: int = 0
    until: int | None = None
    streams: tuple[str, ...] = ()
    partitions: int | None = None
    limits: Limits = field(default_factory=Limits)
    kafka: opt.KafkaTopics | None = None
    idle_seconds: float | None = None
    store: Path | None = None
    spark: opt.SparkSettings = field(default_factory=opt.SparkSettings)
    page: bool = False
    disabled: tuple[str, ...] = ()
    watched: Path | None = None
    """The file of the program, if it is read again when it changes."""

    @property
    def master(self) -> str:
        """Spark's master URL."""
        return self.spark.master or DEFAULT_MASTER

    @property
    def functions(self) -> dict[str, Callable[..., None]]:
        """A function that does nothing for each that the program calls."""
        return no_functions(self.program)

    @property
    def prologues(self) -> dict[str, str]:
        """For each query a text with the prefixes of the program, to shorten IRIs."""
        return dict(self.program.texts) or {"": ""}

    def check(self) -> None:
        """Reject invalid values before any work is done."""
        opt.at_least("--max-quarantined", self.max_quarantined, 0)
        opt.at_least("--tick-ms", self.tick_ms, 1)
        opt.at_least("--lateness", self.lateness, 0)
        opt.at_least("--idle-seconds", self.idle_seconds, 0)
        opt.at_least("--partitions", self.partitions, 1)
        self.program.without_groups(self.disabled)
        if self.watched is not None and self.out is not None:
            raise GraphtideError(
                "--watch-program is not for --out: the files of a run have the columns of its "
                "first program",
                hint="leave one of them out",
            )
        if self.kafka is None:
            reject_query(self.changes, "--changes")
            changes = Location.of(self.changes)
            if self.changes != STANDARD_INPUT and not changes.is_dir() and not changes.exists():
                raise DataError("there is no such file or directory", source=str(changes))
        for path in self.data:
            reject_query(path, "--data")
            if not path.exists():
                raise DataError("there is no such file", source=str(path))
        for directory, option in ((self.out, "--out"), (self.checkpoint, "--checkpoint")):
            if directory is not None and Location.of(directory).is_file():
                raise opt.invalid(option, directory, "it is a file; give a directory")
        if self.until is not None and self.follow:
            raise GraphtideError(
                "--until is for a log that ends, and with --follow it has no end",
                hint="leave one of them out",
            )


def run(
    program: Path,
    /,
    *,
    changes: opt.ChangesOption = None,
    data: opt.DataOption = None,
    store: opt.StoreOption = None,
    engine: opt.EngineOption = "spark",
    out: Annotated[
        Path | None,
        Parameter(
            help=f"{opt.OUT_HELP} A directory, as a path or a URI such as s3a://bucket/out; by "
            "default the output is printed and not written."
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the name of the option
        OutputFormat,
        Parameter(
            help=f"{opt.FORMAT_HELP} Of the files in --out: parquet, or json for JSON lines."
        ),
    ] = "parquet",
    follow: opt.FollowOption = False,
    page: opt.PageOption = False,
    start: Annotated[Start, Parameter(group=opt.CLOCK)] = "earliest",
    on_error: opt.OnErrorOption = "skip",
    max_quarantined: int | None = None,
    as_json: Annotated[
        bool,
        Parameter(
            name="--json",
            help=f"{opt.JSON_HELP} One object per line: a row, a complex event or a firing; on "
            "Spark with --out, the status of a micro-batch.",
        ),
    ] = False,
    tick_ms: opt.TickOption = 1000,
    lateness: Annotated[int, Parameter(group=opt.CLOCK)] = 0,
    idle_seconds: Annotated[float | None, Parameter(group=opt.CLOCK)] = None,
    until: opt.UntilOption = None,
    stream: Annotated[tuple[str, ...], Parameter(group=opt.CLOCK)] = (),
    checkpoint: Annotated[Path | None, Parameter(group=opt.SPARK)] = None,
    partitions: opt.PartitionsOption = None,
    spark: opt.SparkOption = (),
    disable: opt.DisableOption = (),
    watch_program: bool = False,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
    kafka: opt.KafkaOption = (),
) -> int:
    """Run a program.

    Parameters
    ----------
    program
        A .tide file of queries, events, patterns and rules, or a .rq file with one query.
    start
        Where a first run begins: at the earliest change, or with changes written from now on.
    max_quarantined
        Stop with an error when more input rows than this are rejected.
    lateness
        Accept rows that are late by up to this many ticks; reject later ones. Spark only: in
        process, changes must be in order of time.
    idle_seconds
        After so many seconds without input the clock goes on by itself, that long behind: windows
        close, timers expire, and what comes later is rejected. Spark with --follow only.
    stream
        IRI of a graph into which inserts are events, for rules and patterns. Repeat the option for
        several.
    checkpoint
        Directory for Spark's state, as a path or a URI. The same command with the same checkpoint
        resumes where it stopped. By default the run cannot be resumed.
    watch_program
        Read the program again when its file, or another one below its folder, changes. What is as
        it was goes on; with an error in it, the old one does. In process only: for Spark, stop the
        run and call `graphtide.spark.evolve`.
    """
    if (changes is None) == (not kafka):
        raise GraphtideError(
            "give either --changes or --kafka",
            hint="--changes FILE, or --kafka servers=HOST:9092 --kafka in=TOPIC",
        )
    request = RunRequest(
        Program.read(program), changes or STANDARD_INPUT, tuple(data or ()), out, checkpoint,
        follow, as_json, format, on_error, max_quarantined, start, tick_ms, lateness, until, stream,
        partitions, limits.limits(), opt.KafkaTopics.read(kafka) if kafka else None, idle_seconds,
        store, opt.SparkSettings.read(spark), page, disable, program if watch_program else None,
    )  # fmt: skip
    request.check()
    for warning in warnings_of(request.program, tick_ms, max_event_duration=0):
        print(f"{program}:{warning}", file=sys.stderr)  # events of change logs are instants
    return run_with(choose_engine(engine if store is None else "process"), request)


def run_with(engine: opt.Engine, request: RunRequest) -> int:
    """Run a program that was checked, on an engine that is installed; the exit code."""
    if engine == "process" and request.kafka is not None:
        raise GraphtideError(
            "--kafka is for --engine spark",
            hint="install Java 17 and graphtide[spark], or read change logs with --changes",
        )
    if called := called_functions(request.program):
        names = ", ".join(called)
        print(f"CALL {names}: listed as firings, not called", file=sys.stderr)
    if engine == "spark":
        from graphtide.cli.spark_engine import run_on_spark

        if request.watched is not None:
            raise GraphtideError(
                "--watch-program is for --engine process",
                hint="stop the run, and let it go on with another program: graphtide.spark.evolve",
            )
        return run_on_spark(
            replace(request, program=request.program.without_groups(request.disabled))
        )
    from graphtide.cli.process_engine import run_in_process

    return run_in_process(request)


def choose_engine(engine: opt.Engine) -> opt.Engine:
    """The engine to run on: without Java or PySpark, this process instead of Spark."""
    if engine == "process":
        return engine
    from graphtide.cli.spark_engine import missing_for_spark

    missing = missing_for_spark()
    if missing is None:
        return engine
    print(f"running in process, without Spark: {missing}", file=sys.stderr)
    return "process"


# --- replay ---


def replay(
    store: Path,
    program: Path,
    /,
    *,
    since: int | None = None,
    until: opt.UntilOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Run another program or query over the inputs that a store has recorded, at full speed.

    Parameters
    ----------
    store
        The directory of the store; it is only read.
    program
        A .tide file, or a .rq file with one query. What ran on the store itself does not run.
    since
        The time at which it begins; before that there are data, but no output. By default at the
        beginning.
    """
    from graphtide.durable.store import Store

    declared = Program.read(program)
    recorded = Store(store, read_only=True)
    try:
        options = recorded.options({})
        return _replayed(recorded, LiveGraph(**options), declared, since, until, as_json=as_json)
    finally:
        recorded.abandon()


def _replayed(
    recorded: Store,
    graph: LiveGraph,
    program: Program,
    since: int | None,
    until: int | None,
    *,
    as_json: bool,
) -> int:
    """Bring a graph to where the program begins, run it, and go on with the inputs."""
    from graphtide.cli.output import open_output, summary
    from graphtide.cli.session import Session
    from graphtide.cli.watch import stoppable
    from graphtide.durable.replay import Replay, Until

    begin = Until(tx=0) if since is None else Until(time=since - 1)
    runtime, streams = graph._runtime, graph._streams  # noqa: SLF001 - made by the caller
    data = Replay(graph, runtime, None, begin, only_data=True)
    recorded.replay_inputs(data, streams)
    running = graph.run(program, functions=no_functions(program), start="earliest")
    session = Session(graph, {}, tick_ms=runtime.tick_ms)
    session.add_program(running)
    data.until = Until(time=until)
    texts = dict(program.texts) or {"": ""}
    first = runtime.transactions
    with stoppable(), open_output(texts, session, as_json=as_json) as output:
        output.write(session.take())
        for _ in data.steps():
            output.write(session.take())
    session.transactions = runtime.transactions - first
    print(summary(session), file=sys.stderr)
    return 0
