"""Load the blocks of a generated dataset into a live graph."""

import numpy as np


def load_blocks(graph, blocks):
    """Insert blocks, each as one transaction; the number of triples."""
    count = 0
    for number, block in enumerate(blocks):
        s, p, o = block.ids(graph.terms).T
        graph.apply_ids(s, p, o, tx=np.full(len(s), number, np.int64))
        count += len(block)
    return count
