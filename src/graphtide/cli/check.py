"""`graphtide check`, `test`, `fmt` and `store`: problems of files and of stores."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from textwrap import indent

from cyclopts import App

from graphtide.cli import options as opt
from graphtide.cli.explain import called_functions, plan_text
from graphtide.cli.inputs import QUERY_SUFFIXES, read_query
from graphtide.cli.output import counted
from graphtide.durable import retention
from graphtide.durable import verify as checks
from graphtide.durable.backup import back_up
from graphtide.durable.store import Store
from graphtide.engine.ingest import check_order
from graphtide.errors import GraphtideError, PlacedError, ProgramError, QueryError
from graphtide.graph import LiveGraph
from graphtide.lang.sparql.prefixes import file_text
from graphtide.lang.tide.format import format_program
from graphtide.lang.tide.program import PROGRAM_SUFFIX, Program, read_text
from graphtide.limits import Limits
from graphtide.rdf.changes import RejectedRow
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rules.warnings import warnings_of
from graphtide.testing.program_tests import run_tests


def check(*files: Path, limits: opt.LimitOptions = opt.DEFAULT_LIMITS) -> int:
    """Check files.

    Parameters
    ----------
    files
        Programs (.tide), SPARQL and RSP-QL queries (.rq, .sparql), RDF in any format, and change
        logs.
    """
    if not files:
        raise GraphtideError("there is nothing to check", hint="graphtide check FILE...")
    problems = 0
    bounds = limits.limits()
    for path in files:
        count = 0
        for count, problem in enumerate(_problems(path, bounds), start=1):  # noqa: B007 - counts them
            print(problem)
        problems += count
    return 1 if problems else 0


def _problems(path: Path, limits: Limits) -> Iterator[str]:
    """Every problem of a file; prints what it contains if there is none."""
    try:
        if path.suffix == PROGRAM_SUFFIX:
            yield from _program_problems(path)
        elif path.suffix in QUERY_SUFFIXES:
            plan = indent(plan_text(read_query(path)), "  ")
            print(f"{path}: ok, maintained by this plan\n{plan}")
        else:
            yield from _data_problems(path, limits)
    except PlacedError as error:
        yield str(error)
    except GraphtideError as error:
        yield f"{path}: {error}"


def _program_problems(path: Path) -> Iterator[str]:
    program, errors = Program.check(file_text(read_text(path)), name=str(path), folder=path.parent)
    yield from map(str, errors)
    if not errors:
        lasts = any(step.start is not None for test in program.tests for step in test.steps)
        for warning in warnings_of(program, max_event_duration=inf if lasts else 0):
            print(f"{path}:{warning}")
        parts = [counted(len(program.queries), "query"), counted(len(program.events), "event")]
        if program.patterns:
            parts.append(counted(len(program.patterns), "pattern"))
        parts.append(counted(len(program.rules), "rule"))
        if program.goals or program.fixes:
            parts += [counted(len(program.goals), "goal"), counted(len(program.fixes), "fix")]
        if program.tests:
            parts.append(counted(len(program.tests), "test"))
        print(f"{path}: ok, {', '.join(parts)}")


def _data_problems(path: Path, limits: Limits) -> Iterator[str]:
    rejected: list[RejectedRow] = []
    listed = changes = transactions = clock = 0
    last: tuple[int, int] | None = None
    for batch in read_changes(path, on_error="skip", rejected=rejected, limits=limits):
        yield from map(str, rejected[listed:])
        listed = len(rejected)
        check_order(clock if last else int(batch.time[0]), batch.time)
        clock = int(batch.time[-1])
        continues = last == (int(batch.time[0]), int(batch.tx[0]))
        transactions += len(batch.transaction_starts()) - continues
        changes += len(batch)
        last = clock, int(batch.tx[-1])
    yield from map(str, rejected[listed:])
    if not rejected:
        parts = counted(transactions, "transaction")
        print(f"{path}: ok, {counted(changes, 'change')} in {parts}")


def test(
    *programs: Path,
    tick_ms: opt.TickOption = 1000,  # noqa: PT028 - a command
    as_json: opt.JsonOption = False,  # noqa: PT028 - same
) -> int:
    """Run the tests of programs.

    Parameters
    ----------
    programs
        Programs (.tide) that declare tests, or INCLUDE them.
    """
    if not programs:
        raise GraphtideError("there is nothing to test", hint="graphtide test PROGRAM...")
    opt.at_least("--tick-ms", tick_ms, 1)
    ran = failed = 0
    for path in programs:
        outcomes = run_tests(path, tick_ms=tick_ms)
        if not outcomes:
            raise GraphtideError(
                f"{path} declares no tests", hint="write TEST name GIVEN … EXPECT …"
            )
        for outcome in outcomes:
            ran, failed = ran + 1, failed + (not outcome.passed)
            if as_json:
                print(json.dumps(outcome.as_json(), ensure_ascii=False))
                continue
            print(f"{'ok  ' if outcome.passed else 'FAIL'}  {outcome.place} {outcome.test.name}")
            if not outcome.passed:
                print(indent(outcome.diff(), "        "))
    print(f"{counted(ran, 'test')}, {failed} failed", file=sys.stderr)
    return 1 if failed else 0


def fmt(*files: Path, check: bool = False) -> int:
    """Format programs.

    Parameters
    ----------
    files
        Programs (.tide); they are overwritten with their canonical form.
    check
        Change nothing; the exit code is 1 if a file is not in canonical form.
    """
    if not files:
        raise GraphtideError("there is nothing to format", hint="graphtide fmt FILE...")
    changed = [path for path in files if _format(path, check=check)]
    return 1 if check and changed else 0


def _format(path: Path, *, check: bool) -> bool:
    """Format one program; whether that changes it."""
    text = read_text(path)
    try:
        formatted = format_program(text)
    except QueryError as error:
        for each in error.errors if isinstance(error, ProgramError) else (error,):
            each.source = str(path)
        error.source = str(path)
        raise
    if formatted == text:
        return False
    if check:
        print(f"{path}: would be changed")
        return True
    try:
        path.write_text(formatted, encoding="utf-8")
    except OSError as error:
        raise GraphtideError(f"{path} cannot be written: {error.strerror}") from None
    print(f"{path}: changed")
    return True


# --- stores ---

store = App(name="store", help="Look into the store of a durable graph, and maintain it.")


@store.command
def info(directory: Path, /) -> None:
    """What a store holds: journal, snapshots, cursors, and what is registered.

    Example: `graphtide store info rail/`
    """
    for name, text in checks.describe(directory):
        print(f"{name:9} {text}".rstrip())


@store.command
def verify(directory: Path, /) -> int:
    """Read everything, compare checksums, and replay it; the exit code is 1 if it is damaged.

    Example: `graphtide store verify rail/`
    """
    report = checks.verify(directory, LiveGraph)
    for problem in report.problems:
        print(problem)
    snapshots = counted(len(report.snapshots), "snapshot")
    print(f"{counted(report.rows, 'row')} and {snapshots} read; good up to row {report.good:,}")
    return 1 if report.problems else 0


@store.command
def backup(directory: Path, target: Path, /) -> None:
    """Copy a store, which may be in use, to a new directory.

    Example: `graphtide store backup rail/ copy/`
    """
    back_up(directory, target)


@store.command
def compact(directory: Path, /, *, retain: str | None = None, cut: bool = False) -> None:
    """Write a snapshot, drop what need not be retained, and give space back.

    Example: `graphtide store compact rail/ --retain 30d`

    Parameters
    ----------
    directory
        The directory of the store; no other process may write to it.
    retain
        What is kept of the past: a time such as 30d, a size such as 10GB; by default all of it.
    cut
        Drop what cannot be read: rows of the journal from the first damaged one on.
    """
    if cut:
        report = checks.verify(directory, LiveGraph)
        opened = Store(directory, check_end=False)
        opened.journal.cut(report.good)
        opened.abandon()
        print(f"cut after row {report.good:,}", file=sys.stderr)
    with LiveGraph.open(directory, read_only=True) as graph:
        called = [name for each in graph.programs for name in called_functions(each.program)]
    if called:  # only the program that has them can go on where it was
        print(f"no new snapshot: rules call {', '.join(called)}", file=sys.stderr)
    else:
        LiveGraph.open(directory).close()
    opened, policy = Store(directory), retention.RetentionPolicy.of(retain)
    dropped = retention.compact(directory, opened.journal, policy)
    opened.journal.shrink()
    opened.abandon()
    print(f"dropped {counted(dropped, 'row')} of the journal", file=sys.stderr)
