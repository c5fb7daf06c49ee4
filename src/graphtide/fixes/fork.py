"""Fork: a private copy of a live graph, on which fixes are tried and taken back.

Nobody who watches the original can notice: the copy has quads, terms and queries of its own. It
costs a pass over the quads, once; each step on it then costs what its changes cost.
"""

from __future__ import annotations

import numpy as np

from graphtide.engine import LiveGraph
from graphtide.errors import GraphtideError


def fork(graph: LiveGraph) -> LiveGraph:
    """A graph with the same quads under the same ids, without windows and standing queries.

    >>> graph = LiveGraph()
    >>> graph.insert("<ex:a>", "<ex:p>", 1)
    >>> copy = fork(graph)
    >>> copy.insert("<ex:a>", "<ex:p>", 2)
    >>> len(graph), len(copy)
    (1, 2)
    """
    if graph.storage != "all":
        raise GraphtideError(
            "this graph does not keep all its quads, so there is nothing to try fixes on",
            hint='use LiveGraph(store="all")',
        )
    quads = graph.quad_ids()
    copy = LiveGraph(default_graph=graph.default_graph, tick_ms=graph.tick_ms)
    # Terms are numbered in the order they come: in order of their ids they get the same ones.
    ids = np.arange(1, len(graph.terms) + 1, dtype=np.int32)
    copy.terms.encode_column(graph.terms.decode_column(ids))
    s, p, o, g = quads.T
    copy.apply_ids(s, p, o, g, tx=np.zeros(len(quads), np.int64))
    copy.clock = graph.clock
    return copy
