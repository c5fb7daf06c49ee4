"""States of a graph that fixes lead to, each known by its net changes against the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.engine.ingest import Ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = tuple[int, ...]
Change = tuple[int, Ids]
Net = dict[Ids, int]
"""Quads that are there and were not at the start (+1), or the other way round (-1)."""

_MASK = (1 << 64) - 1


@dataclass(slots=True, eq=False)
class GraphState:
    """A state, and one way to it: the state before, and the fix that was applied there.

    `changes` are those of that step, each with an effect. `mark` is a hash of the net changes that
    does not depend on their order. `counts` are the rows of the goals' queries. `cost` adds up
    the fixes and the soft objectives.
    """

    parent: GraphState | None
    fix: int
    row: Row
    changes: tuple[Change, ...]
    mark: int
    depth: int
    price: float
    counts: tuple[int, ...] = ()
    violations: int = 0
    cost: float = 0.0


def first_state() -> GraphState:
    """The start, to which nothing was done."""
    return GraphState(None, -1, (), (), 0, 0, 0.0)


def marked(mark: int, changes: Iterable[Change]) -> int:
    """The mark after some more changes: a change and its opposite cancel out.

    >>> there, gone = [(1, (1, 2, 3, 0))], [(-1, (1, 2, 3, 0))]
    >>> marked(marked(7, there), gone)
    7
    """
    return (mark + sum(diff * _mixed(quad) for diff, quad in changes)) & _MASK


def _mixed(quad: Ids) -> int:
    """A hash whose sums differ too: those of Python's own hashes of small tuples often agree."""
    x = hash(quad) & _MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK  # the finaliser of SplitMix64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def path(state: GraphState) -> list[GraphState]:
    """The states after the start on the way to a state, itself included."""
    found: list[GraphState] = []
    while state.parent is not None:
        found.append(state)
        state = state.parent
    return found[::-1]


def net_changes(state: GraphState) -> Net:
    """What differs from the start."""
    net: Net = {}
    for each in path(state):
        merge(net, each.changes)
    return net


def merge(net: Net, changes: Iterable[Change]) -> None:
    """Add changes, each of which had an effect: what is changed twice is as it was.

    >>> net = {(1, 2, 3, 0): 1}
    >>> merge(net, [(-1, (1, 2, 3, 0)), (1, (4, 5, 6, 0))])
    >>> net
    {(4, 5, 6, 0): 1}
    """
    for diff, quad in changes:
        if quad in net:
            del net[quad]
        else:
            net[quad] = diff


def way(here: Mapping[Ids, int], there: Mapping[Ids, int]) -> list[Change]:
    """The changes that lead from one state to another, given what differs from the start.

    >>> way({(1, 2, 3, 0): 1, (4, 5, 6, 0): -1}, {(1, 2, 3, 0): 1})
    [(1, (4, 5, 6, 0))]
    """
    back = [(-diff, quad) for quad, diff in here.items() if quad not in there]
    return back + [(diff, quad) for quad, diff in there.items() if quad not in here]


@dataclass(slots=True)
class SeenState:
    """A state that has been seen, and the ways to it: steps and price, none worse in both."""

    state: GraphState
    ways: list[tuple[int, float]]

    def is_news(self, depth: int, price: float) -> bool:
        """Note a way to it, unless there is one as short and as cheap.

        >>> known = SeenState(first_state(), [(3, 1.0), (1, 5.0)])
        >>> known.is_news(2, 3.0), known.is_news(2, 4.0)
        (True, False)
        """
        if any(steps <= depth and spent <= price for steps, spent in self.ways):
            return False
        kept = [(steps, spent) for steps, spent in self.ways if steps < depth or spent < price]
        self.ways = [*kept, (depth, price)]
        return True


@dataclass(slots=True)
class KnownStates:
    """All states that have been seen, by their marks; equal marks are compared exactly."""

    _by_mark: dict[int, list[SeenState]] = field(default_factory=dict)

    def find(self, state: GraphState) -> SeenState | None:
        """What is known of this state, whichever way it was reached before."""
        found = self._by_mark.get(state.mark)
        if not found:
            return None
        net = net_changes(state)
        return next((known for known in found if net_changes(known.state) == net), None)

    def add(self, state: GraphState) -> SeenState:
        """Take in a state that is new."""
        known = SeenState(state, [(state.depth, state.price)])
        self._by_mark.setdefault(state.mark, []).append(known)
        return known
