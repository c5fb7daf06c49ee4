"""What queries tell of a file of changes, or of events, from its beginning to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.cli.follow import STANDARD_INPUT, read_pieces
from graphtide.streams.read import GENERATED_AT, has_timestamps, timestamped
from graphtide.errors import DataError, GraphtideError
from graphtide.rdf.changes import ChangeBatch, OnError, RejectedRow, concat_batches
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.registry import find_format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphtide.cli.session import Session
    from graphtide.cli.told import Told


@dataclass(frozen=True, slots=True)
class Changes:
    """A file of changes, and how to read it.

    Where named graphs of RDF are events, `timestamp` is the predicate of the triples that tell when
    they happened. `until` is the time to which time goes on when the file has ended.
    """

    path: Path
    follow: bool = False
    on_error: OnError = "raise"
    rejected: list[RejectedRow] = field(default_factory=list)
    timestamp: str = GENERATED_AT
    until: int | None = None


def told_of(session: Session, changes: Changes) -> Iterator[list[Told]]:
    """The first answers; then what whole transactions bring, also those before an error."""
    path, on_error, rejected = changes.path, changes.on_error, changes.rejected
    yield session.first_rows()
    piecewise = changes.follow or path == STANDARD_INPUT or find_format(path).family == "patch"
    if piecewise:
        _check_follow(session, changes)
        pieces = read_pieces(path, wait=changes.follow, on_error=on_error, rejected=rejected)
        for batches in pieces:
            yield from session.apply(batches)
    elif session.feed.streams and find_format(path).rdf is not None:
        whole = concat_batches(read_changes(path, on_error=on_error, rejected=rejected))
        yield from _rdf(session, changes, whole)
    else:
        yield from session.apply(read_changes(path, on_error=on_error, rejected=rejected))
    yield session.end(changes.until)


def _check_follow(session: Session, changes: Changes) -> None:
    """Quads tell their times anywhere in a file, so one that grows is never known."""
    if not (changes.follow and session.feed.streams) or changes.path == STANDARD_INPUT:
        return
    if find_format(changes.path).family == "lines":
        raise GraphtideError(
            f"{changes.path}: events of a file that grows are read from change logs",
            hint="write RDF Patch (.rdfp): `H time 17 .`, then `A <s> <p> <o> <stream> .`",
        )


def _rdf(session: Session, changes: Changes, whole: ChangeBatch) -> Iterator[list[Told]]:
    """Triples and quads: named graphs are events where the default graph tells their times."""
    source, terms = str(changes.path), session.graph.terms
    if has_timestamps(whole, changes.timestamp):
        tick = session.graph.tick_ms
        yield session.push(*timestamped(whole, terms, changes.timestamp, tick, source))
        return
    graphs = set(whole.g.unique().to_pylist()) - {None, ""}
    if graphs and graphs.isdisjoint(session.feed.streams):
        raise DataError(
            "no graph is an event",
            source=source,
            hint=f"give each a triple with {changes.timestamp} in the default graph, "
            "or name another predicate with --timestamp",
        )
    yield from session.apply([whole])
