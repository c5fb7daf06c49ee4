"""Instances by definition: the natural join of the patterns' matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.instances.plan import Nodes, Variables, deepest, dependences, make_groups
from graphtide.kernel.twin.recomputed import Bag, Recomputed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.kernel.batch import Ints

Binding = dict[int, int]


class Instances(Recomputed):
    """The twin of `graphtide.kernel.instances.operator.Instances`.

    >>> from graphtide.kernel.batch import make_batch
    >>> star = Instances([(0,), (0,)], [(0,)])
    >>> star.step(make_batch([(0, 1, 7), (1, 1, 8)], 1), make_batch([(2, 1, 7)], 1)).tolist()
    [[2, 1, 7]]
    >>> star.sizes()
    {'ground': 0, 'instances': 2}
    """

    def __init__(self, patterns: Sequence[Variables], nodes: Nodes) -> None:
        self._variables = sum(map(len, nodes))
        super().__init__(len(patterns), self._variables)
        self._patterns = [tuple(p) for p in patterns]
        self._nodes = list(nodes)
        self._groups = make_groups(patterns, nodes)

    def answer(self) -> Bag:
        """Every way to take one match of each pattern so that they agree, once."""
        found = self._join(range(len(self._patterns)))
        return {tuple(row[v] for v in range(self._variables)): 1 for row in found}

    def _join(self, patterns: Iterable[int]) -> list[Binding]:
        rows: list[Binding] = [{}]
        for p in patterns:
            matches = [
                dict(zip(self._patterns[p], match, strict=True))
                for match, count in self._inputs[p].items()
                if count > 0
            ]
            rows = [
                {**row, **match}
                for row in rows
                for match in matches
                if all(row.get(v, value) == value for v, value in match.items())
            ]
        return rows

    def step(self, *batches: Ints) -> Ints:
        """The change of the answer for changes of the patterns' matches."""
        return self._advance(*batches)

    def sizes(self) -> dict[str, int]:
        """Whether there are triples without variables; instances of which something is known."""
        known = sum(len(self._known(g)) for g in range(1, len(self._groups)))
        return {"ground": int(bool(self._groups[0].patterns)), "instances": known}

    def _known(self, group: int) -> set[tuple[int, ...]]:
        """Instances with a matched pattern or, where there is none to match, a part that holds."""
        own = self._groups[group]
        parts = [[p] for p in own.patterns] or [self._below(node) for node in own.dependants]
        return {tuple(row[v] for v in own.variables) for part in parts for row in self._join(part)}

    def _below(self, node: int) -> list[int]:
        """The patterns that are decided at a node or further down."""
        inside = {node}
        for at, need in enumerate(dependences(self._patterns, self._nodes)):
            if deepest(need, self._nodes) in inside:
                inside.add(at)
        return [i for i, p in enumerate(self._patterns) if deepest(p, self._nodes) in inside]
