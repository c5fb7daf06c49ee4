"""Load a model into a live graph: codes become ids of terms, and blocks are applied whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.bench.train.vocabulary import VERTEX_0, constant_texts, vertex_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.bench.train.model import Block, Model
    from graphtide.engine.live_graph import LiveGraph


def load_model(
    graph: LiveGraph, model: Model, *, progress: Callable[[Block], None] = lambda _: None
) -> int:
    """Insert a model, one transaction per block; the number of its vertices.

    >>> from graphtide.bench.train.model import Model
    >>> from graphtide.engine.live_graph import LiveGraph
    >>> graph = LiveGraph()
    >>> load_model(graph, Model(1, "inject")), len(graph)
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
        progress(block)
    return vertices
