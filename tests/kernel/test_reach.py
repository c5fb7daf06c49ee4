"""The transitive closure kernel against its twin, and the room that it takes."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from graphtide.kernel import JIT
from graphtide.kernel.batch import DIFF, TX, empty_batch, make_batch
from graphtide.kernel.reach.step import ReachKernel
from graphtide.kernel.twin.reach import ReachKernel as Twin

pytestmark = pytest.mark.skipif(not JIT, reason="compares compiled code with its twin")


def total(batch):
    """How often each row comes or goes in each transaction."""
    found: Counter = Counter()
    for tx, diff, *row in batch.tolist():
        found[tx, *row] += diff
    return {row: diff for row, diff in found.items() if diff}


class Life:
    """Random changes of a small graph, or of two, and of what is demanded."""

    def __init__(self, seed, width, *, every):
        self.chance = random.Random(seed)
        self.width, self.every = width, every
        self.nodes = self.chance.choice((3, 6, 12))
        self.edges: set[tuple] = set()
        self.demand: Counter = Counter()
        self.tx = 0

    def graph(self):
        return (self.chance.randrange(1, 3),) if self.width == 3 else ()

    def edge(self):
        if self.edges and self.chance.random() < 0.4:
            edge = self.chance.choice(sorted(self.edges))
        else:
            edge = (*(self.chance.randrange(1, self.nodes) for _ in "ab"), *self.graph())
        diff = -1 if edge in self.edges else 1
        self.edges ^= {edge}
        return (self.tx, diff, *edge)

    def source(self):
        source = (self.chance.randrange(1, self.nodes), *self.graph())
        held = self.demand[source]
        drop = held and self.chance.random() < 0.6
        diff = -self.chance.randrange(1, held + 1) if drop else self.chance.randrange(1, 3)
        self.demand[source] += diff
        return (self.tx, diff, *source)

    def batch(self):
        """A few transactions; sources may come and go in the middle of one."""
        edges, sources = [], []
        for _ in range(self.chance.randrange(1, 4)):
            edges += [self.edge() for _ in range(self.chance.choice((0, 1, 1, 2, 8)))]
            if not self.every:
                sources += [self.source() for _ in range(self.chance.choice((0, 1, 3)))]
            self.tx += 1
        return make_batch(edges, self.width), make_batch(sources, self.width - 1)


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_kernel_equals_twin(seed, width, every):
    life = Life(seed, width, every=every)
    kernel, twin = ReachKernel(width, every=every), Twin(width, every=every)
    for _ in range(30):
        batches = life.batch()
        found = kernel.step(*batches)
        assert total(found) == total(twin.step(*batches))
        assert (np.diff(found[:, TX]) >= 0).all(), "in the order of transactions"
        assert kernel.sizes() == twin.sizes()
    held = {int(each) for ids in kernel.held_ids() for each in ids.ravel()} - {0}
    assert held == {int(each) for ids in twin.held_ids() for each in ids.ravel()}


def chain(length):
    nodes = np.arange(1, length + 1, dtype=np.int32)
    edges = np.zeros((length, 4), np.int32)
    edges[:, DIFF], edges[:, 2], edges[:, 3] = 1, nodes, nodes + 1
    return edges


def test_all_pairs_of_a_chain_take_at_most_16_bytes_each():
    kernel = ReachKernel(2, every=True)
    edges = chain(1000)
    assert len(kernel.step(edges)) == 1000 * 1001 // 2
    assert kernel.nbytes <= 16 * kernel.sizes()["pairs"]
    middle = edges[500:501].copy()
    middle[:, DIFF] = -1
    lost = kernel.step(middle)
    assert len(lost) == 501 * 500
    assert (lost[:, DIFF] == -1).all()
    assert kernel.nbytes <= 17 * kernel.sizes()["pairs"]


def test_a_source_that_is_no_longer_demanded_is_dropped():
    kernel = ReachKernel(2)
    none, source = empty_batch(2), make_batch([(0, 2, 1)], 1)
    assert len(kernel.step(chain(50), source)) == 50
    one_less, dropped = (make_batch([(0, -1, 1)], 1) for _ in range(2))
    assert len(kernel.step(none, one_less)) == 0
    assert total(kernel.step(none, dropped)) == {(0, 1, n): -1 for n in range(2, 52)}
    assert kernel.sizes() == {"edges": 50, "pairs": 0}


def test_edges_that_are_there_and_edges_that_are_not():
    kernel = ReachKernel(2, every=True)
    edge = make_batch([(0, 1, 1, 2)], 2)
    gone = make_batch([(0, -1, 1, 2)], 2)
    assert [len(kernel.step(each)) for each in (gone, edge, edge, gone, gone)] == [0, 1, 0, 1, 0]
