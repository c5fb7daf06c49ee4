"""Graph events read from files and batches.

A change log (RDF Patch, columnar) has a time for every row; its inserts are the events. In TriG and
N-Quads each named graph is an event, and a triple of the default graph has the time:

    { :e1 :generatedAt 17 }
    :e1 { :sensor3 :shows 20 }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.arguments import each_of
from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch, concat_batches
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.registry import find_format
from graphtide.rdf.kinds import DATETIME, EXACT

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary

Events = ChangeBatch | Iterable[ChangeBatch] | pa.Table | str | Path

GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
"""The default predicate of an event's time."""

MICROSECONDS = 1000
"""Per millisecond; the typed value of an xsd:dateTime is in microseconds."""


def read_events(
    source: Events, terms: TermDictionary, *, timestamp: str, tick_ms: int
) -> Iterator[tuple[Longs, Ints, Longs]]:
    """Times and quads of events in the order of the source, and the number of each quad's event.

    Rows of a change log that share `(time, tx)` are one event, and so is a named graph.
    """
    if isinstance(source, (str, Path)) and find_format(source).rdf is not None:
        whole = concat_batches(read_changes(source))
        yield timestamped(whole, terms, timestamp, tick_ms, str(source))
        return
    if isinstance(source, ChangeBatch):
        batches: Iterable[ChangeBatch] = (source,)
    elif isinstance(source, (str, Path, pa.Table)):
        batches = read_changes(source)
    else:
        batches = each_of(source, "source", ChangeBatch)
    for batch in batches:
        if (batch.diff < 0).any():
            row = int(np.argmax(batch.diff < 0))
            raise DataError(
                f"row {row} is a delete, but events cannot be deleted",
                hint="leave deletes out: windows evict events by themselves",
            )
        begins = (batch.time[1:] != batch.time[:-1]) | (batch.tx[1:] != batch.tx[:-1])
        yield batch.time, _quads(batch, terms), np.concatenate([[0], np.cumsum(begins)])


def _quads(batch: ChangeBatch, terms: TermDictionary) -> Ints:
    columns = [terms.intern_column(column) for column in (batch.s, batch.p, batch.o)]
    graphs = terms.intern_column(batch.g, skip_empty=True)
    return np.column_stack([*columns, graphs]).astype(np.int32)


def has_timestamps(batch: ChangeBatch, timestamp: str) -> bool:
    """Whether triples of the default graph have times of events.

    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:e1>", "<ex:at>", '"7"', None)])
    >>> has_timestamps(batch, "<ex:at>"), has_timestamps(batch, GENERATED_AT)
    (True, False)
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - a start need not wait for it

    timed: Any = pc.equal(batch.p, pa.scalar(timestamp))
    graphs: Any = batch.g.filter(timed)
    return bool((graphs.fill_null("").to_numpy(zero_copy_only=False) == "").any())


def timestamped(
    batch: ChangeBatch, terms: TermDictionary, timestamp: str, tick_ms: int, source: str
) -> tuple[Longs, Ints, Longs]:
    """The quads of named graphs in order of time, with the times that the default graph has.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> seven = '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> rows = [("<ex:a>", "<ex:p>", "<ex:b>", "<ex:e1>"), ("<ex:e1>", "<ex:at>", seven, None)]
    >>> batch = ChangeBatch.of([(0, 0, 1, *row) for row in rows])
    >>> times, quads, _ = timestamped(batch, TermDictionary(), "<ex:at>", 1000, "it")
    >>> times.tolist(), len(quads)
    ([7], 1)
    """
    quads = _quads(batch, terms)
    default = quads[:, 3] == 0
    stamps = quads[default & (quads[:, 1] == terms.intern(timestamp))]
    events = quads[~default]
    if len(events) and not len(stamps):
        raise DataError(
            f"{source}: no graph has a timestamp",
            hint=f"give each a triple with {timestamp}, or name another predicate",
        )
    times = {graph: _time(terms, value, tick_ms, source) for graph, _, value, _ in stamps.tolist()}
    graphs = events[:, 3].tolist()
    missing = next((graph for graph in graphs if graph not in times), None)
    if missing is not None:
        raise DataError(
            f"{source}: the graph {terms.text(missing)} has no timestamp",
            hint=f"add a triple with {timestamp} to the default graph",
        )
    found = np.array([times[graph] for graph in graphs], np.int64)
    order = np.argsort(found, kind="stable")
    return found[order], events[order], events[order, 3].astype(np.int64)


def _time(terms: TermDictionary, value: int, tick_ms: int, source: str) -> int:
    """A timestamp in ticks: a whole number, or a dateTime counted from 1970."""
    kind, number = int(terms.kinds[value]), float(terms.numbers[value])
    if kind == EXACT and number.is_integer():
        return int(number)
    if kind == DATETIME:
        return int(number // (MICROSECONDS * tick_ms))
    raise DataError(
        f"{source}: {terms.text(value)} is no time",
        hint="use a whole number of ticks, or an xsd:dateTime with a time zone",
    )
