"""`graphtide demo`: a railway changes, and four standing queries say what is wrong with it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.status import Status

from graphtide.cli.demo_writer import DemoWriter
from graphtide.cli.output import counted, json_line, open_output, plain_line, summary
from graphtide.cli.run import asked
from graphtide.cli.run_needs import check_needs
from graphtide.cli.session import Session
from graphtide.cli.told import NamedRow
from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.engine import DeltaRow, LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.program import NamedQuery, Program
from graphtide.rdf import parse_term

if TYPE_CHECKING:
    import pyarrow as pa

    from graphtide.spark.run import Run

PAUSE_SECONDS = 0.03
"""Between transactions on a terminal, so that one can follow them."""

SPARK_PAUSE_SECONDS = 0.3
HURRY_SECONDS = 45.0
LONGEST_SECONDS = 75.0
"""From the first rows on, the demo takes less than a minute; on a slow machine it speeds up."""

START_SECONDS = 600.0
"""If there are no rows by then, there will be none."""

FAST_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def demo(
    *,
    transactions: int = 100,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    in_process: bool = False,
) -> int:
    """Watch a railway change.

    Parameters
    ----------
    transactions
        How many transactions of faults and repairs to run.
    seed
        Equal seeds give equal railways and equal rows.
    as_json
        Print one JSON object for each row and nothing else.
    in_process
        Run without Spark, in this process.
    """
    if transactions < 0:
        raise GraphtideError(f"--transactions {transactions} is less than none")
    if in_process:
        return _in_process(transactions, seed, as_json=as_json)
    try:
        check_needs()
    except GraphtideError as error:
        print(f"without Spark, in this process: {error}", file=sys.stderr)
        return _in_process(transactions, seed, as_json=as_json)
    return _on_spark(transactions, seed, as_json=as_json)


def _on_spark(transactions: int, seed: int, *, as_json: bool) -> int:
    """Somebody writes change logs into a directory; the pipeline tails it."""
    from graphtide.spark.run import start_program
    from graphtide.spark.run_options import RunOptions
    from graphtide.spark.run_session import open_session

    home = Path(tempfile.mkdtemp(prefix="graphtide-demo-"))
    for name in ("changes", "checkpoint"):
        (home / name).mkdir()
    writer = DemoWriter(home / "changes", transactions, seed, SPARK_PAUSE_SECONDS)
    writer.start()
    options = RunOptions(home / "changes", home / "out", home / "checkpoint", 2, trigger="300ms")
    program = Program(tuple(NamedQuery(name, text, 1) for name, text in QUERIES.items()))
    print(f"a railway changes in {options.changes}; Spark is starting", file=sys.stderr)
    show, waiting = _printer(as_json=as_json), _waiting()
    compiling = Thread(target=_compile, daemon=True)
    compiling.start()
    with (
        waiting,
        open_session("local[2,4]", 2, home / "spark.log", FAST_START) as spark,
        asked() as stop,
    ):
        compiling.join()  # workers find the machine code, and need not make it each for itself

        def first_stop_waiting(deltas: dict[str, pa.Table]) -> None:
            waiting.stop()
            show(deltas)

        running = start_program(spark, program, options, first_stop_waiting)
        done = _follow(running, writer, stop)
    _say_what(running, home, done=done)
    return 0


def _follow(running: Run, writer: DemoWriter, stop: Callable[[], bool]) -> bool:
    """Let the writer go on when the network is read, and end when all is read."""
    read, start = "", time.monotonic()

    def ends() -> bool:
        passed = time.monotonic() - start
        if read and passed > HURRY_SECONDS:
            writer.hurry.set()
        longest = LONGEST_SECONDS if read else START_SECONDS
        return stop() or read >= writer.last or passed > longest

    for status in running.statuses(ends):
        if not read:
            start = time.monotonic()
        read = status.file
        writer.go_on.set()
    return read >= writer.last


def _waiting() -> Status:
    """Says on a terminal that something is going on."""
    screen = Console(stderr=True, highlight=False)
    return screen.status("the first time, the engine is compiled: a minute or more")


def _compile() -> None:
    """Run a little of it unseen, with all that the workers do, so that all of it is compiled."""
    from graphtide.testing.cells import CellRun

    run = CellRun.of(QUERIES, cells=2)
    names = ("time", "tx", "diff", *"spog")
    for batch in change_stream(5, seed=1):
        rows = batch.to_arrow().to_pylist()
        run.batch([[tuple(row[name] for name in names) for row in rows]])


def _say_what(running: Run, home: Path, *, done: bool) -> None:
    sys.stdout.flush()
    for name, tally in running.sink.progress.queries.items():
        rows = counted(tally.answer, "row")
        told = f"{name}: {rows} now, +{tally.appeared:,} -{tally.disappeared:,}"
        print(told, file=sys.stderr)
    if not done:
        print("stopped before the railway had seen all its changes", file=sys.stderr)
    print(
        f"changes: {home / 'changes'}\ndeltas as Parquet, a directory per query: {home / 'out'}",
        file=sys.stderr,
    )


def _printer(*, as_json: bool) -> Callable[[dict[str, pa.Table]], None]:
    """A function that prints the deltas of a micro-batch, in green and red on a terminal."""
    line = json_line if as_json else plain_line(QUERIES)
    console = Console(highlight=False)
    coloured = sys.stdout.isatty() and not as_json

    def show(deltas: dict[str, pa.Table]) -> None:
        rows = [_named_row(name, row) for name in deltas for row in deltas[name].to_pylist()]
        rows.sort(key=lambda found: (found.row.time, found.row.tx))
        for row in rows:
            style = "green" if row.row.diff > 0 else "red"
            if coloured:
                console.print(line(row), style=style, markup=False, soft_wrap=True)
            else:
                print(line(row), flush=True)

    return show


def _named_row(name: str, row: dict[str, Any]) -> NamedRow:
    time_, tx, diff = (row.pop(key) for key in ("time", "tx", "diff"))
    terms = {key: None if text is None else parse_term(text) for key, text in row.items()}
    return NamedRow(name, DeltaRow(time_, tx, diff, terms))


def _in_process(transactions: int, seed: int, *, as_json: bool) -> int:
    pause = PAUSE_SECONDS if sys.stdout.isatty() and not as_json else 0.0
    _get_ready()
    session = Session(LiveGraph(), QUERIES)
    session.expected = transactions + 1
    code = 0
    try:
        with open_output(session, QUERIES, as_json=as_json) as output:
            for batch in change_stream(transactions, seed=seed):
                for rows in session.apply([batch]):
                    output.rows(rows)
                time.sleep(pause)
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    print(summary(session), file=sys.stderr)
    return code


def _get_ready() -> None:
    """Run a little of it unseen, so that what follows is not interrupted by compiling."""
    screen = Console(stderr=True, highlight=False)
    with screen.status("getting ready; the first time this compiles, for up to a minute"):
        session = Session(LiveGraph(), QUERIES)
        for batch in change_stream(20, seed=1):
            list(session.apply([batch]))
