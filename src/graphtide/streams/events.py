"""EventBatch: graph events and typed events in columns, and graph events read from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch, concat_batches
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.registry import find_format
from graphtide.rdf.kinds import DATETIME, EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


GRAPH_EVENT = -1
"""The type id of an event that is given by its triples."""

NO_NUMBER = -1
"""The number of an event that is of no stream."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events in order of time, in columns; and how they are scheduled.

    Event i lasts from `starts[i]` to `ends[i]`. A graph event is a set of triples: those of event i
    are `triples[offsets[i]:offsets[i + 1]]`. A typed event (a row of a query that changed, a
    complex event) has no triples, but a type id and a row of values, ids of terms padded with 0;
    `types` and `values` are None if all events are graph events. `numbers` identify the events of
    a graph's streams.

    `simultaneous` events are of one transaction: all are matched before any action. `transactions`
    is the number of transactions before the events, None for all so far. `depth` is 0 for input,
    and for what an action causes one more than for what the action reacts to. With
    `begins_cascade`, the batch is input that was queued again.

    >>> events = make_events([[(1, 2, 3), (1, 4, 5)], [(6, 2, 3)]], ends=[10, 12])
    >>> len(events), events.slice(1, 2).triples.tolist()
    (2, [[6, 2, 3]])
    """

    triples: Ints
    offsets: Longs
    starts: Longs
    ends: Longs
    numbers: Longs
    types: Ints | None = None
    values: Ints | None = None
    depth: int = 0
    transactions: int | None = None
    simultaneous: bool = False
    begins_cascade: bool = False

    def __len__(self) -> int:
        return len(self.ends)

    def slice(self, first: int, last: int) -> EventBatch:
        """The events from one index up to another."""
        if first == 0 and last == len(self.ends):
            return self
        offsets = self.offsets[first : last + 1]
        at = slice(first, last)
        return EventBatch(
            self.triples[offsets[0] : offsets[-1]],
            offsets - offsets[0],
            self.starts[at],
            self.ends[at],
            self.numbers[at],
            None if self.types is None else self.types[at],
            None if self.values is None else self.values[at],
            self.depth,
            self.transactions,
            self.simultaneous,
            self.begins_cascade,
        )

    def take(self, indices: Longs) -> EventBatch:
        """Some of the events, in the order of their indices.

        >>> events = make_events([[(1, 2, 3), (1, 4, 5)], [(6, 2, 3)]], ends=[10, 12])
        >>> events.take(np.array([1, 0])).triples.tolist()
        [[6, 2, 3], [1, 2, 3], [1, 4, 5]]
        """
        sizes = np.diff(self.offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.offsets[indices] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return replace(
            self,
            triples=np.ascontiguousarray(self.triples[rows]),
            offsets=offsets,
            starts=self.starts[indices],
            ends=self.ends[indices],
            numbers=self.numbers[indices],
            types=None if self.types is None else self.types[indices],
            values=None if self.values is None else self.values[indices],
        )

    def without(self, numbers: set[int]) -> EventBatch:
        """The events that have none of some numbers."""
        retained = ~np.isin(self.numbers, list(numbers))
        return self if retained.all() else self.take(np.flatnonzero(retained))

    def scheduled_as(self, other: EventBatch) -> EventBatch:
        """The same events, scheduled as those of another batch."""
        if self is other:
            return self
        return replace(
            self,
            depth=other.depth,
            transactions=other.transactions,
            simultaneous=other.simultaneous,
            begins_cascade=other.begins_cascade,
        )


def make_events(
    triples: Sequence[Sequence[Sequence[int]]], ends: Sequence[int], duration: int = 0
) -> EventBatch:
    """Graph events from rows of ids, with the time at which each ends."""
    if len(triples) == 1:
        rows = np.array(triples[0], np.int32).reshape(-1, 3)
        end = np.array(ends, np.int64)
        start = end - duration if duration else end
        return EventBatch(rows, np.array([0, len(rows)], np.int64), start, end, _OF_NO_STREAM)
    parts = [list(each) for each in triples]
    offsets = np.array([0, *map(len, parts)], np.int64).cumsum()
    rows = np.array([row for part in parts for row in part], np.int32).reshape(-1, 3)
    last = np.array(ends, np.int64)
    numbers = np.full(len(last), NO_NUMBER, np.int64)
    return EventBatch(rows, offsets, last - duration, last, numbers)


def typed_events(
    types: Sequence[int], values: Sequence[Sequence[int]], times: Sequence[int]
) -> EventBatch:
    """Typed events, each with its type id, its row of values and its time.

    >>> typed_events([0, 3], [(7, 8), (9,)], [10, 10]).values.tolist()
    [[7, 8], [9, 0]]
    """
    many, width = len(types), max(map(len, values), default=0)
    rows = [[*row, *[0] * (width - len(row))] for row in values]
    ends = np.array(times, np.int64)
    return EventBatch(
        _NO_TRIPLES,
        np.zeros(many + 1, np.int64),
        ends,
        ends,
        np.full(many, NO_NUMBER, np.int64),
        np.array(types, np.int32),
        np.array(rows, np.int32).reshape(many, width),
    )


def concat_events(one: EventBatch, two: EventBatch) -> EventBatch:
    """The events of two batches, scheduled as the first.

    >>> graph_events = make_events([[(1, 2, 3)]], [5])
    >>> both = concat_events(graph_events, typed_events([4], [(7, 8)], [6]))
    >>> both.types.tolist(), both.values.tolist(), both.offsets.tolist()
    ([-1, 4], [[0, 0], [7, 8]], [0, 1, 1])
    """
    parts = one, two
    width = max(0 if part.values is None else part.values.shape[1] for part in parts)
    types = np.full(len(one) + len(two), GRAPH_EVENT, np.int32)
    values = np.zeros((len(types), width), np.int32)
    for part, first in zip(parts, (0, len(one)), strict=True):
        if part.types is not None and part.values is not None:
            types[first : first + len(part)] = part.types
            values[first : first + len(part), : part.values.shape[1]] = part.values
    return replace(
        one,
        triples=np.concatenate([one.triples, two.triples]),
        offsets=np.concatenate([one.offsets, one.offsets[-1] + two.offsets[1:]]),
        starts=np.concatenate([one.starts, two.starts]),
        ends=np.concatenate([one.ends, two.ends]),
        numbers=np.concatenate([one.numbers, two.numbers]),
        types=types,
        values=values,
    )


def group_events(times: Longs, quads: Ints, numbers: Longs) -> EventBatch:
    """Graph events from rows in order of time: rows of one number are one event.

    >>> rows = np.array([[1, 2, 3, 0], [4, 2, 3, 0], [1, 5, 6, 0]], np.int32)
    >>> group_events(np.array([7, 7, 7]), rows, np.array([0, 1, 0])).triples.tolist()
    [[1, 2, 3], [1, 5, 6], [4, 2, 3]]
    """
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    own = numbers[begins]
    if (own[1:] < own[:-1]).any() and len(np.unique(own)) < len(own):  # rows of one event are apart
        _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        order = np.argsort(first[inverse], kind="stable")
        times, quads, numbers = times[order], quads[order], numbers[order]
        begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    ends = times[begins]
    triples = np.ascontiguousarray(quads[:, :3])
    bounds = np.append(begins, len(times)).astype(np.int64)
    return EventBatch(triples, bounds, ends, ends, numbers[begins])


_OF_NO_STREAM = np.array([NO_NUMBER], np.int64)
_NO_TRIPLES = np.empty((0, 3), np.int32)


class Fired(Protocol):
    """A rule that fired."""

    @property
    def rule(self) -> str:
        """The name of the rule."""
        ...

    @property
    def time(self) -> int:
        """When it fired."""
        ...

    @property
    def values(self) -> dict[str, Term]:
        """The values of its variables."""
        ...

    def why(self) -> str:
        """The events and facts that matched, as text."""
        ...


class Listener(Protocol):
    """A subscriber to the events of a graph, such as a running program."""

    def take_events(self, events: EventBatch) -> None:
        """Take in events, in order of time and not earlier than any before."""

    def firings(self) -> Sequence[Fired]:
        """The rules that fired, oldest first."""
        ...


# --- Graph events from files and batches.
#
# A change log (RDF Patch, columnar) has a time for every row; its inserts are events. In TriG and
# N-Quads each named graph is an event, and a triple of the default graph has its time:
#
#     { :e1 :generatedAt 17 }
#     :e1 { :sensor3 :shows 20 }

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
        batches = source
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
    columns = [terms.encode_column(column) for column in (batch.s, batch.p, batch.o)]
    return np.column_stack([*columns, terms.encode_graphs(batch.g)]).astype(np.int32)


def has_timestamps(batch: ChangeBatch, timestamp: str) -> bool:
    """Whether triples of the default graph have times of events.

    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:e1>", "<ex:at>", '"7"', None)])
    >>> has_timestamps(batch, "<ex:at>"), has_timestamps(batch, GENERATED_AT)
    (True, False)
    """
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
    stamps = quads[default & (quads[:, 1] == terms.encode(timestamp))]
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
