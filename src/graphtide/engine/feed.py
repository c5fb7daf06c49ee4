"""From change batches to whole transactions of ids, in pieces that are worth one kernel call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.kernel.batch import Ints, Longs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.rdf.changes import ChangeBatch
    from graphtide.rdf.dictionary import TermDictionary

PIECE = 1 << 18
"""Changes per kernel call, if transactions allow: large enough to be quick, small in memory."""

Piece = tuple[Ints, Longs, Longs]
"""Changes `[transaction, diff, s, p, o, g]`, and per transaction its time and number."""


def pieces_of(batches: Iterable[ChangeBatch], terms: TermDictionary) -> Iterator[Piece]:
    """Whole transactions only: the last one of a batch waits, the next batch may go on with it."""
    held: list[tuple[Ints, Longs, Longs]] = []
    for batch in batches:
        if not len(batch):
            continue
        rows = np.empty((len(batch), 6), np.int32)
        rows[:, 1] = batch.diff
        for column, texts in enumerate((batch.s, batch.p, batch.o), start=2):
            rows[:, column] = terms.encode_column(texts)
        rows[:, 5] = terms.encode_graphs(batch.g)
        held.append((rows, batch.time, batch.tx))
        changes, time, tx = (np.concatenate(parts) for parts in zip(*held, strict=True))
        others = np.flatnonzero((time != time[-1]) | (tx != tx[-1]))
        last = int(others[-1]) + 1 if len(others) else 0
        if last:
            yield from cut(changes[:last], time[:last], tx[:last])
        held = [(changes[last:], time[last:], tx[last:])]
    if held:
        changes, time, tx = (np.concatenate(parts) for parts in zip(*held, strict=True))
        yield from cut(changes, time, tx)


def cut(changes: Ints, time: Longs, tx: Longs) -> Iterator[Piece]:
    """Number the transactions and cut between them into pieces of about `PIECE` changes."""
    if not len(changes):
        return
    begins = np.concatenate([[True], (time[1:] != time[:-1]) | (tx[1:] != tx[:-1])])
    starts = np.flatnonzero(begins)
    numbers = np.cumsum(begins) - 1
    begin = 0
    while begin < len(changes):
        first = int(numbers[begin])
        after = int(np.searchsorted(starts, begin + PIECE))
        following = max(after, first + 1)
        end = int(starts[following]) if following < len(starts) else len(changes)
        piece = np.ascontiguousarray(changes[begin:end])
        piece[:, 0] = numbers[begin:end] - first
        chosen = starts[first:following]
        yield piece, time[chosen], tx[chosen]
        begin = end


def check_order(clock: int, time: Longs) -> None:
    """Times must not run backwards."""
    earlier = np.flatnonzero(np.diff(np.concatenate([[clock], time])) < 0)
    if len(earlier):
        at = int(earlier[0])
        before = clock if at == 0 else int(time[at - 1])
        raise GraphtideError(
            f"time runs backwards: a transaction at {int(time[at])} after one at {before}",
            hint="sort the changes by time, or give them one time with apply(..., time=...)",
        )
