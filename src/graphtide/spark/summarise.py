"""Summarise: what no query can match is dropped by Spark itself, before anything is shuffled."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from graphtide.errors import GraphtideError
from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.spark.task import Task

NEEDED = ("time", "tx", "diff", "s", "p", "o")


def summarise(changes: DataFrame, task: Task) -> DataFrame:
    """The changes with the terms of those that no pattern can match blanked out.

    Their times stay: they tell that earlier transactions are complete.
    """
    missing = [name for name in NEEDED if name not in changes.columns]
    if missing:
        raise GraphtideError(
            f"the changes have no column {', '.join(missing)}",
            hint=f"they need {', '.join(NEEDED)}, and may have g (graph) and seq (order)",
        )
    patterns = {leaf.pattern for query in task.cell_queries for leaf in query.grid.leaves}
    matched = reduce(lambda a, b: a | b, map(could_match, patterns), f.lit(False))
    # A missing term makes the condition null: such a change goes on, to be set aside with a reason.
    wanted = f.coalesce(matched, f.lit(True))
    graph = f.col("g") if "g" in changes.columns else f.lit(None).cast("string")
    columns = [
        f.col("time").cast("bigint").alias("time"),
        f.col("tx").cast("bigint").alias("tx"),
        f.col("diff").cast("int").alias("diff"),
        wanted.alias("wanted"),
        *(f.when(wanted, f.col(name)).alias(name) for name in ("s", "p", "o")),
        f.when(wanted, graph).alias("g"),
        *([f.col("seq").cast("bigint")] if "seq" in changes.columns else []),
    ]
    return changes.select(*columns)


def could_match(pattern: TriplePattern) -> Column:
    """A condition that every quad of the pattern fulfils, decided by the texts of its IRIs alone.

    A text with a backslash may spell any IRI, so it always passes.
    """
    positions = (pattern.subject, pattern.predicate, pattern.object)
    parts = [
        (f.col(name) == str(position)) | f.col(name).contains("\\")
        for name, position in zip("spo", positions, strict=True)
        if isinstance(position, NamedNode)
    ]
    return reduce(lambda a, b: a & b, parts, f.lit(True))
