"""`graphtide watch`: standing queries over a file of changes, with + and - rows as they occur."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from graphtide.algebra.windows import WindowedQuery
from graphtide.cli import options as opt
from graphtide.cli.inputs import ChangeLog, Rejects, load_data, open_graph, read_query
from graphtide.cli.output import counted, open_output, summary
from graphtide.cli.session import RowOutput, Session, SessionOutput
from graphtide.engine.services import Services
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import PROGRAM_SUFFIX
from graphtide.streams.read import GENERATED_AT

INTERRUPTED: Final = 130
POLL_SECONDS: Final = 0.1


def watch(
    *queries: Path,
    changes: opt.ChangesOption = None,
    store: opt.StoreOption = None,
    data: opt.DataOption = None,
    follow: opt.FollowOption = False,
    as_json: opt.JsonOption = False,
    strategy: opt.StrategyOption = None,
    rows: int | None = None,
    on_error: opt.OnErrorOption = "raise",
    tick_ms: opt.TickOption = 1000,
    timestamp: Annotated[str, Parameter(group=opt.CLOCK)] = GENERATED_AT,
    until: opt.UntilOption = None,
    service_allow: opt.ServiceAllowOption = (),
    service_refresh: opt.ServiceRefreshOption = None,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> int:
    """Watch queries over a file of changes.

    Parameters
    ----------
    queries
        Files with a SPARQL or RSP-QL SELECT query each; a query is named after its file.
    rows
        End after this many rows.
    timestamp
        Predicate of the triples, in the default graph of TriG or N-Quads, that give the times of
        the named graphs. Each of those graphs is then an event of the query's stream.
    """
    texts, windowed = _read_queries(queries) if queries or store is None else ({}, False)
    opt.at_least("--rows", rows, 1)
    opt.at_least("--tick-ms", tick_ms, 1)
    if until is not None and not windowed:
        raise GraphtideError("--until is for windowed queries, and there is none")
    if changes is None and store is not None and follow:
        return _follow_store(store, texts, rows, limits, as_json=as_json)
    if changes is None:
        raise GraphtideError(
            "there are no changes to watch", hint="--changes FILE, or --store DIRECTORY --follow"
        )
    with open_graph(store, limits.limits(), tick_ms=tick_ms) as graph:
        graph.services.settings = Services(service_allow, service_refresh)
        if store is not None and not texts:
            texts = {query.name: query.text for query in graph.queries}
        rejects = Rejects(on_error, limits=graph.limits)
        log = ChangeLog(changes, follow, rejects, _iri(timestamp), until)
        log.check()
        load_data(graph, data or (), rejects)
        session = Session(graph, texts, strategy, on_error=on_error, tick_ms=tick_ms)
        return _watch(session, log, rejects, texts, rows, as_json=as_json)


def _watch(
    session: Session,
    log: ChangeLog,
    rejects: Rejects,
    texts: dict[str, str],
    rows: int | None,
    *,
    as_json: bool,
) -> int:
    """Print what the session puts out while it follows a log."""
    code = 0
    try:
        with stoppable(), open_output(texts, session, as_json=as_json) as output:
            for found in _limited(session.follow(log), rows):
                output.write(found)
    except KeyboardInterrupt:
        code = 0 if log.follow else INTERRUPTED
    except GraphtideError:
        if session.transactions:
            print_summary(session, rejects)
        raise
    print_summary(session, rejects)
    return code


def _follow_store(
    store: Path,
    texts: dict[str, str],
    rows: int | None,
    limits: opt.LimitOptions,
    *,
    as_json: bool,
) -> int:
    """Print what changes in the answers of queries, while another process writes to a store."""
    with LiveGraph.open(store, read_only=True, limits=limits.limits()) as graph:
        texts = texts or {query.name: query.text for query in graph.queries}
        session = Session(graph, texts)
        with (
            stoppable(),
            suppress(KeyboardInterrupt),
            open_output(texts, session, as_json=as_json) as output,
        ):
            for found in _limited(_followed(graph, session), rows):
                output.write(found)
    return 0


def _followed(graph: LiveGraph, session: Session) -> Iterator[list[SessionOutput]]:
    yield session.take()
    while True:
        if graph.follow():
            yield session.take()
        else:
            time.sleep(POLL_SECONDS)


def _read_queries(paths: tuple[Path, ...]) -> tuple[dict[str, str], bool]:
    """The texts of query files, by name; and whether one of them is windowed."""
    if not paths:
        raise GraphtideError(
            "there is no query to watch", hint="graphtide watch QUERY.rq --changes FILE"
        )
    found: dict[str, str] = {}
    windowed = False
    for path in paths:
        if path.suffix == PROGRAM_SUFFIX:
            raise GraphtideError(
                f"{path} is a program, and watch takes queries",
                hint=f"graphtide run {path} --engine process --changes FILE",
            )
        name, copy = path.stem, 2
        while name in found:
            name, copy = f"{path.stem}-{copy}", copy + 1
        parsed = read_query(path)
        windowed |= isinstance(parsed, WindowedQuery)
        found[name] = (parsed.select if isinstance(parsed, WindowedQuery) else parsed).text
    return found, windowed


def _iri(text: str) -> str:
    """An IRI in angle brackets, whether given with them or without."""
    return text if text.startswith("<") else f"<{text}>"


def _limited(
    outputs: Iterator[list[SessionOutput]], most: int | None
) -> Iterator[list[SessionOutput]]:
    """Output up to a number of rows."""
    if most is None:
        yield from outputs
        return
    left = most
    for found in outputs:
        rows = [index for index, each in enumerate(found) if isinstance(each, RowOutput)]
        yield found if len(rows) < left else found[: rows[left - 1] + 1]
        left -= len(rows)
        if left <= 0:
            return


@contextmanager
def stoppable() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def print_summary(session: Session, rejects: Rejects) -> None:
    """Print rejected input and totals, on standard error: rows may go to a pipe."""
    sys.stdout.flush()
    if rejects.rows:
        print(f"rejected: {counted(len(rejects.rows), 'line')}", file=sys.stderr)
        print(*(f"  {line}" for line in rejects.rows), sep="\n", file=sys.stderr)
    if session.feed.skipped_deletes:
        deletes = counted(session.feed.skipped_deletes, "delete")
        print(f"rejected: {deletes} from streams: events cannot be deleted", file=sys.stderr)
    print(summary(session), file=sys.stderr)
