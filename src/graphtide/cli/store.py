"""`graphtide store` and `graphtide replay`: stores of durable graphs, and their recorded inputs."""

from __future__ import annotations

import sys
from pathlib import Path

from cyclopts import App

from graphtide.cli import options as opt
from graphtide.cli.explain import called_functions, no_functions
from graphtide.cli.output import counted, open_output, summary
from graphtide.cli.session import Session
from graphtide.cli.watch import stoppable
from graphtide.durable import retention
from graphtide.durable import verify as checks
from graphtide.durable.replay import Replay, Until
from graphtide.durable.store import Store
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program

app = App(name="store", help="Look into the store of a durable graph, and maintain it.")


@app.command
def info(store: Path, /) -> None:
    """What a store holds: journal, snapshots, cursors, and what is registered.

    Example: `graphtide store info rail/`
    """
    for name, text in checks.describe(store):
        print(f"{name:9} {text}".rstrip())


@app.command
def verify(store: Path, /) -> int:
    """Read everything and compare it with its checksums; the exit code is 1 if it is damaged.

    Example: `graphtide store verify rail/`
    """
    report = checks.verify(store)
    for problem in report.problems:
        print(problem)
    snapshots = counted(len(report.snapshots), "snapshot")
    print(f"{counted(report.rows, 'row')} and {snapshots} read; good up to row {report.good:,}")
    return 1 if report.problems else 0


@app.command
def compact(store: Path, /, *, retain: str | None = None, cut: bool = False) -> None:
    """Write a snapshot, drop what need not be retained, and give space back.

    Example: `graphtide store compact rail/ --retain 30d`

    Parameters
    ----------
    store
        The directory of the store; no other process may write to it.
    retain
        What is kept of the past: a time such as 30d, a size such as 10GB; by default all of it.
    cut
        Drop what cannot be read: rows of the journal from the first damaged one on.
    """
    if cut:
        report = checks.verify(store)
        opened = Store(store, check_end=False)
        opened.journal.cut(report.good)
        opened.abandon()
        print(f"cut after row {report.good:,}", file=sys.stderr)
    with LiveGraph.open(store, read_only=True) as graph:
        called = [name for each in graph.programs for name in called_functions(each.program)]
    if called:  # only the program that has them can go on where it was
        print(f"no new snapshot: rules call {', '.join(called)}", file=sys.stderr)
    else:
        LiveGraph.open(store).close()
    opened, policy = Store(store), retention.RetentionPolicy.of(retain)
    dropped = retention.compact(store, opened.journal, policy)
    opened.journal.shrink()
    opened.abandon()
    print(f"dropped {counted(dropped, 'row')} of the journal", file=sys.stderr)


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
    declared = Program.read(program)
    recorded = Store(store, read_only=True)
    try:
        options = recorded.options({})
        graph = LiveGraph(**options)
        return _replayed(recorded, graph, declared, Until(time=since), until, as_json=as_json)
    finally:
        recorded.abandon()


def _replayed(
    recorded: Store,
    graph: LiveGraph,
    program: Program,
    start: Until,
    until: int | None,
    *,
    as_json: bool,
) -> int:
    begin = Until(tx=0) if start.time is None else Until(time=start.time - 1)
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
