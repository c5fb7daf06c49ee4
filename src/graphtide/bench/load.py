"""Load generated data into a live graph, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.datasets.train import constant_texts, vertex_texts
from graphtide.datasets.train_kernel import VERTEX_0

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.datasets.train import TrainModel
    from graphtide.datasets.triples import IndexedTriples
    from graphtide.engine import LiveGraph


def load_blocks(graph: LiveGraph, blocks: Iterable[IndexedTriples]) -> int:
    """Insert blocks, each as one transaction; the number of triples.

    >>> from graphtide.datasets.lubm import Lubm
    >>> from graphtide.engine import LiveGraph
    >>> graph = LiveGraph()
    >>> load_blocks(graph, Lubm(1).indexed_blocks()), len(graph)
    (100543, 100543)
    """
    count = 0
    for number, block in enumerate(blocks):
        s, p, o = block.ids(graph.terms).T
        graph.apply_ids(s, p, o, tx=np.full(len(s), number, np.int64))
        count += len(block)
    return count


def load_model(graph: LiveGraph, model: TrainModel) -> int:
    """Insert a railway model, one transaction per block; the number of its vertices.

    >>> from graphtide.datasets.train import TrainModel
    >>> from graphtide.engine import LiveGraph
    >>> graph = LiveGraph()
    >>> load_model(graph, TrainModel(1, "inject")), len(graph)
    (741, 4089)
    """
    terms = graph.terms
    ids = np.zeros(2 * VERTEX_0, np.int32)
    ids[:VERTEX_0] = terms.encode_column(constant_texts())
    vertices = 0
    for number, block in enumerate(model.blocks()):
        first, end = VERTEX_0 + block.first_vertex, VERTEX_0 + block.last_vertex + 1
        if end > len(ids):
            ids = np.concatenate([ids, np.zeros(end, np.int32)])
        new = np.arange(block.first_vertex, block.last_vertex + 1)
        ids[first:end] = terms.encode_column(vertex_texts(new))
        s, p, o = ids[block.triples].T
        graph.apply_ids(s, p, o, tx=np.full(len(s), number, np.int64))
        vertices = block.last_vertex
    return vertices
