"""`graphtide watch`: standing queries over a file of changes, + and - rows as they come."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from graphtide.cli.files import load_data, read_query, refuse_query
from graphtide.cli.follow import STANDARD_INPUT, read_pieces
from graphtide.cli.output import counted, open_output, summary
from graphtide.cli.session import NamedRow, Session
from graphtide.engine import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.plan.patterns import Strategy
from graphtide.rdf import BrokenLine, read_changes
from graphtide.rdf.formats import find_format

INTERRUPTED = 130


def watch(
    *queries: Path,
    changes: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    data: list[Path] | None = None,
    follow: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    strategy: Strategy | None = None,
    limit: int | None = None,
    on_error: Literal["raise", "collect"] = "raise",
) -> int:
    """Watch queries over a file of changes.

    Parameters
    ----------
    queries
        Files with a SPARQL SELECT query each; a query is named after its file.
    changes
        A change log (.rdfp, .parquet, .arrow), or RDF, whose triples are all inserted. `-` is
        RDF Patch from standard input.
    data
        RDF that is there from the start. Repeat the option for several files.
    follow
        Go on when the file ends, and wait for more (.rdfp, .nt, .nq).
    as_json
        Print one JSON object for each row and nothing else: query, time, tx, diff, row.
    strategy
        How patterns are matched; chosen by the planner if not given.
    limit
        End after so many rows.
    on_error
        What to do about a broken line: stop there, or set it aside and list it at the end.
    """
    texts = _queries(queries)
    if limit is not None and limit < 1:
        raise GraphtideError(f"--limit {limit} would show nothing", hint="give a number from 1 on")
    _check_changes(changes)
    graph, broken = LiveGraph(), list[BrokenLine]()
    load_data(graph, data or (), on_error, broken)
    session = Session(graph, texts, strategy)
    code = 0
    try:
        with _stoppable(), open_output(session, texts, as_json=as_json) as output:
            for rows in _limited(_deltas(session, changes, follow, on_error, broken), limit):
                output.rows(rows)
    except KeyboardInterrupt:
        code = 0 if follow else INTERRUPTED
    except GraphtideError:
        if session.transactions:
            _report(session, broken)
        raise
    _report(session, broken)
    return code


def _queries(paths: tuple[Path, ...]) -> dict[str, str]:
    """The texts of query files, by name."""
    if not paths:
        raise GraphtideError(
            "there is no query to watch", hint="graphtide watch QUERY.rq --changes FILE"
        )
    found: dict[str, str] = {}
    for path in paths:
        name, number = path.stem, 2
        while name in found:
            name, number = f"{path.stem}-{number}", number + 1
        found[name] = read_query(path).text
    return found


def _check_changes(path: Path) -> None:
    refuse_query(path, "--changes")
    if str(path).startswith("--"):
        raise GraphtideError(f"--changes needs a file, and {path} is an option")


def _deltas(
    session: Session,
    changes: Path,
    following: bool,  # noqa: FBT001 - an option of the command
    on_error: Literal["raise", "collect"],
    broken: list[BrokenLine],
) -> Iterator[list[NamedRow]]:
    """The first answers; then the deltas of whole transactions, also of those before an error."""
    yield session.first_rows()
    if following or changes == STANDARD_INPUT or find_format(changes).family == "patch":
        for batches in read_pieces(changes, wait=following, on_error=on_error, broken=broken):
            yield from session.apply(batches)
    else:
        yield from session.apply(read_changes(changes, on_error=on_error, broken=broken))


def _limited(deltas: Iterator[list[NamedRow]], limit: int | None) -> Iterator[list[NamedRow]]:
    left = limit
    for rows in deltas:
        yield rows[:left]
        if left is not None:
            left -= len(rows)
            if left <= 0:
                return


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a polite request to end (SIGTERM) do what Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(session: Session, broken: list[BrokenLine]) -> None:
    """Say what was set aside and what happened; on standard error, as rows may go to a pipe."""
    sys.stdout.flush()
    if broken:
        print(f"set aside: {counted(len(broken), 'broken line')}", file=sys.stderr)
        print(*(f"  {line}" for line in broken), sep="\n", file=sys.stderr)
    print(summary(session), file=sys.stderr)
