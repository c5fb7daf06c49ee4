"""`graphtide run`: a program over a directory of change logs, on Spark."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live
from rich.text import Text

from graphtide.cli.output import counted
from graphtide.cli.run_needs import check_needs
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from graphtide.spark.run import Run
    from graphtide.spark.run_options import RunOptions
    from graphtide.spark.status import BatchStatus

LINE_SECONDS = 1.0
"""Between two lines of status in a pipe or a file."""

INTERRUPTED = 130


def run(
    program: Path,
    *,
    changes: Path,
    out: Path,
    checkpoint: Path,
    master: str = "local[*,4]",
    cells: int | None = None,
    trigger: str = "1s",
    once: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    format: Literal["parquet", "json"] = "parquet",  # noqa: A002 - the name of the option
    rows_per_batch: int = 200_000,
    most_quarantined: int | None = None,
    only_new: bool = False,
    lateness: int = 0,
    tick_ms: int = 1000,
    stream: tuple[str, ...] = (),
) -> int:
    """Run a program on Spark.

    Parameters
    ----------
    program
        A .tide file of queries, events, patterns and rules, or a .rq file with one query.
    changes
        A directory of change logs, read in the order of their names; the last one may grow.
    out
        Where the output goes: a directory of deltas per query, of complex events per pattern, of
        firings, and quarantine.
    checkpoint
        Where the run keeps its place. The same command again goes on from there.
    master
        Spark's master: local[*,4] is this machine, with four attempts at each task;
        spark://HOST:7077 a cluster.
    cells
        Into how many parts the match is divided; by default one per core of this machine.
    trigger
        The pause between micro-batches, such as 500ms or 1s; `once` is --once.
    once
        Read what is there, then end.
    as_json
        Print one JSON object for each micro-batch.
    format
        The format of the output files.
    rows_per_batch
        About how many lines a micro-batch reads at most.
    most_quarantined
        Stop when more rows than this are set aside.
    only_new
        Begin a first run with what is written from now on.
    lateness
        By how many ticks of time rows may come late; what is later is set aside.
    tick_ms
        How long a tick is, for windows whose lengths are in seconds, minutes or hours.
    stream
        The IRI of a graph into which inserts are events, for rules and patterns; may be repeated.
    """
    queries = Program.read(program)
    check_needs()
    from graphtide.spark.actors import check_functions
    from graphtide.spark.run_options import RunOptions, check_options
    from graphtide.spark.windows import Clock

    once = once or trigger == "once"
    pause = "0s" if trigger == "once" else trigger
    parts = _cells(cells, checkpoint, master)
    limits = rows_per_batch, most_quarantined, only_new
    clock = Clock(lateness, tick_ms)
    options = RunOptions(
        changes, out, checkpoint, parts, pause, once, format, *limits, clock, stream
    )
    if (reaction := options.reaction(queries)) is not None:
        check_functions(reaction, {})
    check_options(queries, options)
    _say_where(changes, options, queries)
    return _run(queries, options, master, as_json=as_json)


def _cells(cells: int | None, checkpoint: Path, master: str) -> int:
    """The number of cells: as wanted, as it was, or as there are cores."""
    from graphtide.spark.run import known_cells
    from graphtide.spark.run_session import default_cells

    return cells if cells is not None else known_cells(checkpoint) or default_cells(master)


def _run(program: Program, options: RunOptions, master: str, *, as_json: bool) -> int:
    from graphtide.spark.run import start_program
    from graphtide.spark.run_session import open_session

    log = options.checkpoint / "spark.log"
    with open_session(master, options.cells, log) as spark, asked() as stop:
        running = start_program(spark, program, options)
        follow(running, stop, as_json=as_json)
    _say_what(running, options)
    return INTERRUPTED if options.once and stop() else 0


@contextmanager
def asked() -> Iterator[Callable[[], bool]]:
    """Whether the user has asked to end (Ctrl-C, SIGTERM); asking twice ends it at once."""
    flag = Event()

    def ask(number: int, frame: object) -> None:  # noqa: ARG001 - what Python calls it with
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()
        print("stopping after this micro-batch", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(running: Run, stop: Callable[[], bool], *, as_json: bool) -> None:
    """Show the status of each micro-batch until the run ends."""
    if as_json:
        for status in running.statuses(stop):
            print(json.dumps(status.to_json()), flush=True)
    elif sys.stderr.isatty():
        console = Console(stderr=True, highlight=False)
        with Live(console=console, refresh_per_second=8) as live:
            for status in running.statuses(stop):
                live.update(Text(status.line_of_text()))
    else:
        _lines(running.statuses(stop))


def _lines(statuses: Iterator[BatchStatus]) -> None:
    """A line of status now and then, and at the end."""
    shown = time.monotonic() - LINE_SECONDS
    held: BatchStatus | None = None
    for status in statuses:
        held = status
        if time.monotonic() - shown >= LINE_SECONDS:
            print(status.line_of_text(), file=sys.stderr, flush=True)
            shown, held = time.monotonic(), None
    if held is not None:
        print(held.line_of_text(), file=sys.stderr, flush=True)


def _say_where(changes: Path, options: RunOptions, program: Program) -> None:
    from graphtide.spark.run import resumes_from
    from graphtide.spark.source_plan import Directory

    found = resumes_from(options.checkpoint)
    what = f"{counted(len(program.queries), 'query').replace('querys', 'queries')}"
    if program.rules:
        what += f", {counted(len(program.rules), 'rule')}"
    if found is None:
        where = "from the start"
    else:
        batch, offset = found
        place = offset.place
        where = f"after batch {batch}: {place.file} is read up to line {place.line - 1}"
    verb = "starts" if found is None else "goes on"
    print(f"{what} over {changes}: {verb} {where}", file=sys.stderr)
    logs = Directory(changes).names()
    empty = [name for name in logs if not (changes / name).stat().st_size]
    if len(empty) == len(logs):
        wait = "so there is nothing to do" if options.once else "waiting for change logs"
        print(f"{changes} is empty: {wait}", file=sys.stderr)
    elif empty:
        some = ", ".join(empty[:3]) + (", …" if len(empty) > 3 else "")
        print(
            f"empty: {some}; only the last file may grow, those before it are passed over",
            file=sys.stderr,
        )


def _say_what(running: Run, options: RunOptions) -> None:
    progress = running.sink.progress
    for name, tally in progress.queries.items():
        rows = f"{counted(tally.answer, 'row')} now"
        print(f"{name}: {rows}, +{tally.appeared:,} -{tally.disappeared:,}", file=sys.stderr)
    if progress.fired:
        print(f"rules fired {counted(progress.fired, 'time')}", file=sys.stderr)
    print(f"the deltas are in {options.out}", file=sys.stderr)
    if progress.quarantined:
        count = counted(progress.quarantined, "row")
        print(f"{count} set aside in {options.out / 'quarantine'}", file=sys.stderr)
