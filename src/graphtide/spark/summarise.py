"""Summarise: what no query can match is dropped by Spark itself, before anything is shuffled."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import IntegralType, NullType, StringType

from graphtide.errors import GraphtideError
from graphtide.rdf.term import NamedNode
from graphtide.spark.term_columns import term_text

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
    numbers = ["time", "tx", "diff", *(["seq"] if "seq" in changes.columns else [])]
    graph = term_text(changes, "g") if "g" in changes.columns else f.lit(None).cast("string")
    texts = changes.select(
        *(whole_number(changes, name).alias(name) for name in numbers),
        *(term_text(changes, name).alias(name) for name in "spo"),
        graph.alias("g"),
    )
    patterns = {leaf.pattern for query in task.cell_queries for leaf in query.grid.leaves}
    matched = reduce(lambda a, b: a | b, map(could_match, patterns), f.lit(False))
    stamped = reduce(lambda a, b: a & b, (f.col(name).isNotNull() for name in numbers))
    # What lacks a term or a number goes on, to be set aside with a reason.
    wanted = f.coalesce(matched, f.lit(True)) | ~stamped
    return texts.select(
        *numbers,
        wanted.alias("wanted"),
        *(f.when(wanted, f.col(name)).alias(name) for name in "spog"),
    )


def whole_number(changes: DataFrame, name: str) -> Column:
    """A column as integers; a text that is none becomes null, to be set aside later."""
    kind = changes.schema[name].dataType
    if not isinstance(kind, (IntegralType, StringType, NullType)):
        raise GraphtideError(
            f"column {name} is {kind.simpleString()}, not whole numbers",
            hint="cast it first; a timestamp with unix_micros(...)",
        )
    return f.col(name).try_cast("int" if name == "diff" else "bigint")


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
