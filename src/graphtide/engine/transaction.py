"""Transaction: changes that take effect together, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from graphtide.engine.quads import Ids, ObjectLike, TermLike, quad_ids
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from types import TracebackType

    from graphtide.engine.live_graph import LiveGraph


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
