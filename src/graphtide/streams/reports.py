"""Reports: closes of windows whose changes are to be applied, and the queries that report then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from graphtide.kernel.batch import TX, Ints, Longs
from graphtide.streams import windows as win
from graphtide.streams.pruning import EVERYTHING, Asked, covers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.streams.stream import Stream, StreamSavepoint


@dataclass(slots=True)
class PlacedWindow:
    """A window on a stream, whose content is a hidden graph of the store, and its queries.

    All its queries read the same streams, `needed`: when they report, all their windows are as of
    the same time, so it closes when all of these streams have come so far.
    """

    stream: Stream
    needed: tuple[Stream, ...]
    content: win.WindowContent
    graph: int
    pruned: int
    queries: list[WindowReader] = field(default_factory=list)

    def asked(self) -> Asked:
        """What its queries can match. Elements are counted, whether they match or not."""
        if isinstance(self.content.shape, win.ElementWindow):
            return EVERYTHING
        return frozenset().union(*(query.windows[self.graph] for query in self.queries))

    def serves(self, asked: Asked) -> bool:
        """Whether it holds all that a further query asks for."""
        return self.stream.pruned == self.pruned or covers(self.asked(), asked)

    def watermark(self, rising: Collection[Stream] = (), to: int = 0) -> int:
        """Return the least watermark of the streams that it waits for, if some rise to a time."""
        reached: list[int] = [
            max(stream.reached, to) if stream in rising else stream.reached
            for stream in self.needed
        ]
        return min(reached)

    def is_due(self) -> bool:
        """Whether it closes at its watermark, or has closes left before it."""
        return (mark := self.content.next_watermark()) is not None and mark <= self.watermark()


class WindowReader(Protocol):
    """A query over windows, as windows see it: they call `take` when some of its windows close."""

    windows: dict[int, Asked]
    reevaluated: SelectQuery | None

    @property
    def is_settled(self) -> bool:
        """True if a close that changes nothing repeats the last result, which nobody else gets."""

    def repeat(self, times: Longs, period: int, many: int) -> None:
        """Put out the same result at some times, and again in each of some periods."""

    def savepoint(self) -> Any:  # noqa: ANN401 - it is the query's own
        """What `roll_back` needs."""

    def roll_back(self, to: Any) -> None:  # noqa: ANN401
        """A piece of input was interrupted: go back to before it."""

    def take(self, numbers: Longs, times: Longs) -> None:
        """Some of its windows closed, in the transactions of these numbers, at these times."""

    def call_back(self, many: int) -> None:
        """Let the callbacks run with the last results, so many, when the input is through."""


@dataclass(slots=True)
class WindowReport:
    """Closes whose changes are to be applied, and queries that are to report at some of them.

    `first` is the number of the first of their transactions.
    """

    times: Longs
    changes: Ints
    own: dict[WindowReader, Longs]
    first: int | None = None


def reports_of(
    times: Longs, changes: Ints, own: dict[WindowReader, Longs]
) -> Iterable[WindowReport]:
    """One report of all closes; where a query is evaluated at each of them, one for each."""
    if any(query.reevaluated is not None for query in own):
        return list(apart(times, changes, own))
    return (WindowReport(times, changes, own),)


def apart(times: Longs, changes: Ints, own: Mapping[WindowReader, Longs]) -> Iterator[WindowReport]:
    """Reports of single closes; those without changes go with the one before them."""
    begins = np.unique(np.append(changes[:, TX], 0)).tolist()
    for begin, end in zip(begins, [*begins[1:], len(times)], strict=True):
        part = changes[_between(begin, end, changes[:, TX])].copy()
        part[:, TX] = 0
        here = {query: at[_between(begin, end, at)] - begin for query, at in own.items()}
        yield WindowReport(times[begin:end], part, here)


def _between(begin: int, end: int, places: Longs | Ints) -> slice:
    """Where some places stand in a list of places in order."""
    return slice(*np.searchsorted(places, (begin, end)))


def own_closes(
    readers: Sequence[Sequence[WindowReader]], places: Sequence[Longs]
) -> dict[WindowReader, Longs]:
    """For each query the closes at which it reports: those of all its windows, each once."""
    if len(places) == 1:
        return dict.fromkeys(readers[0], places[0])
    own: dict[WindowReader, Longs] = {}
    for queries, at in zip(readers, places, strict=True):
        for query in queries:
            own[query] = np.union1d(own[query], at) if query in own else at
    return own


def merged(moved: list[tuple[PlacedWindow, win.Closes, Ints]], places: list[Longs]) -> Ints:
    """The changes of several windows, with the place of their close among all as `tx`."""
    parts = []
    for (placed, _, changes), at in zip(moved, places, strict=True):
        changes[:, win.GRAPH_COLUMN] = placed.graph
        if len(moved) > 1:
            changes[:, TX] = at[changes[:, TX]]
        parts.append(changes)
        if placed.content.by_graph is not None:
            statements = placed.content.by_graph.changes()
            statements[:, TX] = at[statements[:, TX]]
            parts.append(statements)
    if len(parts) == 1:
        return parts[0]
    merged = np.concatenate(parts)
    return merged[np.argsort(merged[:, TX], kind="stable")]


class RegistrySavepoint(NamedTuple):
    """Streams and windows before a piece of input."""

    numbers: int
    streams: list[tuple[Stream, StreamSavepoint]]
    contents: list[tuple[win.WindowContent, win.WindowMark]]
    queries: list[tuple[WindowReader, Any]]
    reports: list[tuple[WindowReport, int | None, dict[WindowReader, Longs]]]
    marks: tuple[tuple[win.WindowContent, win.WindowMark], ...]
