"""Ways to cut a stream as Spark might, and what the in-process engine says of it."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa

from graphtide import LiveGraph
from graphtide.rdf.changes import ChangeBatch
from graphtide.spark.state.messages import TextIds, delta_messages
from oracles.partitions import PartitionRun, net_of

END = (2**62, 0, 0, None, None, None, None)
"""A row that ends all transactions."""


def of_shard(row, shard):
    """A row of the graph as one of a shard."""
    return (*row[:7], None, shard)


def three_partitions():
    """Three partitions of a source, of which the first is far ahead in every micro-batch."""
    rows = [(t, 0, 1, f"<ex:{t}>", "<ex:p>", "<ex:b>", None) for t in range(300)]
    parts = [[of_shard(row, f"{n}") for row in rows[n::3]] for n in range(3)]
    batches = [
        [parts[0][at : at + 20], parts[1][at // 2 : at // 2 + 10], parts[2][at // 4 : at // 4 + 5]]
        for at in range(0, 100, 20)
    ]
    batches += [[[], parts[1][50:75], parts[2][25:60]], [[], parts[1][75:], parts[2][60:]]]
    return rows, [*batches, [[of_shard(END, f"{n}") for n in range(3)]]]


def in_process(queries, rows):
    """Deltas by query, transaction and values: the in-process engine on the whole stream."""
    graph = LiveGraph()
    watches = [graph.watch(text, name=name) for name, text in queries.items()]
    graph.apply(ChangeBatch.of(rows))
    net = Counter()
    for watch in watches:
        for row in watch.rows():
            values = tuple(None if v is None else str(v) for v in row.row.values())
            net[watch.name, row.time, row.tx, values] += row.diff
    return without_zeros(net)


def deltas(*rows):
    """Delta messages from rows `query, time, tx, diff, values`."""
    texts, parts = TextIds(), []
    for query, time, tx, diff, values in rows:
        ids = texts.encode_column(pa.array(values, pa.string())).reshape(1, len(values))
        stamps = np.array([time]), np.array([tx])
        parts.append(delta_messages(query, stamps, np.array([diff]), ids, texts))
    return pa.concat_tables(parts)


def without_zeros(net):
    return Counter({key: count for key, count in net.items() if count})


def micro_batches(rows, rng: Random, most: int = 8):
    """The rows in micro-batches of tasks, in order, with empty ones in between."""
    batches, at = [], 0
    while at < len(rows):
        tasks = []
        for _ in range(rng.randint(1, 3)):
            size = rng.choice((0, 1, 2, rng.randint(1, most)))
            tasks.append(rows[at : at + size])
            at += size
        batches.append(tasks)
        if rng.random() < 0.1:
            batches.append([[]])
    return batches


def check_partitions(queries, rows, partitions: int, seed: int, **options):
    """Run the partitions on a random cut of the rows and compare with the in-process engine."""
    expected = in_process(queries, rows)
    rng = Random(seed)
    run = PartitionRun.of(queries, partitions, **options)
    out = [row for tasks in micro_batches([*rows, END], rng) for row in run.batch(tasks)]
    assert net_of(out) == expected, (queries, rows, partitions, seed)
    assert_net(out)
    assert run.rejected == []
    return out


def assert_net(out):
    """No row twice in one transaction, and none with diff 0. (0, 0) has the first answers too."""
    keys = [
        (row.query, row.time, row.tx, row.values) for row in out if (row.time, row.tx) != (0, 0)
    ]
    assert len(keys) == len(set(keys))
    assert all(row.diff for row in out)
