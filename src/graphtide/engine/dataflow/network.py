"""Network: the operators of all standing queries of a graph, wired as their plans say.

Equal sub-plans are one node, within a query and between queries: it keeps its memories once and
does its work once. A node goes when the last query that uses it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.engine.dataflow.operators import Operator, constant_batch, make_operator
from graphtide.engine.dataflow.programs import identity
from graphtide.kernel.batch import DIFF, Ints, empty_batch
from graphtide.plan.physical import Constant, GroupBy, Physical, Search, children, nodes

if TYPE_CHECKING:
    from graphtide.rdf.dictionary import TermDictionary

Places = dict[Physical, int]
"""Where the nodes of one plan are in the network."""

Found = Callable[[Search], Ints]
"""Gives the rows of a search now."""

Step = tuple[int, Callable[..., Ints], tuple[int, ...]]

MOST_ROUTES = 10_000


@dataclass(slots=True)
class Node:
    """An operator at its place, and who depends on it."""

    key: Hashable
    operator: Operator
    inputs: tuple[int, ...]
    nothing: Ints
    users: int = 0
    readers: set[int] = field(default_factory=set)
    messages: int = 0


def first_rows(
    node: Physical,
    operator: Operator,
    inputs: Sequence[Ints],
    found: Found,
    terms: TermDictionary,
) -> Ints:
    """All rows of a node now: what a fresh operator answers to all rows of its inputs."""
    if isinstance(node, Search):
        return found(node)
    if isinstance(node, Constant):
        return constant_batch(node, terms)
    # A group without keys has a row even when nothing is in it.
    if any(map(len, inputs)) or (isinstance(node, GroupBy) and not node.keys):
        return operator.step(*inputs)
    return empty_batch(len(node.schema))


def actual_rows(root: Physical, found: Found, terms: TermDictionary) -> dict[Physical, int]:
    """How many rows each node of a plan has now, worked out from scratch."""
    outputs: dict[Physical, Ints] = {}
    for node in nodes(root):
        inputs = [outputs[child] for child in children(node)]
        outputs[node] = first_rows(node, make_operator(node, terms), inputs, found, terms)
    return {node: int(batch[:, DIFF].sum()) for node, batch in outputs.items()}


class Network:
    """Nodes by place; a node's place is higher than those of its inputs."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._nodes: dict[int, Node] = {}
        self._places: dict[Hashable, int] = {}
        self._next = 0
        self._routes: dict[tuple[int, ...], list[Step]] = {}

    def attach(self, root: Physical, found: Found) -> tuple[Places, Ints]:
        """Take in a plan; the places of its nodes, and its root's rows now.

        `found` gives the rows of a search. Nodes that are there already keep their state; what they
        have passed on before is worked out once more, for the new nodes that want to read it.
        """
        places: Places = {}
        outputs: dict[int, Ints] = {}
        try:
            for node in nodes(root):
                self._place(node, places, outputs, found)
        finally:
            for place in set(places.values()):
                self._nodes[place].users += 1
            self._routes.clear()
            if root not in places or places[root] not in outputs:
                self.detach(places)
        return places, outputs[places[root]]

    def _place(
        self,
        node: Physical,
        places: Places,
        outputs: dict[int, Ints],
        found: Found,
    ) -> None:
        """Find or make a node's place, and work out its rows, given those of its inputs."""
        inputs = tuple(places[child] for child in children(node))
        key = identity(node, inputs, self._terms)
        operator = make_operator(node, self._terms)
        place = self._places.get(key)
        if place is None:
            place = self._add(key, operator, inputs, empty_batch(len(node.schema)))
        places[node] = place
        if place in outputs:
            return
        batches = [outputs[i] for i in inputs]
        outputs[place] = first_rows(node, operator, batches, found, self._terms)

    def _add(
        self, key: Hashable, operator: Operator, inputs: tuple[int, ...], nothing: Ints
    ) -> int:
        place = self._next
        self._next += 1
        self._nodes[place] = Node(key, operator, inputs, nothing)
        self._places[key] = place
        for each in inputs:
            self._nodes[each].readers.add(place)
        return place

    def detach(self, places: Places) -> None:
        """Let a plan go, and the nodes that no other plan uses."""
        for place in sorted(set(places.values()), reverse=True):
            node = self._nodes[place]
            node.users -= 1
            if node.users == 0:
                for each in node.inputs:
                    self._nodes[each].readers.discard(place)
                del self._places[node.key], self._nodes[place]
        self._routes.clear()

    def step(self, leaves: Mapping[int, Ints]) -> dict[int, Ints]:
        """What changes at every node that changes of some leaves reach, by place."""
        outputs = dict(leaves)
        for place, step, inputs in self._route(tuple(leaves)):
            if len(inputs) == 1:
                batch = outputs.get(inputs[0])
                if batch is not None and len(batch):
                    outputs[place] = step(batch)
            else:
                batches = [outputs.get(i, self._nodes[i].nothing) for i in inputs]
                if any(map(len, batches)):
                    outputs[place] = step(*batches)
        for place, batch in outputs.items():
            self._nodes[place].messages += len(batch)
        return outputs

    def _route(self, leaves: tuple[int, ...]) -> list[Step]:
        """The steps that changes of these leaves may cause, in order."""
        route = self._routes.get(leaves)
        if route is None:
            reached: set[int] = set()
            ahead = list(leaves)
            while ahead:
                fresh = self._nodes[ahead.pop()].readers - reached
                reached |= fresh
                ahead += fresh
            at = self._nodes
            route = [(p, at[p].operator.step, at[p].inputs) for p in sorted(reached)]
            if len(self._routes) >= MOST_ROUTES:
                self._routes.clear()
            self._routes[leaves] = route
        return route

    def sizes(self, places: Places) -> dict[Physical, dict[str, int]]:
        """The rows that each node of a plan holds now."""
        return {node: self._nodes[place].operator.sizes() for node, place in places.items()}

    def messages(self, places: Places) -> dict[Physical, int]:
        """How many rows each node of a plan has passed on since it is there."""
        return {node: self._nodes[place].messages for node, place in places.items()}

    def users(self, places: Places) -> dict[Physical, int]:
        """How many queries use each node of a plan."""
        return {node: self._nodes[place].users for node, place in places.items()}

    def bytes_of(self, places: Places) -> int:
        """Bytes held by the nodes of a plan, shared ones included."""
        return sum(self._nodes[place].operator.nbytes for place in set(places.values()))

    @property
    def nbytes(self) -> int:
        """Bytes held by all nodes."""
        return sum(node.operator.nbytes for node in self._nodes.values())

    def __contains__(self, place: int) -> bool:
        return place in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)
