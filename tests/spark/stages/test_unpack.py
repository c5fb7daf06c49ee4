"""Deltas of several queries as maps, compared with what each message says."""

from random import Random

import numpy as np
import pyarrow as pa

from graphtide.spark.job import JobSpec
from graphtide.spark.stages.unpack import unpack_deltas
from graphtide.spark.state import messages as msg

QUERIES = {
    "two": "SELECT ?x ?y { ?x <ex:p> ?z OPTIONAL { ?z <ex:q> ?y } }",
    "none": "SELECT * { <ex:a> <ex:p> <ex:b> }",
    "one": "SELECT ?z { ?z <ex:q> <ex:b> }",
}
NAMES = {"two": ["x", "y"], "none": [], "one": ["z"]}


def messages(rng, query, count):
    """Deltas of a query with random values, some of them unbound."""
    texts, width = msg.TextIds(), len(list(NAMES.values())[query])
    values = [[rng.choice(["<ex:a>", '"b"', None]) for _ in range(width)] for _ in range(count)]
    flat = texts.encode_column(pa.array([v for row in values for v in row], pa.string()))
    times, diffs = (np.array([rng.randrange(1, 9) for _ in range(count)]) for _ in range(2))
    ids = flat.reshape(count, width)
    return msg.delta_messages(query, (times, times), diffs, ids, texts), values


def test_rows_of_several_queries_are_maps_of_what_is_bound():
    rng, job = Random(3), JobSpec(tuple(QUERIES.items()), 2)
    for _ in range(20):
        parts = [(query, *messages(rng, query, rng.randrange(4))) for query in (0, 1, 2, 0)]
        table = pa.concat_tables([part for _, part, _ in parts])
        row = msg.StageRow(0, 0, 0, 0, 0, msg.to_chunk(table))
        batches = unpack_deltas(msg.stage_rows([row]).to_batches(), job, single=False)
        rows = [each for batch in batches for each in batch.to_pylist()]
        expected = [
            (list(NAMES)[query], {n: v for n, v in zip(names, line, strict=True) if v is not None})
            for query, _, values in parts
            for names in [list(NAMES.values())[query]]
            for line in values
        ]
        assert [(each["query"], dict(each["row"])) for each in rows] == expected
        assert [each["diff"] for each in rows] == table["diff"].to_pylist()
