"""Transaction: changes that take effect together, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from graphtide.engine.ingest import Ids, ObjectLike, TermLike, Transactions, signed
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from graphtide.engine.runtime import Runtime
    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Longs


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

    __slots__ = ("__weakref__", "_append", "_changes", "_ids", "_runtime", "_time", "lock")

    def __init__(self, runtime: Runtime, time: int | None) -> None:
        self._runtime = runtime
        self.lock = runtime.lock
        self._time = time
        self._ids = runtime.quad_ids_of
        self._changes: list[tuple[int, Ids]] | None = None
        self._append: Callable[[tuple[int, Ids]], None] = _not_open

    def insert(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Insert a quad (into the default graph, unless `g` names another)."""
        with self.lock:
            self._append((1, self._ids(self._runtime.terms, s, p, o, g)))

    def delete(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Delete a quad."""
        with self.lock:
            self._append((-1, self._ids(self._runtime.terms, s, p, o, g)))

    def __enter__(self) -> Self:
        self._changes = []
        self._append = self._changes.append
        self._runtime.terms.holders.add(self)
        return self

    def held_ids(self) -> Iterator[Longs]:
        """The ids of the changes so far."""
        yield flat_ids(ids for _, ids in self._changes or ())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.lock:
            changes, self._changes, self._append = self._changes, None, _not_open
            if kind is None and changes is not None:
                self._runtime.commit(changes, self._time)
                self._runtime.reclaim()


def _not_open(_: tuple[int, Ids]) -> None:
    raise GraphtideError(
        "this transaction is not open, so its change would be lost",
        hint="write `with graph.transaction() as tx:` and change the graph inside",
    )


Underway = tuple[Transactions | None, list[Ints], int]
"""What is being applied: its transactions, its changes step by step, the first number.

Plain tuples, as these two are made for every single change."""

Recent = tuple[Underway | None, int]
"""What was applied last, and the generation of terms then: later, ids may be of others."""


def undone(store: QuadStore, steps: Sequence[Ints]) -> Ints:
    """What undoes steps, of which a store may have applied the last one in part."""
    parts: list[Ints] = [np.empty((0, VALUES + 4), np.int32)]
    for at, step in enumerate(reversed(steps)):
        if at == 0:
            parts.append(store.undo(step))
        else:
            parts.append(step[::-1].copy())
            parts[-1][:, DIFF] *= -1
    return np.concatenate(parts)


def in_one(steps: Sequence[Ints]) -> Ints:
    """The changes of several steps, one after the other, as one transaction."""
    changes = np.concatenate([np.empty((0, VALUES + 4), np.int32), *steps])
    changes[:, TX] = 0
    return changes


class MultiStepTransaction:
    """Several steps of changes as one transaction, each of which sees those before it.

    Store and plan nodes take in each step at once; the output is held back until the end. The
    runtime undoes all `steps` if something is raised.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._plans = runtime.queries.plans
        self.steps: list[Ints] = []
        self._outputs: dict[int, list[Ints]] = {}

    def change(self, deleted: Ints, inserted: Ints) -> int:
        """Delete quads, then insert quads; how many changes that made.

        Quads that are deleted and inserted stay; inserts of present quads are skipped.
        """
        removed, added = _distinct(deleted), _distinct(inserted)
        removed = removed[self._store.contains(removed)] if len(removed) else removed
        added = added[~self._store.contains(added)] if len(added) else added
        stays = set(map(tuple, inserted.tolist())) if len(removed) and len(inserted) else set()
        if stays:
            removed = removed[[tuple(row) not in stays for row in removed.tolist()]]
        changes = np.concatenate([signed(removed, -1), signed(added, 1)])
        self.steps.append(changes)
        self._apply(changes)
        return len(changes)

    def _apply(self, changes: Ints) -> None:
        batches = self._store.apply(changes) if len(changes) else {}
        if batches:
            for node_id, batch in self._plans.advance(batches).items():
                self._outputs.setdefault(node_id, []).append(batch)

    def outputs(self) -> dict[int, Ints]:
        """The output of each node of the network, by node id, over all steps."""
        return {node_id: np.concatenate(parts) for node_id, parts in self._outputs.items()}


def _distinct(quads: Ints) -> Ints:
    """Each quad once, in order of first appearance."""
    if len(quads) < 2:
        return quads
    _, first = np.unique(quads, axis=0, return_index=True)
    return quads[np.sort(first)]
