"""Transaction: changes that take effect together, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from graphtide.engine.quads import Ids, ObjectLike, TermLike, quad_ids

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
        self._changes: list[tuple[int, Ids]] = []

    def insert(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Insert a quad (into the default graph, unless `g` names another)."""
        self._changes.append((1, quad_ids(self._graph.terms, s, p, o, g)))

    def delete(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Delete a quad."""
        self._changes.append((-1, quad_ids(self._graph.terms, s, p, o, g)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        changes, self._changes = self._changes, []
        if kind is None:
            self._graph.commit(changes, self._time)
