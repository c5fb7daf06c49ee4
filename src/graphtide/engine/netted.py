"""Netted: a batch with the copies of each row in a transaction added up."""

from __future__ import annotations

import numpy as np

from graphtide.kernel.batch import DIFF, TX, VALUES, Ints


def netted(batch: Ints) -> Ints:
    """Each row once per transaction, sorted by transaction; none whose diffs cancel.

    Within a transaction a node may take a row back before it passes it on. Whoever keeps rows one
    by one wants what is left of that.

    >>> from graphtide.kernel.batch import make_batch
    >>> netted(make_batch([(3, -1, 7), (3, 1, 7), (3, 1, 8)], 1)).tolist()
    [[3, 1, 8]]
    """
    if len(batch) < 2:
        return batch
    rows = np.column_stack([batch[:, TX], batch[:, VALUES:]])
    rows, places = np.unique(rows, axis=0, return_inverse=True)
    diffs = np.bincount(places.reshape(-1), batch[:, DIFF]).astype(np.int32)
    left = diffs != 0
    net: Ints = np.insert(rows[left], DIFF, diffs[left], axis=1)
    return net
