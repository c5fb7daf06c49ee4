"""Network: the operators of all standing queries of a graph, wired as their plans say.

Equal sub-plans are one node, within a query and between queries: one memory, one computation. A
node is removed when the last query that uses it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.engine.dataflow.attachment import Attachment
from graphtide.engine.dataflow.due_rows import DueRows, Now
from graphtide.engine.dataflow.operators import Operator, constant_batch, make_operator
from graphtide.engine.dataflow.programs import identity
from graphtide.kernel.batch import DIFF, Ints, Longs, empty_batch
from graphtide.limits import Allowance
from graphtide.plan.physical import Constant, Counting, GroupBy, Physical, Search, children, nodes

if TYPE_CHECKING:
    from graphtide.limits import Limits
    from graphtide.rdf.dictionary import TermDictionary

NodeIds = dict[Physical, int]
"""The ids that the nodes of one plan have in the network."""

SearchRows = Callable[[Search], Ints]
"""Gives the current rows of a search."""

Step = tuple[int, Callable[..., Ints], tuple[int, ...]]

SMALL = 1000
"""Rows that are not worth counting against the limits."""

MAX_ROUTES = 10_000
"""Sets of changed leaves for which the order of steps is remembered."""


@dataclass(slots=True)
class Node:
    """An operator, its inputs, and the nodes and queries that depend on it."""

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
    search_rows: SearchRows,
    terms: TermDictionary,
) -> Ints:
    """All current rows of a node: the output of a fresh operator for all rows of its inputs."""
    if isinstance(node, Search):
        return search_rows(node)
    if isinstance(node, Constant):
        return constant_batch(node, terms)
    # A group without keys has a row even when nothing is in it.
    empty = isinstance(node, GroupBy) and not node.keys
    if empty or any(map(len, inputs)) or (isinstance(node, Counting) and node.always):
        return operator.step(*inputs)
    return empty_batch(len(node.schema))


def actual_rows(
    root: Physical, search_rows: SearchRows, terms: TermDictionary, now: Now
) -> dict[Physical, int]:
    """How many rows each node of a plan has now, evaluated from scratch."""
    outputs: dict[Physical, Ints] = {}
    for node in nodes(root):
        inputs = [outputs[child] for child in children(node)]
        operator = make_operator(node, terms, now)
        outputs[node] = first_rows(node, operator, inputs, search_rows, terms)
    return {node: int(batch[:, DIFF].sum()) for node, batch in outputs.items()}


class Network:
    """Nodes by id; a node's id is higher than those of its inputs. `timed` read the clock."""

    def __init__(self, terms: TermDictionary, limits: Limits, now: Now) -> None:
        self._terms = terms
        self._now = now
        self.timed: dict[int, DueRows] = {}
        self._limits = limits
        self._nodes: dict[int, Node] = {}
        self._ids: dict[Hashable, int] = {}
        self._next = 0
        self._routes: dict[tuple[int, ...], list[Step]] = {}
        self.starting: Attachment | None = None
        """A plan that is added while changes go on."""

    def attach(self, root: Physical, search_rows: SearchRows) -> tuple[NodeIds, Ints]:
        """Add a plan; the ids of its nodes, and the current rows of its root."""
        added = Attachment(self, root, search_rows)
        try:
            with Allowance(self._limits, "query") as left:
                while not added.is_done:
                    left.spend(added.step().nbytes)
        except BaseException:
            self.detach(added.node_ids)
            raise
        return added.node_ids, added.rows_now(added.node_ids[root])

    def add(self, node: Physical, inputs: Sequence[int], added: Attachment) -> int:
        """Find or make a node, for a plan that is being added: its id.

        A node that other plans use keeps its state; its rows are evaluated once more, for the new
        nodes that read them.
        """
        key = identity(node, tuple(inputs), self._terms)
        node_id = self._ids.get(key)
        if node_id is not None and node_id in added.rows:
            return node_id
        operator = make_operator(node, self._terms, self._now)
        batches = [added.rows_now(each) for each in inputs]
        output = first_rows(node, operator, batches, added.search_rows, self._terms)
        if node_id is None:
            node_id = self._add(key, operator, tuple(inputs), empty_batch(len(node.schema)))
        self._nodes[node_id].users += 1
        added.rows[node_id] = output
        self._routes.clear()
        return node_id

    def _add(
        self, key: Hashable, operator: Operator, inputs: tuple[int, ...], nothing: Ints
    ) -> int:
        node_id = self._next
        self._next += 1
        self._nodes[node_id] = Node(key, operator, inputs, nothing)
        self._ids[key] = node_id
        if isinstance(operator, DueRows):
            self.timed[node_id] = operator
        for each in inputs:
            self._nodes[each].readers.add(node_id)
        return node_id

    def detach(self, node_ids: NodeIds) -> None:
        """Remove a plan, and the nodes that no other plan uses."""
        for node_id in sorted(set(node_ids.values()), reverse=True):
            node = self._nodes[node_id]
            node.users -= 1
            if node.users == 0:
                for each in node.inputs:
                    self._nodes[each].readers.discard(node_id)
                del self._ids[node.key], self._nodes[node_id]
                self.timed.pop(node_id, None)
        self._routes.clear()

    def step(self, outputs: dict[int, Ints], left: Allowance) -> dict[int, Ints]:
        """The output of every node that changes of some leaves reach, by node id.

        After a `LimitError`, some nodes have taken in the changes and others have not.
        """
        nodes = self._nodes
        for node_id, batch in outputs.items():
            nodes[node_id].messages += len(batch)
        leaves = tuple(outputs)
        for node_id, step, inputs in self._routes.get(leaves) or self._route(leaves):
            if len(inputs) == 1:
                given = outputs.get(inputs[0])
                if given is None or not len(given):
                    continue
                outputs[node_id] = batch = step(given)
            else:
                batches = [outputs.get(i, nodes[i].nothing) for i in inputs]
                if not any(map(len, batches)):
                    continue
                outputs[node_id] = batch = step(*batches)
            rows = len(batch)
            nodes[node_id].messages += rows
            if rows > SMALL:
                left.spend(batch.nbytes)
        if self.starting is not None:
            self.starting.note(outputs)
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
            if len(self._routes) >= MAX_ROUTES:
                self._routes.clear()
            self._routes[leaves] = route
        return route

    def chain(self, leaf: int) -> list[int]:
        """The nodes that changes of a leaf reach, if each but the last is read by one node alone.

        Otherwise, none.
        """
        found = [leaf]
        while readers := self._nodes[found[-1]].readers:
            (*others, reader) = readers
            if others or len(self._nodes[reader].inputs) > 1:
                return []
            found.append(reader)
        return found

    def node(self, node_id: int) -> Node:
        """The node of an id."""
        return self._nodes[node_id]

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids that all nodes store."""
        for node in self._nodes.values():
            yield from node.operator.held_ids()
        if self.starting is not None:
            yield from self.starting.held_ids()

    def sizes(self, node_ids: NodeIds) -> dict[Physical, dict[str, int]]:
        """The rows that each node of a plan stores."""
        return {node: self._nodes[node_id].operator.sizes() for node, node_id in node_ids.items()}

    def held(self, node_ids: NodeIds) -> tuple[int, int]:
        """How many entries and bytes the nodes of a plan store."""
        entries = sum(sum(held.values()) for held in self.sizes(node_ids).values())
        return entries, self.bytes_of(node_ids)

    def messages(self, node_ids: NodeIds) -> dict[Physical, int]:
        """How many rows each node of a plan has put out since it was made."""
        return {node: self._nodes[node_id].messages for node, node_id in node_ids.items()}

    def users(self, node_ids: NodeIds) -> dict[Physical, int]:
        """How many queries use each node of a plan."""
        return {node: self._nodes[node_id].users for node, node_id in node_ids.items()}

    def bytes_of(self, node_ids: NodeIds) -> int:
        """Bytes held by the nodes of a plan, shared ones included."""
        return sum(self._nodes[node_id].operator.nbytes for node_id in set(node_ids.values()))

    @property
    def nbytes(self) -> int:
        """Bytes held by all nodes."""
        return sum(node.operator.nbytes for node in self._nodes.values())

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)
