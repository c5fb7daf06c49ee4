"""Instances: a basic graph pattern by iterated instantiation and decomposition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, longer
from graphtide.kernel.instances.plan import Nodes, Variables, plan_instances
from graphtide.kernel.instances.state import AT, ROOM, WRITTEN
from graphtide.kernel.instances.step import DONE, INSTANCE, NO_ROOM, PATTERN, instances_step
from graphtide.kernel.rowtable import RowTable
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


LEAST_RESERVED = 32
"""Rows that are reserved at a time, or a quarter of the table: most events of a batch may belong to
instances that exist already."""


class Instances:
    """The instances of a decomposed query: bits and counts, but no triples.

    `patterns` has the variables of each input's columns, numbered as the output's columns; `nodes`
    has them in the order of instantiation. Inputs are sets of rows.

    >>> from graphtide.kernel.batch import make_batch
    >>> star = Instances([(0,), (0,)], [(0,)])
    >>> star.step(make_batch([(0, 1, 7), (1, 1, 8)], 1), make_batch([(2, 1, 7)], 1)).tolist()
    [[2, 1, 7]]
    >>> star.sizes()
    {'ground': 0, 'instances': 2}
    """

    def __init__(self, patterns: Sequence[Variables], nodes: Nodes) -> None:
        plan = plan_instances(patterns, nodes)
        self._columns = [np.array(columns, np.intp) + VALUES for columns in plan.columns]
        self._layout = plan.layout
        self._table = RowTable(plan.width, plan.keys)
        self._state: Ints = np.zeros((len(self._table.arrays.rows), plan.state), np.int32)
        self._root: Ints = np.zeros((1, max(plan.state, 1)), np.int32)
        variables = sum(map(len, nodes))
        self._width = variables
        self._bind: Ints = np.zeros(variables + 1, np.int32)
        self._key: Ints = np.zeros((1, plan.width), np.int32)
        self._regs = np.zeros(8, np.int64)
        steps = len(plan.layout.groups) + 2
        self._frames = np.zeros((len(nodes) + 2, steps + 2), np.int64)

    def step(self, *batches: Ints) -> Ints:
        """The change of the answer for changes of the patterns' matches."""
        events = self._events(batches)
        out: Ints = np.empty((len(events) + 8, VALUES + self._width), np.int32)
        self._regs[[AT, WRITTEN]] = 0
        before = len(self._table)
        while True:
            stopped = instances_step(
                self._table.arrays, self._layout, self._state, self._root,
                self._regs, self._frames, self._bind, self._key, events, out,
            )  # fmt: skip
            if stopped == DONE:
                return out[: self._regs[WRITTEN]]
            if stopped == NO_ROOM:
                # Single changes may make very many instances: these are results, too.
                made = len(self._table) - before
                allowance().allow(made * self.nbytes // max(len(self._state), 1))
                self._make_room(len(events) - int(self._regs[AT]))
            else:
                out = longer(out)

    def _events(self, batches: Sequence[Ints]) -> Ints:
        """All inputs as rows `[tx, diff, pattern, group, values…]` in transaction order."""
        parts = [(p, batch) for p, batch in enumerate(batches) if len(batch)]
        events: Ints = np.zeros(
            (sum(len(b) for _, b in parts), INSTANCE + self._table.width), np.int32
        )
        at = 0
        for pattern, batch in parts:
            part = events[at : at + len(batch)]
            part[:, [TX, DIFF]] = batch[:, [TX, DIFF]]
            part[:, PATTERN] = pattern
            part[:, INSTANCE] = self._layout.patterns[pattern, 0]
            columns = self._columns[pattern]
            part[:, INSTANCE + 1 : INSTANCE + 1 + len(columns)] = batch[:, columns]
            at += len(batch)
        if len(parts) > 1:
            events = events[np.argsort(events[:, TX], kind="stable")]
        return events

    def _make_room(self, left: int) -> None:
        wanted = max(LEAST_RESERVED, len(self._table) // 4)
        room = self._table.reserve(min(wanted, 2 * left + 2))
        missing = len(self._table.arrays.rows) - len(self._state)
        if missing > 0:
            more = np.zeros((missing, self._state.shape[1]), np.int32)
            self._state = np.concatenate([self._state, more])
        self._regs[ROOM] = room  # last: loops rely on it for the table and the state

    def held_ids(self) -> Iterator[Ints]:
        """The values of all instances; their first column is a group."""
        return self._table.held_ids(first=1)

    def sizes(self) -> dict[str, int]:
        """Whether there are patterns without variables; the number of instances."""
        ground = bool(self._layout.full[0].any())
        return {"ground": int(ground), "instances": len(self._table)}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes + self._state.nbytes + self._root.nbytes
