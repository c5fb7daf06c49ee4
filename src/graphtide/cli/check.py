"""`graphtide check`: read queries, data and changes, and report every problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from graphtide.cli.files import QUERY_SUFFIXES, read_query
from graphtide.cli.output import counted
from graphtide.cli.query_plan import plan_of
from graphtide.engine.ingest import check_order
from graphtide.errors import GraphtideError, PlacedError
from graphtide.lang.tide.program import PROGRAM_SUFFIX, read_text
from graphtide.rdf.changes import RejectedRow
from graphtide.rdf.formats.change_log import read_changes


def check(*files: Path) -> int:
    """Check files.

    Parameters
    ----------
    files
        Programs (.tide), queries (.rq, .sparql) in SPARQL or, over windows, in RSP-QL, RDF in any
        format, and change logs.
    """
    if not files:
        raise GraphtideError("there is nothing to check", hint="graphtide check FILE...")
    problems = 0
    for path in files:
        found = 0
        for found, problem in enumerate(_problems(path), start=1):  # noqa: B007 - counts them
            print(problem)
        problems += found
    return 1 if problems else 0


def _problems(path: Path) -> Iterator[str]:
    """Every problem of a file; says what is in it when there is none."""
    try:
        if path.suffix == PROGRAM_SUFFIX:
            yield from _program_problems(path)
        elif path.suffix in QUERY_SUFFIXES:
            print(_query_report(path))
        else:
            yield from _data_problems(path)
    except PlacedError as error:
        yield str(error)
    except GraphtideError as error:
        yield f"{path}: {error}"


def _program_problems(path: Path) -> Iterator[str]:
    program, errors = Program.check(read_text(path), name=str(path), folder=path.parent)
    yield from map(str, errors)
    if not errors:
        queries = counted(len(program.queries), "query").replace("querys", "queries")
        parts = [
            queries,
            counted(len(program.events), "event"),
            counted(len(program.rules), "rule"),
        ]
        if program.patterns:
            parts.insert(2, counted(len(program.patterns), "pattern"))
        if program.goals or program.fixes:
            fixes = counted(len(program.fixes), "fix").replace("fixs", "fixes")
            parts += [counted(len(program.goals), "goal"), fixes]
        print(f"{path}: fine, {', '.join(parts)}")


def _query_report(path: Path) -> str:
    return f"{path}: can be maintained, by this plan\n{indent(plan_of(read_query(path)), '  ')}"


def _data_problems(path: Path) -> Iterator[str]:
    rejected: list[RejectedRow] = []
    listed = changes = transactions = clock = 0
    last: tuple[int, int] | None = None
    for batch in read_changes(path, on_error="skip", rejected=rejected):
        yield from map(str, rejected[listed:])
        listed = len(rejected)
        check_order(clock if last else int(batch.time[0]), batch.time)
        clock = int(batch.time[-1])
        begins = batch.transaction_starts()
        goes_on = last == (int(batch.time[0]), int(batch.tx[0]))
        transactions += len(begins) - goes_on
        changes += len(batch)
        last = clock, int(batch.tx[-1])
    yield from map(str, rejected[listed:])
    if not rejected:
        parts = counted(transactions, "transaction")
        print(f"{path}: fine, {counted(changes, 'change')} in {parts}")
