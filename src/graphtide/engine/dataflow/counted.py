"""Counting in the kernel: COUNT, and SUM and AVG of integers, over a join tree; DISTINCT, EXISTS.

`CountedGroups` takes over, for good, when a value comes that the kernel cannot add up, or a number
does not fit into 58 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.engine.dataflow.counting import BOUND, ROWS, CountedGroups, home, plain_counts
from graphtide.engine.dataflow.sums import NO_IDS, LearnedIds
from graphtide.functions.numbers import NumericType
from graphtide.kernel import JIT
from graphtide.kernel.jointree import state as cells
from graphtide.kernel.jointree.layout import lay_out
from graphtide.kernel.jointree.table import JoinTree
from graphtide.plan.counting import sent, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.engine.dataflow.operators import Operator
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.plan.physical import Counting
    from graphtide.rdf.dictionary import TermDictionary

NUMBER_PARTS = ("integers", NumericType.INTEGER, "bad")
"""The parts of a weight for a sum, as `CountedGroups` names them."""

NO_CLASSES, NO_NUMBERS = np.zeros(1, np.int32), np.zeros(1)


def make_counted(node: Counting, terms: TermDictionary) -> Operator:
    """The operator of a node."""
    return KernelCounts(node, terms) if JIT else CountedGroups(node, terms)


class KernelCounts:
    """The groups of a join tree; without keys, the one group, even of no rows."""

    def __init__(self, node: Counting, terms: TermDictionary) -> None:
        self._node = node
        self._terms = terms
        self._ids = LearnedIds(terms, ())
        self._parts: list[object] = [ROWS]  # of a weight, as `CountedGroups` names them
        self._summed: list[list[int]] = [[] for _ in node.inputs]
        aggregates, arguments = self._aggregates()
        keys = tuple(v for v in dict.fromkeys(node.keys) if home(node, v)[1] >= 0)
        picked = np.array([keys.index(v) if v in keys else -1 for v in node.keys], np.int32)
        schemas = [part.schema for part in node.inputs]
        layout, indexes = lay_out(schemas, stored(node), sent(node), node.parents, keys)
        self._tree = JoinTree(
            layout, indexes, picked,
            np.array(aggregates, np.int32).reshape(-1, 3),
            np.array(arguments, np.int32).reshape(-1, 4),
            len(self._parts),
            always=node.always,
        )  # fmt: skip
        self._exact: CountedGroups | None = None

    def _aggregates(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int, int]]]:
        """What each aggregate counts, and what is read from the inputs; `cells.MODE` and more."""
        node = self._node
        aggregates: list[tuple[int, int, int]] = []
        arguments: list[tuple[int, int, int, int]] = []
        for number, (each, plain) in enumerate(
            zip(node.aggregates, plain_counts(node), strict=True)
        ):
            if plain:
                aggregates.append((cells.ALL_ROWS, 0, 0))
                continue
            at, column = home(node, each.argument)
            mode = cells.BOUND if each.function == "COUNT" else cells.NUMBERS
            names = (BOUND,) if mode == cells.BOUND else NUMBER_PARTS
            arguments.append((at, column, mode, len(self._parts)))
            aggregates.append((mode, len(self._parts), each.function == "AVG"))
            self._parts += ((number, name) for name in names)
            if mode == cells.NUMBERS and column >= 0:
                self._summed[at].append(column)
        return aggregates, arguments

    def step(self, *batches: Ints) -> Ints:
        """The changed rows of the groups."""
        if self._exact is not None:
            return self._exact.step(*batches)
        which = [number for number, batch in enumerate(batches) if len(batch)]
        given = [np.ascontiguousarray(batches[number]) for number in which]
        found = self._added(np.array(which, np.int32), given)
        if isinstance(found, int) or self._tree.too_large:
            added = not isinstance(found, int)
            return self._exactly(batches, added=added).step(*batches)
        return self._tree.rows(self._terms.intern_numbers(found) if len(found) else NO_IDS)

    def _added(self, which: Ints, batches: list[Ints]) -> Longs | int:
        """Let the tree take in batches; see `JoinTree.step`."""
        if len(self._parts) == 1:
            return self._tree.step(which, batches, NO_CLASSES, NO_NUMBERS)
        terms, ids = self._terms, self._ids
        if ids.generation != terms.generation:
            ids.forget(())
        found = self._tree.step(which, batches, ids.classes, terms.numbers)
        if isinstance(found, int) and found == cells.UNKNOWN_IDS:
            for number, batch in zip(which.tolist(), batches, strict=True):
                ids.learn(batch, self._summed[number])
            found = self._tree.step(which, batches, ids.classes, terms.numbers)
        return found

    def _exactly(self, batches: tuple[Ints, ...], *, added: bool) -> CountedGroups:
        """Hand over what the inputs had sent before some batches, which may have been added."""
        exact = CountedGroups(self._node, self._terms)
        for number, batch in enumerate(batches):
            keys, lines = self._tree.weights_of(number)
            sent_so_far = {
                tuple(key): line for key, line in zip(keys.tolist(), lines.tolist(), strict=True)
            }
            if added:
                self._take_back(sent_so_far, exact, number, batch)
            exact.adopt(number, {key: self._weight(line) for key, line in sent_so_far.items()})
        exact.adopt_rows(*(each.tolist() for each in self._tree.shown()))
        self._exact = exact
        del self._tree
        return exact

    def _take_back(
        self,
        lines: dict[tuple[int, ...], list[int]],
        exact: CountedGroups,
        number: int,
        batch: Ints,
    ) -> None:
        """Subtract a batch from what an input has sent, modulo 2^64: so it was counted."""
        for weights in exact.weights(number, batch).values():
            for key, weight in weights.items():
                totals = weight if len(self._parts) > 1 else {ROWS: weight}
                line = lines.setdefault(key, [0] * len(self._parts))
                for at, part in enumerate(self._parts):
                    line[at] = _wrapped(line[at] - totals.get(part, 0))

    def _weight(self, line: list[int]) -> Any:  # noqa: ANN401 - see `counting.Weight`
        if len(self._parts) == 1:
            return line[0]
        return {part: total for part, total in zip(self._parts, line, strict=True) if total}

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The keys of all tables, and the rows of all groups."""
        return (self._tree if self._exact is None else self._exact).held_ids()

    def sizes(self) -> dict[str, int]:
        """Keys with counts, and groups."""
        return (self._tree if self._exact is None else self._exact).sizes()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        if self._exact is not None:
            return self._exact.nbytes
        return self._tree.nbytes + self._ids.nbytes


def _wrapped(number: int) -> int:
    """A number modulo 2^64, as a signed one.

    >>> _wrapped(2**63), _wrapped(-1)
    (-9223372036854775808, -1)
    """
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
