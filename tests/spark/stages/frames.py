"""Streams of changes as files for Spark, and rows from Spark as `in_process` gives them."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from spark.stages.splits import without_zeros

from graphtide.spark.job import JobSpec

SCHEMA = "time long, tx long, diff int, s string, p string, o string, g string"


def net_maps(rows, queries):
    """Collected rows of many queries."""
    order = {
        name: [v.name for v in each.query.variables[: each.shown]]
        for name, each in zip(queries, job_of(queries).partition_queries, strict=True)
    }
    net = Counter()
    for row in rows:
        values = tuple(row.row.get(name) for name in order[row.query])
        net[row.query, row.time, row.tx, values] += row.diff
    return without_zeros(net)


def job_of(queries):
    return JobSpec(tuple(queries.items()), 4)


def net_columns(rows):
    """Collected rows of one query."""
    net = Counter()
    for row in rows:
        net[row[0], row[1], row[2], tuple(row[4:])] += row[3]
    return without_zeros(net)


def write_files(folder, rows, seed=1, sizes=(5, 30)):
    """The rows in small Parquet files whose times tell their order."""
    folder.mkdir(exist_ok=True)
    before = len(list(folder.iterdir()))
    rng, at = Random(seed), 0
    names = ["time", "tx", "diff", "s", "p", "o", "g"]
    kinds = [pa.int64(), pa.int64(), pa.int32(), *[pa.string()] * 4]
    while at < len(rows):
        part = rows[at : at + rng.randint(*sizes)]
        at += len(part)
        columns = [
            pa.array(list(c), k) for c, k in zip(zip(*part, strict=True), kinds, strict=True)
        ]
        path = folder / f"{before:05d}.parquet"
        pq.write_table(pa.table(columns, names=names), path)
        os.utime(path, (10**9 + before, 10**9 + before))
        before += 1


def read_files(spark, folder):
    """The files as a stream, one in each micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
