"""Transitive closure by definition: a search from every source that is demanded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.batch import empty_batch
from graphtide.kernel.twin.recomputed import Bag, Recomputed, Row
from graphtide.limits import allowance

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints


class ReachKernel(Recomputed):
    """The twin of `graphtide.kernel.reach.ReachKernel`.

    >>> from graphtide.kernel.batch import make_batch
    >>> reach = ReachKernel(2)
    >>> edges = make_batch([(0, 1, 5, 6), (0, 1, 6, 7), (2, -1, 5, 6)], 2)
    >>> reach.step(edges, make_batch([(1, 1, 5)], 1)).tolist()
    [[1, 1, 5, 6], [1, 1, 5, 7], [2, -1, 5, 6], [2, -1, 5, 7]]
    """

    def __init__(self, width: int, *, every: bool = False) -> None:
        super().__init__(2, width)
        self._every = every

    def answer(self) -> Bag:
        """The pairs that are connected by one or more edges."""
        edges, demanded = self._inputs
        after: dict[Row, list[Row]] = {}
        for (start, end, *graph), count in edges.items():
            if count > 0:
                after.setdefault((start, *graph), []).append((end, *graph))
        sources = after if self._every else [row for row, count in demanded.items() if count > 0]
        pairs: Bag = {}
        for source in sources:
            reached = dict.fromkeys(after.get(source, ()))
            ahead = list(reached)
            for node in ahead:
                new = [end for end in after.get(node, ()) if end not in reached]
                reached.update(dict.fromkeys(new))
                ahead += new
            pairs.update(((source[0], *node), 1) for node in reached)
            allowance().check_time()
        return pairs

    def step(self, edges: Ints, sources: Ints | None = None) -> Ints:
        """The pairs that come to be connected, or cease to be; `LimitError` if they are many."""
        found = self._advance(edges, empty_batch(1) if sources is None else sources)
        left = allowance()
        most = left.limits.path_pairs
        if most is not None and len(self._answer) > most:
            raise left.limits.error(
                "path_pairs",
                f"a property path connects too many nodes: {len(self._answer):,} pairs",
            )
        return found

    def sizes(self) -> dict[str, int]:
        """Edges and pairs held."""
        return {"edges": len(self._inputs[0]), "pairs": len(self._answer)}
