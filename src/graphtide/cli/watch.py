"""`graphtide watch`: standing queries over a file of changes, + and - rows as they come."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from graphtide.algebra.windows import WindowedQuery
from graphtide.cli.deltas import Changes, told_of
from graphtide.cli.files import load_data, read_query, refuse_query
from graphtide.cli.output import counted, open_output, summary
from graphtide.cli.session import Session
from graphtide.cli.told import NamedRow, Told
from graphtide.streams.read import GENERATED_AT
from graphtide.engine.live_graph import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.plan.patterns import Strategy
from graphtide.rdf.changes import RejectedRow

INTERRUPTED = 130


def watch(
    *queries: Path,
    changes: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    data: list[Path] | None = None,
    follow: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    strategy: Strategy | None = None,
    limit: int | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    tick_ms: int = 1000,
    timestamp: str = GENERATED_AT,
    until: int | None = None,
) -> int:
    """Watch queries over a file of changes.

    Parameters
    ----------
    queries
        Files with a SPARQL SELECT query each, over windows (RSP-QL) or not; a query is named after
        its file. One over windows tells its reports, at every close of a window.
    changes
        A change log (.rdfp, .parquet, .arrow), or RDF, whose triples are all inserted. `-` is
        RDF Patch from standard input. For windows, an insert into a graph that has the name of a
        stream is an event of it; or each named graph of TriG or N-Quads is an event, and a triple
        of the default graph tells when it happened.
    data
        RDF that is there from the start. Repeat the option for several files.
    follow
        Go on when the file ends, and wait for more (.rdfp, .nt, .nq).
    as_json
        Print one JSON object for each row and nothing else: query, time, tx, diff, row. In a row
        of a report, tx is the report's number among those of its time.
    strategy
        How patterns are matched; chosen by the planner if not given.
    limit
        End after so many rows.
    on_error
        What to do about a broken line: stop there, or set it aside and list it at the end.
    tick_ms
        How long a tick is, for windows whose lengths are in seconds, minutes or hours.
    timestamp
        The predicate of the triples that tell when the named graphs of TriG or N-Quads happened.
    until
        The time up to which windows close when the file has ended; by default the time after the
        last change.
    """
    texts, windowed = _queries(queries)
    if limit is not None and limit < 1:
        raise GraphtideError(f"--limit {limit} would show nothing", hint="give a number from 1 on")
    if until is not None and not windowed:
        raise GraphtideError("--until is for queries over windows, and there is none")
    if until is not None and follow:
        raise GraphtideError("--until tells when a file has ended, and --follow that it has no end")
    _check_changes(changes)
    rejected = list[RejectedRow]()
    source = Changes(changes, follow, on_error, rejected, _iri(timestamp), until)
    graph = LiveGraph(tick_ms=tick_ms)
    load_data(graph, data or (), on_error, rejected)
    session = Session(graph, texts, strategy, forgiving=on_error == "skip")
    code = 0
    try:
        with _stoppable(), open_output(session, texts, as_json=as_json) as output:
            for told in _limited(told_of(session, source), limit):
                output.rows(told)
    except KeyboardInterrupt:
        code = 0 if follow else INTERRUPTED
    except GraphtideError:
        if session.transactions:
            _report(session, rejected)
        raise
    _report(session, rejected)
    return code


def _queries(paths: tuple[Path, ...]) -> tuple[dict[str, str], bool]:
    """The texts of query files, by name; and whether one of them is over windows."""
    if not paths:
        raise GraphtideError(
            "there is no query to watch", hint="graphtide watch QUERY.rq --changes FILE"
        )
    found: dict[str, str] = {}
    windowed = False
    for path in paths:
        name, number = path.stem, 2
        while name in found:
            name, number = f"{path.stem}-{number}", number + 1
        parsed = read_query(path)
        windowed |= isinstance(parsed, WindowedQuery)
        found[name] = (parsed.select if isinstance(parsed, WindowedQuery) else parsed).text
    return found, windowed


def _iri(text: str) -> str:
    """An IRI in angle brackets, with or without which it may be given."""
    return text if text.startswith("<") else f"<{text}>"


def _check_changes(path: Path) -> None:
    refuse_query(path, "--changes")
    if str(path).startswith("--"):
        raise GraphtideError(f"--changes needs a file, and {path} is an option")


def _limited(deltas: Iterator[list[Told]], limit: int | None) -> Iterator[list[Told]]:
    """All that is told up to a number of rows; that there is a report is no row."""
    if limit is None:
        yield from deltas
        return
    left = limit
    for told in deltas:
        places = [place for place, each in enumerate(told) if isinstance(each, NamedRow)]
        yield told if len(places) < left else told[: places[left - 1] + 1]
        left -= len(places)
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


def _report(session: Session, rejected: list[RejectedRow]) -> None:
    """Say what was set aside and what happened; on standard error, as rows may go to a pipe."""
    sys.stdout.flush()
    if rejected:
        print(f"set aside: {counted(len(rejected), 'broken line')}", file=sys.stderr)
        print(*(f"  {line}" for line in rejected), sep="\n", file=sys.stderr)
    if session.feed.deletes:
        deletes = counted(session.feed.deletes, "delete")
        print(f"set aside: {deletes} from streams, whose events only happen", file=sys.stderr)
    print(summary(session), file=sys.stderr)
