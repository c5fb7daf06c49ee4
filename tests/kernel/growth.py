"""Faults between any two lines of kernels that make room; run with `GRAPHTIDE_NO_JIT=1`.

Uncompiled loops check their indexes. After a fault a kernel may answer wrongly (its query is filled
again then), but writes to no place outside of its arrays.
"""

import sys

import numpy as np
from engine.injection import InjectedFault, LineFaults, after_fault, places

from graphtide.kernel.counts import Answer, DistinctKernel
from graphtide.kernel.groups import BOUND, LEAST, GroupTable
from graphtide.kernel.instances.operator import Instances
from graphtide.kernel.joins import JoinKernel, SemiJoinKernel
from graphtide.kernel.reach.step import ReachKernel
from graphtide.kernel.search import ahead, bulk
from graphtide.kernel.search.program import SearchProgram
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.kernel.sorted_rows import SortedRows


def rows(step, many, width):
    """A batch of rows that were not there before."""
    batch = np.ones((many, 2 + width), np.int32)
    batch[:, 0] = 0
    first = 1 + step * 1000 + np.arange(many)
    batch[:, 2:] = first[:, None] + np.arange(width)
    return batch


class Steps:
    """A kernel, and what a step of it is: each needs more room than the last."""

    def __init__(self, kernel, take, many=40):
        self.kernel, self._take, self._many = kernel, take, many

    def step(self, number):
        self._take(self.kernel, number, self._many << number)


def chain(step, many):
    """A path of edges, which continues that of the last step."""
    edges = rows(0, many, 2)
    first = 1 + sum(40 << n for n in range(step)) + np.arange(many)
    edges[:, 2], edges[:, 3] = first, first + 1
    return edges


def store_step(store, step, many):
    quads = np.zeros((many, 6), np.int32)
    quads[:, 1], quads[:, 3] = 1, 7 + step
    quads[:, [2, 4]] = rows(step, many, 2)[:, 2:]
    store.apply(quads)
    patterns = tuple((-1 - k, 7 + step, -2 - k, 0) for k in range(1 + step))
    store.install(SearchProgram(patterns, outputs=2 + step))
    quads[:, 4] += 1
    store.apply(quads[:20])


def group_step(table, step, many):
    batch = rows(step, many, 2)
    ids = 10 + int(batch.max())
    table.step(batch, np.full(ids, 15, np.int32), np.arange(ids, dtype=np.float64))
    table.rows(np.ones(10_000, np.int32))


def sorted_step(kernel, step, many):
    batch = rows(step, many, 2)
    ids = 10 + int(batch.max())
    kernel.reserve(batch)
    kernel.step(batch, 0, 31, np.full(ids, 31, np.int32), np.arange(ids, dtype=np.float64), np.nan)
    kernel.after(-1.0, 5)


KERNELS = {
    "answer": lambda: Steps(Answer(2), lambda k, n, many: k.step(rows(n, many, 2))),
    "distinct": lambda: Steps(DistinctKernel(2), lambda k, n, many: k.step(rows(n, many, 2))),
    "join": lambda: Steps(
        JoinKernel(2, 2, keys=[(1, 0)], outputs=[(0, -1), (1, 0), (-1, 1)]),
        lambda k, n, many: k.step(rows(n, many, 2), rows(n, many, 2)),
    ),
    "semijoin": lambda: Steps(
        SemiJoinKernel(2, columns=[1], negated=False),
        lambda k, n, many: k.step(rows(n, many, 2), rows(n, many, 1)),
    ),
    "instances": lambda: Steps(
        Instances([(0, 1), (1, 2)], [(1,), (0,), (2,)]),
        lambda k, n, many: k.step(rows(n, many, 2), rows(n, many, 2)),
    ),
    "reach": lambda: Steps(
        ReachKernel(2), lambda k, n, many: k.step(chain(n, many), rows(0, 3, 1)), 20
    ),
    "groups": lambda: Steps(
        GroupTable(
            np.array([2], np.int32),
            np.array([[BOUND, 3, 0, 0, 0, 0], [LEAST, 3, 8, 1, 0, 0]], np.int32),
        ),
        group_step,
    ),
    "sorted": lambda: Steps(SortedRows(2, 0, descending=False), sorted_step),
    "store": lambda: Steps(QuadStore(), store_step),
}

MODULES = ("kernel/",)


def check(name, most):
    """Steps after a fault in a step find all indexes inside of their arrays."""
    steps = KERNELS[name]()
    steps.step(0)
    with LineFaults(0, MODULES) as counted:
        steps.step(1)
    for at in places(counted.lines, most):
        steps = KERNELS[name]()
        steps.step(0)
        with after_fault(at):
            try:
                with LineFaults(at, MODULES):
                    steps.step(1)
            except InjectedFault:
                pass
            for number in (1, 2):
                steps.step(number)
    return counted.lines


if __name__ == "__main__":
    np.seterr(over="ignore")  # hashes are computed modulo 2^64
    for module in (ahead, bulk):
        module.prefetch = lambda *_: None  # which is machine code
    for name in sys.argv[1:] or KERNELS:
        print(name, check(name, 120), flush=True)
