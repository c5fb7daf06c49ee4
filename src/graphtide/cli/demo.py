"""`graphtide demo`: four standing queries over a railway that changes, on Spark or in process.

And `graphtide warm`, after which it starts sooner.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter
from rich.console import Console

from graphtide.cli import options as opt
from graphtide.cli import serve
from graphtide.cli.output import open_output, summary
from graphtide.cli.run import choose_engine
from graphtide.cli.session import Session
from graphtide.cli.watch import INTERRUPTED, stoppable
from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.graph import LiveGraph
from graphtide.jit import JIT
from graphtide.lang.tide.ast import NamedQuery
from graphtide.lang.tide.program import Program
from graphtide.rdf.formats.change_log import write_changes

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from graphtide.serve.page.run import RunData
    from graphtide.spark.driver.run import SparkJob

PAUSE_SECONDS: Final = 0.03
"""Between transactions on a terminal, so that one can read along."""

SPARK_PAUSE_SECONDS: Final = 0.3
HURRY_SECONDS: Final = 35.0
MAX_SECONDS: Final = 60.0
"""From the first rows on, the demo takes half a minute; on a slow machine it speeds up."""

START_SECONDS: Final = 600.0
"""Without rows by then, the demo ends."""

PARTITIONS: Final = 2
TRIGGER: Final = "300ms"

EXAMPLES: Final = Path("examples")
NEXT_IN_A_CLONE: Final = (
    ("trace examples/doors.tide --changes examples/doors.rdfp", "complex events, step by step"),
    ("test examples/alarms.tide", "rules over events, with their tests"),
    ("repair examples/rail.tide --data examples/rail.ttl", "plans that mend a broken railway"),
)
NEXT_ELSEWHERE: Final = (
    ("demo --engine process", "the same without Spark"),
    ("demo --engine process --json", "every row as an object"),
    ("demo --transactions 20 --seed 7", "another railway"),
)
"""Commands to try after the demo, and what they show."""


def demo(
    *,
    transactions: int = 100,
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
    engine: Annotated[
        opt.Engine | None,
        Parameter(
            name="--engine", help=f"{opt.ENGINE_HELP} By default spark; with --page, process."
        ),
    ] = None,
    page: opt.PageOption = False,
) -> int:
    """Watch a railway change.

    Parameters
    ----------
    transactions
        How many transactions of faults and repairs to run.
    """
    opt.at_least("--transactions", transactions, 0)
    chosen = choose_engine(engine or ("process" if page else "spark"))
    if page and chosen == "process":
        return serve.serve(port=serve.free_port(), demo=True)
    if page:
        return _on_spark(serve.FOREVER, seed, as_json=as_json, page=True)
    if chosen == "process":
        return _in_process(transactions, seed, as_json=as_json)
    return _on_spark(transactions, seed, as_json=as_json)


# --- on Spark ---


class DemoWriter(Thread):
    """Writes change logs into a directory: the network, then a transaction every now and then.

    It waits for `go_on` after the network, and does not pause once `hurry` is set.
    """

    def __init__(self, directory: Path, transactions: int, seed: int, pause: float) -> None:
        super().__init__(name="demo-writer", daemon=True)
        self.go_on = Event()
        self.hurry = Event()
        self.stop = Event()
        self.last = f"{transactions:06}.rdfp"
        self._directory = directory
        self._batches = change_stream(transactions, seed=seed)
        self._pause = pause

    def run(self) -> None:
        """Write all files; each has its name only when it is complete."""
        for number, batch in enumerate(self._batches):
            if self.stop.is_set():
                return
            path = self._directory / f"{number:06}.rdfp"
            unfinished = path.with_name(f"_{path.name}")
            write_changes(batch, unfinished, format="rdfp")
            unfinished.replace(path)
            if number == 0:
                self.go_on.wait()
            self.hurry.wait(self._pause)

    def close(self) -> None:
        """Stop writing, and wait for it."""
        for event in (self.stop, self.go_on, self.hurry):
            event.set()
        self.join()


def _on_spark(transactions: int, seed: int, *, as_json: bool, page: bool = False) -> int:
    """Tail a directory of change logs with the Spark pipeline, while they are written.

    On a page it goes on until Ctrl-C, and prints no rows.
    """
    from graphtide.cli.spark_engine import (
        BatchPrinter,
        print_totals,
        shown_on_page,
        stop_requested,
        temporary_directory,
    )
    from graphtide.spark.driver.options import RunOptions
    from graphtide.spark.driver.run import start
    from graphtide.spark.files import Location
    from graphtide.spark.session import open_session

    with stoppable(), temporary_directory("graphtide-demo-") as directory:
        home = Path(directory)
        (home / "changes").mkdir()
        changes, out, checkpoint = map(Location.of, (home / "changes", home / "out", home / "c"))
        options = RunOptions(changes, out, checkpoint, PARTITIONS, trigger=TRIGGER)
        program = Program(tuple(NamedQuery(name, text, 1) for name, text in QUERIES.items()))
        writer = DemoWriter(home / "changes", transactions, seed, SPARK_PAUSE_SECONDS)
        writer.start()
        print("a railway changes; four standing queries on Spark show it", file=sys.stderr)
        screen = Console(stderr=True, highlight=False)
        waiting = screen.status("Spark is starting")
        try:
            with (
                shown_on_page(program, options, shown=page) as data,
                nullcontext() if page else waiting,
                open_session("local[2,4]", PARTITIONS, home / "spark.log", brief=True) as spark,
                open_output(QUERIES, as_json=as_json) as output,
                stop_requested() as stop,
            ):
                printer = BatchPrinter(output, options.out, program)

                def print_first(tables: dict[str, pa.Table]) -> None:
                    waiting.stop()
                    printer(tables)

                job = start(spark, program, options, None if page else print_first)
                done = _follow(job, writer, stop, data)
        finally:
            writer.close()
    sys.stdout.flush()
    print_totals(job, program)
    if done:
        session = Session(LiveGraph(), QUERIES)
        for batch in change_stream(transactions, seed=seed):
            list(session.apply([batch]))
        print_why(session)
        print_next()
    if not done and not page:
        print("stopped before all changes were read", file=sys.stderr)
    return 0


def _follow(
    job: SparkJob, writer: DemoWriter, stop: Callable[[], bool], page: RunData | None
) -> bool:
    """Let the writer go on when the network is read; end when all is read, and return whether."""
    read, start = "", time.monotonic()

    def ends() -> bool:
        if page is not None:
            return stop()
        passed = time.monotonic() - start
        if read and passed > HURRY_SECONDS:
            writer.hurry.set()
        limit = MAX_SECONDS if read else START_SECONDS
        return stop() or read >= writer.last or passed > limit

    for status in job.statuses(ends) if page is None else page.following(job, ends):
        if not read:
            start = time.monotonic()
        read = status.file
        writer.go_on.set()
    return read >= writer.last


# --- in process ---


def _in_process(transactions: int, seed: int, *, as_json: bool) -> int:
    pause = PAUSE_SECONDS if sys.stdout.isatty() and not as_json else 0.0
    session = Session(LiveGraph(), QUERIES)
    session.expected = transactions + 1
    code = 0
    try:
        with open_output(QUERIES, session, as_json=as_json) as output:
            for batch in change_stream(transactions, seed=seed):
                for found in session.apply([batch]):
                    output.write(found)
                time.sleep(pause)
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.stdout.flush()
    print(summary(session), file=sys.stderr)
    print_why(session)
    print_next()
    return code


def print_next() -> None:
    """Print on standard error what to try next, as commands that work where the demo ran."""
    program = Path(sys.argv[0])
    with suppress(ValueError):  # it is not below the working directory
        program = program.absolute().relative_to(Path.cwd())
    command = program if len(program.parts) > 1 else "graphtide"
    chosen = NEXT_IN_A_CLONE if (EXAMPLES / "doors.tide").is_file() else NEXT_ELSEWHERE
    print("try next:", file=sys.stderr)
    for arguments, what in chosen:
        print(f"  {command} {arguments}   # {what}", file=sys.stderr)


def print_why(session: Session) -> None:
    """Print on standard error why a row of the first answer that has one is there."""
    found = next((query for query in session.queries.values() if query.count()), None)
    if found is not None:
        print(f"why is this so?\n{found.why()}", file=sys.stderr)


def warm(
    *,
    no_spark: Annotated[
        bool,
        Parameter(name="--no-spark", help="Leave out Spark, whose sessions start sooner else."),
    ] = False,
) -> int:
    """Compile the loops."""
    from graphtide.warm import all_loops, compile_loops, to_stderr

    if not JIT:
        print("there is nothing to compile: GRAPHTIDE_NO_JIT is set", file=sys.stderr)
        return 0
    compile_loops(all_loops(), to_stderr)
    if not no_spark and find_spec("pyspark") is not None:
        from graphtide.spark import warm_up as spark

        return spark.main("--once")
    return 0
