"""Memory of a rule: the arrays of the events that wait, as large as need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.rules.kernel.layout import FREE, NEWEST, Memory, Work

if TYPE_CHECKING:
    from graphtide.rules.kernel.layout import Plan

FEWEST = 16
LONG_AGO = -(1 << 62)


def make_memory(plan: Plan, places: int = FEWEST) -> Memory:
    """Room for a number of events, a power of two."""
    indexes = len(plan.keys)
    links = np.full((places, 1 + indexes), -1, np.int32)
    links[:-1, 0] = np.arange(1, places)
    meta = np.zeros(4, np.int64)
    meta[FREE], meta[NEWEST] = 0, LONG_AGO
    return Memory(
        cells=np.zeros((places, max(1, plan.variables)), np.int32),
        when=np.zeros((places, 4), np.int64),
        links=links,
        heads=np.full((indexes, places), -1, np.int32),
        tails=np.full((indexes, places), -1, np.int32),
        ends=np.full((len(plan.keeps), 2), -1, np.int32),
        meta=meta,
    )


def make_work(plan: Plan, variables: int, depth: int) -> Work:
    """Room for one match."""
    many = len(plan.keeps)
    return Work(
        binding=np.zeros(variables, np.int32),
        at=np.zeros(many, np.int32),
        span=np.zeros(2 * many, np.int64),
        who=np.zeros(2 * many, np.int64),
        stack=np.zeros(depth + 1, np.int32),
    )


def copied(memory: Memory) -> Memory:
    """The same, to come back to."""
    return Memory(
        cells=memory.cells.copy(),
        when=memory.when.copy(),
        links=memory.links.copy(),
        heads=memory.heads.copy(),
        tails=memory.tails.copy(),
        ends=memory.ends.copy(),
        meta=memory.meta.copy(),
    )
