"""States of the search: a state is identified by its net changes to the initial graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.engine.ingest import Ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = tuple[int, ...]
Change = tuple[int, Ids]
NetChanges = dict[Ids, int]
"""Quads that were inserted (+1) or deleted (-1) since the start."""

_MASK = (1 << 64) - 1


@dataclass(slots=True, eq=False)
class GraphState:
    """A state and one path to it: the parent, and the fix that was applied there.

    `changes` are the effective changes of that step. `fingerprint` is a hash of the net changes,
    independent of their order. `counts` are the rows of the goals' queries. `price` is the cost of
    the fixes; `cost` adds that of soft goals and of the cost function.
    """

    parent: GraphState | None
    fix: int
    row: Row
    changes: tuple[Change, ...]
    fingerprint: int
    depth: int
    price: float
    counts: tuple[int, ...] = ()
    violations: int = 0
    cost: float = 0.0


def first_state() -> GraphState:
    """The initial state."""
    return GraphState(None, -1, (), (), 0, 0, 0.0)


def updated_fingerprint(fingerprint: int, changes: Iterable[Change]) -> int:
    """The fingerprint after more changes: a change and its inverse cancel out.

    >>> there, gone = [(1, (1, 2, 3, 0))], [(-1, (1, 2, 3, 0))]
    >>> updated_fingerprint(updated_fingerprint(7, there), gone)
    7
    """
    return (fingerprint + sum(diff * _mixed(quad) for diff, quad in changes)) & _MASK


def _mixed(quad: Ids) -> int:
    """A hash suitable for sums: sums of Python's hashes of small tuples often collide."""
    x = hash(quad) & _MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK  # the finaliser of SplitMix64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def path(state: GraphState) -> list[GraphState]:
    """The states from the start (excluded) to a state (included)."""
    found: list[GraphState] = []
    while state.parent is not None:
        found.append(state)
        state = state.parent
    return found[::-1]


def net_changes(state: GraphState) -> NetChanges:
    """The difference of a state to the start."""
    net: NetChanges = {}
    for each in path(state):
        merge(net, each.changes)
    return net


def merge(net: NetChanges, changes: Iterable[Change]) -> None:
    """Add effective changes to net changes; two changes of a quad cancel out.

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


def changes_between(here: Mapping[Ids, int], there: Mapping[Ids, int]) -> list[Change]:
    """The changes from one state to another, both given by their net changes.

    >>> changes_between({(1, 2, 3, 0): 1, (4, 5, 6, 0): -1}, {(1, 2, 3, 0): 1})
    [(1, (4, 5, 6, 0))]
    """
    back = [(-diff, quad) for quad, diff in here.items() if quad not in there]
    return back + [(diff, quad) for quad, diff in there.items() if quad not in here]


@dataclass(slots=True)
class SeenState:
    """A visited state, and the Pareto-optimal paths to it: number of steps and price."""

    state: GraphState
    ways: list[tuple[int, float]]

    def add_path(self, depth: int, price: float) -> bool:
        """Add a path, unless a known one is at most as long and as expensive; whether it was added.

        >>> known = SeenState(first_state(), [(3, 1.0), (1, 5.0)])
        >>> known.add_path(2, 3.0), known.add_path(2, 4.0)
        (True, False)
        """
        if any(steps <= depth and spent <= price for steps, spent in self.ways):
            return False
        ways = [(steps, spent) for steps, spent in self.ways if steps < depth or spent < price]
        self.ways = [*ways, (depth, price)]
        return True


@dataclass(slots=True)
class KnownStates:
    """All visited states by fingerprint; on equal fingerprints, net changes are compared."""

    _by_fingerprint: dict[int, list[SeenState]] = field(default_factory=dict)

    def find(self, state: GraphState) -> SeenState | None:
        """The visited state with the same net changes, if any."""
        found = self._by_fingerprint.get(state.fingerprint)
        if not found:
            return None
        net = net_changes(state)
        return next((known for known in found if net_changes(known.state) == net), None)

    def add(self, state: GraphState) -> SeenState:
        """Add a new state."""
        known = SeenState(state, [(state.depth, state.price)])
        self._by_fingerprint.setdefault(state.fingerprint, []).append(known)
        return known
