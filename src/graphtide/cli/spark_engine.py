"""The engine `spark` of `graphtide run` and `graphtide demo`: what it needs, a run, its status."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from graphtide.cli import serve
from graphtide.cli.inputs import STANDARD_INPUT
from graphtide.cli.output import FRAMES_PER_SECOND, OutputWriter, counted, open_output
from graphtide.cli.session import EventOutput, FiringOutput, RowOutput, SessionOutput
from graphtide.cli.watch import INTERRUPTED, stoppable
from graphtide.engine.results import DeltaRow
from graphtide.errors import GraphtideError
from graphtide.rdf.terms import parse_term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from graphtide.cli.options import KafkaTopics
    from graphtide.cli.run import RunRequest
    from graphtide.lang.tide.program import Program
    from graphtide.serve.page.run import RunData
    from graphtide.spark.driver.options import RunOptions
    from graphtide.spark.driver.run import SparkJob
    from graphtide.spark.driver.sink import OnBatch
    from graphtide.spark.driver.status import BatchStatus
    from graphtide.spark.files import Location

LINE_SECONDS: Final = 1.0
"""Between two lines of status in a pipe or a file."""

OLDEST_JAVA: Final = 17
JAVA_SECONDS: Final = 60
FILES_NAMED: Final = 3

BRIEF_BYTES: Final = 20 * 2**20
"""Changes that Spark reads in less time than Java takes to optimise its code for them."""

_MODULES: Final = {"pyspark": "pyspark", "pandas": "pandas", "google.protobuf": "protobuf"}
_JAVA_HINT: Final = (
    f"install Java {OLDEST_JAVA} or later (such as openjdk-{OLDEST_JAVA}-jre-headless), "
    "or point JAVA_HOME to it"
)


# --- what Spark needs ---


def check_needs() -> None:
    """Raise `GraphtideError` if PySpark or Java is missing; it says how to install them."""
    missing = [name for module, name in _MODULES.items() if not _is_installed(module)]
    if missing:
        raise GraphtideError(
            f"Spark needs {', '.join(missing)}", hint='pip install "graphtide[spark]"'
        )
    version = java_version(_version_report(_java()))
    if version < OLDEST_JAVA:
        raise GraphtideError(
            f"Spark needs Java {OLDEST_JAVA}, and this is Java {version}", hint=_JAVA_HINT
        )


def missing_for_spark() -> str | None:
    """What is missing to run on Spark, in one line; None if nothing is."""
    try:
        check_needs()
    except GraphtideError as error:
        return f"{error.message} ({error.hint})"
    return None


def java_version(report: str) -> int:
    """The major version in the output of `java -version`.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('version "1.8.0_392"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', report)
    if found is None:
        raise GraphtideError("java -version prints no version", hint=_JAVA_HINT)
    return int(found[1])


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise GraphtideError(f"JAVA_HOME is {home}, and there is no bin/java", hint=_JAVA_HINT)
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise GraphtideError("Spark needs Java, and none is installed", hint=_JAVA_HINT)
    return found


def _version_report(java: str) -> str:
    """What Java says of its version; a file beside it says the same without starting it."""
    with suppress(OSError):
        release = (Path(java).resolve().parents[1] / "release").read_text(encoding="utf-8")
        if found := re.search(r'^JAVA_VERSION="[\d.]+.*"$', release, re.MULTILINE):
            return found[0].replace("JAVA_VERSION=", "version ")
    try:
        ran = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraphtideError(f"{java} cannot be run: {error}", hint=_JAVA_HINT) from None
    return ran.stderr + ran.stdout


# --- a run ---


def run_on_spark(request: RunRequest) -> int:
    """Run a program on Spark to the end of its changes, or until Ctrl-C; the exit code."""
    if request.until is not None:
        raise GraphtideError("--until is for --engine process: on Spark, changes advance the clock")
    if request.kafka is not None:
        with stoppable():
            return run_over_kafka(request, request.kafka)
    if request.changes == STANDARD_INPUT:
        raise GraphtideError(
            "--changes - is for --engine process: Spark reads files",
            hint="name a change log, or a directory of them",
        )
    with ExitStack() as stack:
        stack.enter_context(stoppable())
        home = Path(stack.enter_context(temporary_directory("graphtide-run-")))
        options = run_options(request, request.changes, home)
        _check(request, options)
        print_start(options, request.program)
        output = None
        if request.out is None:
            opened = open_output(request.prologues, as_json=request.as_json)
            output = stack.enter_context(opened)
        return _run(request, options, output, home)


@contextmanager
def temporary_directory(prefix: str) -> Iterator[str]:
    """A directory that is removed at the end, also after Ctrl-C or SIGTERM."""
    home = tempfile.mkdtemp(prefix=prefix)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run_options(request: RunRequest, changes: str | Path, home: Path) -> RunOptions:
    """The options of the run; what is not given is in a temporary directory."""
    from graphtide.spark.driver.options import RunOptions
    from graphtide.spark.driver.run import known_partitions
    from graphtide.spark.files import Location
    from graphtide.spark.session import default_partitions

    checkpoint = Location.of(request.checkpoint or home / "checkpoint")
    partitions = request.partitions or known_partitions(checkpoint)
    return RunOptions(
        Location.of(changes),
        Location.of(request.out or home / "out"),
        checkpoint,
        partitions or default_partitions(request.master),
        trigger=request.spark.trigger,
        once=not request.follow,
        output_format="parquet" if request.out is None else request.output_format,
        rows_per_batch=request.spark.rows_per_batch,
        on_error=request.on_error,
        max_quarantined=request.max_quarantined,
        start=request.start,
        lateness=request.lateness,
        idle_seconds=request.idle_seconds,
        tick_ms=request.tick_ms,
        streams=request.streams,
        data=request.data,
        limits=request.limits,
        hubs=request.spark.hubs,
    )


def _check(request: RunRequest, options: RunOptions) -> None:
    """Check all that can be checked before Spark starts."""
    from graphtide.spark.driver.options import check_options

    if request.data and request.start == "latest":
        raise GraphtideError(
            "--data is read from its start: --start latest cannot be used with it on Spark",
            hint="leave one of them out, or use --engine process",
        )
    check_options(request.program, options)


def _run(request: RunRequest, options: RunOptions, output: OutputWriter | None, home: Path) -> int:
    from graphtide.spark.driver.run import start
    from graphtide.spark.session import open_session

    log = (options.checkpoint.local or home) / "spark.log"
    session = open_session(request.master, options.partitions, log, brief=is_brief(options))
    with shown_on_page(request.program, options, shown=request.page) as page:
        with session as spark, stop_requested() as stop:
            printer = None if output is None else BatchPrinter(output, options.out, request.program)
            job = start(spark, request.program, options, printer, request.functions)
            follow_status(job, stop, as_json=request.as_json, quiet=output is not None, page=page)
        return end_of_run(request, options, job, page, interrupted=stop())


@contextmanager
def shown_on_page(
    program: Program, options: RunOptions, *, shown: bool
) -> Iterator[RunData | None]:
    """Show a run on a page, if that was asked for."""
    if not shown:
        yield None
        return
    serve.check_needs()
    from graphtide.serve.page.run import RunData

    data = RunData(program, options)
    with serve.page_of(data):
        yield data


def is_brief(options: RunOptions) -> bool:
    """Whether a run ends with its input, and that is little.

    >>> from graphtide.spark.driver.options import RunOptions
    >>> from graphtide.spark.files import Location
    >>> place = Location.of("/nowhere")
    >>> [is_brief(RunOptions(place, place, place, 2, once=once)) for once in (True, False)]
    [True, False]
    """
    from graphtide.spark.files import Location
    from graphtide.spark.source.plan import log_files

    changes = options.changes
    if not options.once or not isinstance(changes, Location):
        return False
    found = changes.info()
    entries = log_files(changes) if changes.is_dir() else [] if found is None else [found]
    return sum(entry.size for entry in entries) < BRIEF_BYTES


def end_of_run(
    request: RunRequest,
    options: RunOptions,
    job: SparkJob,
    page: RunData | None = None,
    *,
    interrupted: bool,
) -> int:
    """Print totals and where the output is, let the page stay; the exit code."""
    print_totals(job, request.program)
    if request.out is not None:
        print(f"the output is in {options.out}", file=sys.stderr)
        if job.sink.progress.quarantined:
            count = counted(job.sink.progress.quarantined, "row")
            print(f"{count} rejected, see {options.out / 'quarantine'}", file=sys.stderr)
    elif job.sink.progress.quarantined:
        print(f"{counted(job.sink.progress.quarantined, 'row')} rejected", file=sys.stderr)
    if page is not None and not interrupted:
        page.end("All changes are read.")
        serve.wait_for_interrupt()
    return INTERRUPTED if options.once and interrupted else 0


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM was received; a second one raises `KeyboardInterrupt`."""
    flag = Event()

    def request_stop(number: int, frame: object) -> None:  # noqa: ARG001 - Python's signature
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()
        print("stopping after this micro-batch", file=sys.stderr, flush=True)

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, request_stop) for number in signals}
    try:
        yield flag.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- output of micro-batches ---


class BatchPrinter:
    """Prints the output of each micro-batch, from its tables and its file of firings."""

    def __init__(self, output: OutputWriter, out: Location, program: Program) -> None:
        self._output = output
        self._firings = out / "firings"
        self._patterns = {pattern.name for pattern in program.patterns}
        self._printed: set[str] = set()

    def __call__(self, tables: dict[str, pa.Table]) -> None:
        """Print the output of a micro-batch."""
        rows: list[RowOutput] = []
        events: list[SessionOutput] = []
        for name, table in tables.items():
            if name in self._patterns:
                events += (_event(name, row) for row in table.to_pylist())
            else:
                rows += (_row(name, row) for row in table.to_pylist())
        rows.sort(key=lambda found: (found.row.time, found.row.tx))
        found: list[SessionOutput] = [*rows, *events, *self._new_firings()]
        found.sort(key=attrgetter("time"))
        self._output.write(found)

    def _new_firings(self) -> Iterable[FiringOutput]:
        import pyarrow.parquet as pq

        for entry in self._firings.entries():
            if entry.name.startswith("batch-") and entry.name not in self._printed:
                self._printed.add(entry.name)
                with (self._firings / entry.name).open() as file:
                    rows = pq.read_table(file).to_pylist()
                for row in rows:
                    values = {n: parse_term(text) for n, text in row["values"]}
                    yield FiringOutput(row["rule"], row["time"], values, dict(row["events"]))


def _row(name: str, row: dict[str, Any]) -> RowOutput:
    time_, tx, diff = (row.pop(key) for key in ("time", "tx", "diff"))
    terms = {key: None if text is None else parse_term(text) for key, text in row.items()}
    return RowOutput(name, DeltaRow(time_, tx, diff, terms))


def _event(name: str, row: dict[str, Any]) -> EventOutput:
    time_, _, _ = (row.pop(key) for key in ("time", "tx", "diff"))
    values = {key: parse_term(text) for key, text in row.items() if text is not None}
    return EventOutput(name, time_, time_, values)


# --- status ---


def follow_status(
    job: SparkJob,
    stop: Callable[[], bool],
    *,
    as_json: bool,
    quiet: bool = False,
    page: RunData | None = None,
) -> None:
    """Print the status of each micro-batch until the run ends; not if `quiet`."""
    statuses = job.statuses(stop) if page is None else page.following(job, stop)
    if quiet:
        for _ in statuses:
            pass
    elif as_json:
        for status in statuses:
            print(json.dumps(status.to_json()), flush=True)
    elif sys.stderr.isatty():
        console = Console(stderr=True, highlight=False)
        with Live(console=console, refresh_per_second=FRAMES_PER_SECOND) as live:
            for status in statuses:
                live.update(Text(status.line_of_text()))
    else:
        _print_lines(statuses)


def _print_lines(statuses: Iterator[BatchStatus]) -> None:
    """A line of status at most every `LINE_SECONDS`, and the last one."""
    printed = time.monotonic() - LINE_SECONDS
    last: BatchStatus | None = None
    for status in statuses:
        last = status
        if time.monotonic() - printed >= LINE_SECONDS:
            print(status.line_of_text(), file=sys.stderr, flush=True)
            printed, last = time.monotonic(), None
    if last is not None:
        print(last.line_of_text(), file=sys.stderr, flush=True)


def what_runs(program: Program) -> str:
    """How many queries and rules a program has."""
    what = counted(len(program.queries), "query")
    return f"{what}, {counted(len(program.rules), 'rule')}" if program.rules else what


def print_start(options: RunOptions, program: Program) -> None:
    """Print what runs, and from where; and which files of a directory are empty."""
    from graphtide.spark.driver.run import resumes_from
    from graphtide.spark.files import Location
    from graphtide.spark.source.plan import log_files

    resumed = resumes_from(options.checkpoint)
    where = "starts at the beginning"
    if resumed is not None:
        batch, offset = resumed
        position = offset.position
        read = f"{position.file} is read up to line {position.line - 1}"
        where = f"resumes after micro-batch {batch}: {read}"
    changes = options.changes
    print(f"{what_runs(program)} over {changes}: {where}", file=sys.stderr)
    if not isinstance(changes, Location) or not changes.is_dir():
        return
    logs = log_files(changes)
    empty = [entry.name for entry in logs if not entry.size]
    if len(empty) == len(logs):
        wait = "there is nothing to do" if options.once else "waiting for change logs"
        print(f"{changes} is empty: {wait}", file=sys.stderr)
    elif empty:
        some = ", ".join(empty[:FILES_NAMED]) + (", …" if len(empty) > FILES_NAMED else "")
        print(
            f"empty: {some}; only the last file may grow, those before it are skipped",
            file=sys.stderr,
        )


def print_totals(job: SparkJob, program: Program) -> None:
    """Print totals: of the deltas of each query, of complex events and of firings."""
    progress = job.sink.progress
    patterns = {pattern.name for pattern in program.patterns}
    for name, total in progress.queries.items():
        said = f"{counted(total.answer, 'row')} now, +{total.appeared:,} -{total.disappeared:,}"
        if name in patterns:
            said = counted(total.answer, "complex event")
        print(f"{name}: {said}", file=sys.stderr)
    if program.rules:
        print(f"rules: {counted(progress.fired, 'firing')}", file=sys.stderr)


# --- Kafka ---


def run_over_kafka(request: RunRequest, kafka: KafkaTopics) -> int:
    """Run a program over topics to the end of what is there, or until Ctrl-C; the exit code."""
    from graphtide.spark import kafka_settings
    from graphtide.spark.driver.run import start
    from graphtide.spark.session import open_session

    with ExitStack() as stack:
        home = Path(stack.enter_context(temporary_directory("graphtide-run-")))
        options = run_options(request, home, home)
        if request.data:
            raise GraphtideError(
                "--data is loaded before change logs, and --kafka reads none",
                hint="write the data to the topic first",
            )
        topics = ", ".join(kafka.in_topics)
        print(f"{what_runs(request.program)} over {topics} of Kafka", file=sys.stderr)
        printed = request.out is None and kafka.out_topic is None
        output = None
        if printed:
            output = stack.enter_context(open_output(request.prologues, as_json=request.as_json))
        log = home / "spark.log"
        session = open_session(request.master, options.partitions, log, kafka_settings())
        page = stack.enter_context(shown_on_page(request.program, options, shown=request.page))
        with session as spark, stop_requested() as stop:
            make = partial(_changes, spark, request, kafka, options.checkpoint)
            options = _with_changes(spark, kafka, options, make())
            printer = None
            if output is not None:
                printer = BatchPrinter(output, options.out, request.program)
            on_batch = _topic_writer(spark, kafka, request.program)
            job = start(spark, request.program, options, printer, request.functions, on_batch, make)
            follow_status(job, stop, as_json=request.as_json, quiet=printed, page=page)
        return end_of_run(request, options, job, page, interrupted=stop())


def _changes(
    spark: SparkSession, request: RunRequest, kafka: KafkaTopics, checkpoint: Location
) -> DataFrame:
    """The changes of the topics, from where a checkpoint goes on."""
    from graphtide.spark import kafka_changes

    return kafka_changes(
        spark,
        kafka.servers,
        list(kafka.in_topics),
        format=kafka.record_format,
        tables=kafka.tables,
        tick_ms=request.tick_ms,
        start=request.start,
        records_per_batch=request.spark.rows_per_batch,
        options=kafka.settings,
        checkpoint=checkpoint,
    )


def _with_changes(
    spark: SparkSession, kafka: KafkaTopics, options: RunOptions, changes: DataFrame
) -> RunOptions:
    """The options of a run over topics."""
    from graphtide.spark import kafka_shards

    shards = kafka_shards(spark, kafka.servers, list(kafka.in_topics), kafka.settings)
    # As with change logs, a late row is rejected, and --on-error says whether the run goes on.
    return replace(options, changes=changes, shards=shards, idle=kafka.idle, late="reject")


def _topic_writer(spark: SparkSession, kafka: KafkaTopics, program: Program) -> OnBatch | None:
    from graphtide.spark import TopicWriter

    if kafka.out_topic is None:
        return None
    return TopicWriter(
        spark,
        kafka.servers,
        kafka.out_topic,
        rejected_topic=kafka.rejected_topic,
        firings_topic=kafka.firings_topic,
        tombstones=program if kafka.tombstones else None,
        options=kafka.settings,
    )
