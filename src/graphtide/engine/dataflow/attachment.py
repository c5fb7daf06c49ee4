"""Attachment: a plan that is added to a network node by node, while changes go on.

A node is filled with the rows of its inputs. These are evaluated when an input is added, and what
it puts out since then is noted: together they are its rows now. So each step sees the present
graph, and between two steps the network may take in changes: no call has to pay for all memories
of a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import TX
from graphtide.kernel.counts import consolidate
from graphtide.plan.physical import children, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.engine.dataflow.network import Network, NodeIds, SearchRows
    from graphtide.kernel.batch import Ints
    from graphtide.plan.physical import Physical


NOTED = 4096
"""Rows that are noted before they are added up; as many as a node has, if these are more."""


class Attachment:
    """The nodes of a plan that are in a network so far, with their `rows` when they were added."""

    def __init__(self, network: Network, root: Physical, search_rows: SearchRows) -> None:
        self.node_ids: NodeIds = {}
        self.rows: dict[int, Ints] = {}
        self.search_rows = search_rows
        self._network = network
        self._rest = list(nodes(root))[::-1]
        self._since: dict[int, list[Ints]] = {}

    @property
    def is_done(self) -> bool:
        """Whether all nodes are there."""
        return not self._rest

    def step(self) -> Ints:
        """Add the next node, whose inputs are there; its rows."""
        node = self._rest[-1]
        inputs = [self.node_ids[child] for child in children(node)]
        self.node_ids[node] = node_id = self._network.add(node, inputs, self)
        self._rest.pop()
        return self.rows[node_id]

    def rows_now(self, node_id: int) -> Ints:
        """The rows of a node, with what has changed since it was added."""
        since = self._since.pop(node_id, None)
        if since is not None:
            self.rows[node_id] = consolidate(np.concatenate([self.rows[node_id], *since]))
        return self.rows[node_id]

    def note(self, outputs: Mapping[int, Ints]) -> None:
        """What nodes have put out for some changes."""
        for node_id in self.rows.keys() & outputs.keys():
            if len(outputs[node_id]):
                batch = outputs[node_id].copy()  # whose memory may be used again
                batch[:, TX] = 0
                since = self._since.setdefault(node_id, [])
                since.append(batch)
                if sum(map(len, since)) > max(NOTED, len(self.rows[node_id])):
                    self.rows_now(node_id)  # what has passed takes no memory

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        yield from self.rows.values()
        for batches in self._since.values():
            yield from batches
