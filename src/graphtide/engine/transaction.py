"""Transaction: changes that take effect together, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from graphtide.engine.ingest import Ids, ObjectLike, TermLike, quad_ids
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, VALUES, Ints

if TYPE_CHECKING:
    from types import TracebackType

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.queries import RunningPlans
    from graphtide.kernel import QuadStore


class Transaction:
    """Made by `LiveGraph.transaction`; committed when its `with` block ends without an error.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> with graph.transaction(time=17) as tx:
    ...     tx.insert("<http://example.org/a>", "<http://example.org/p>", 1)
    ...     tx.insert("<http://example.org/a>", "<http://example.org/p>", 2)
    >>> len(graph), graph.clock
    (2, 17)
    """

    def __init__(self, graph: LiveGraph, time: int | None) -> None:
        self._graph = graph
        self._time = time
        self._changes: list[tuple[int, Ids]] | None = None

    def insert(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Insert a quad (into the default graph, unless `g` names another)."""
        self._add(1, quad_ids(self._graph.terms, s, p, o, g))

    def delete(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Delete a quad."""
        self._add(-1, quad_ids(self._graph.terms, s, p, o, g))

    def _add(self, diff: int, ids: Ids) -> None:
        if self._changes is None:
            raise GraphtideError(
                "this transaction is not open, so its change would be lost",
                hint="write `with graph.transaction() as tx:` and change the graph inside",
            )
        self._changes.append((diff, ids))

    def __enter__(self) -> Self:
        self._changes = []
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        changes, self._changes = self._changes, None
        if kind is None and changes is not None:
            self._graph.commit(changes, self._time)


# --- MultiStepTransaction: several steps of changes as one transaction, each of which sees what came before.
#
# The graph and its queries take in each step at once; what the queries are told is held back until
# the end. If something goes wrong, every step is undone, and nobody was told of anything.


class MultiStepTransaction:
    """An open transaction on a store and its standing queries."""

    def __init__(self, store: QuadStore, standing: RunningPlans) -> None:
        self._store = store
        self._standing = standing
        self._journal: list[Ints] = []
        self._outputs: dict[int, list[Ints]] = {}

    def change(self, deleted: Ints, inserted: Ints) -> int:
        """Take quads away, then put quads in; how many changes that made.

        Quads that are taken away and put in again stay; those that are there already are skipped.
        """
        gone, come = _distinct(deleted), _distinct(inserted)
        gone = gone[self._store.contains(gone)] if len(gone) else gone
        come = come[~self._store.contains(come)] if len(come) else come
        kept = set(map(tuple, inserted.tolist())) if len(gone) and len(inserted) else set()
        if kept:
            gone = gone[[tuple(row) not in kept for row in gone.tolist()]]
        changes = np.concatenate([_signed(gone, -1), _signed(come, 1)])
        self._journal.append(changes)
        self._apply(changes)
        return len(changes)

    def _apply(self, changes: Ints) -> None:
        batches = self._store.apply(changes) if len(changes) else {}
        if batches:
            for place, batch in self._standing.advance(batches).items():
                self._outputs.setdefault(place, []).append(batch)

    def undo(self) -> None:
        """Take back all steps, the last one first."""
        for changes in reversed(self._journal):
            back = changes[::-1].copy()
            back[:, DIFF] *= -1
            self._apply(back)
        self._journal.clear()
        self._outputs.clear()

    def outputs(self) -> dict[int, Ints]:
        """What changed at each place of the network, over all steps."""
        return {place: np.concatenate(parts) for place, parts in self._outputs.items()}


def _distinct(quads: Ints) -> Ints:
    """Each quad once, in order of first appearance."""
    if len(quads) < 2:
        return quads
    _, first = np.unique(quads, axis=0, return_index=True)
    return quads[np.sort(first)]


def _signed(quads: Ints, diff: int) -> Ints:
    changes = np.zeros((len(quads), VALUES + 4), np.int32)
    changes[:, DIFF] = diff
    changes[:, VALUES:] = quads.reshape(-1, 4)
    return changes
