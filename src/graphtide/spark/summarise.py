"""Summarise: what no query can match is dropped by Spark itself, before anything is shuffled."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode
from pyspark.sql import functions as f
from pyspark.sql.types import IntegralType, NullType, StringType

from graphtide.errors import GraphtideError
from graphtide.spark.term_columns import term_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
            hint=f"they need {', '.join(NEEDED)}, and may have g (graph), seq (order) and stream",
        )
    numbers = ["time", "tx", "diff", *(["seq"] if "seq" in changes.columns else [])]
    texts = changes.select(
        *(whole_number(changes, name).alias(name) for name in numbers),
        *(term_text(changes, name).alias(name) for name in "spo"),
        *graph_and_stream(changes, task.stream_names),
    )
    matched = reduce(lambda a, b: a | b, _conditions(task), f.lit(False))
    stamped = reduce(lambda a, b: a & b, (f.col(name).isNotNull() for name in numbers))
    # What lacks a term or a number goes on, to be set aside with a reason.
    wanted = f.coalesce(matched, f.lit(True)) | ~stamped
    return texts.select(
        *numbers,
        wanted.alias("wanted"),
        *(f.when(wanted, f.col(name)).alias(name) for name in "spog"),
        *(["stream"] if task.has_streams else []),
    )


def plain_changes(changes: DataFrame, task: Task) -> DataFrame:
    """Changes with all columns that there may be, as texts and whole numbers."""
    seq = whole_number(changes, "seq") if "seq" in changes.columns else f.lit(0).cast("bigint")
    return changes.select(
        *(whole_number(changes, name).alias(name) for name in ("time", "tx", "diff")),
        seq.alias("seq"),
        *(term_text(changes, name).alias(name) for name in "spo"),
        *graph_and_stream(changes, task.stream_names),
    )


def graph_and_stream(changes: DataFrame, streams: Sequence[str]) -> tuple[Column, Column]:
    """The columns `g` and `stream`, an IRI. Without the latter, streams are named as graphs."""
    none = f.lit(None).cast("string")
    graph = term_text(changes, "g") if "g" in changes.columns else none
    if "stream" in changes.columns:
        text = f.nullif(term_text(changes, "stream"), f.lit(""))
        stream = f.coalesce(f.nullif(f.regexp_extract(text, "^<(.*)>$", 1), f.lit("")), text)
        return graph.alias("g"), stream.alias("stream")
    names = [f"<{stream}>" for stream in streams]
    of_stream = f.coalesce(graph.isin(names), f.lit(False)) if names else f.lit(False)
    stream = f.when(of_stream, f.regexp_extract(graph, "^<(.*)>$", 1))
    return f.when(~of_stream, graph).alias("g"), stream.alias("stream")


def _conditions(task: Task) -> Iterator[Column]:
    """Conditions of which every quad or event that some query can match fulfils one."""
    for stream, grids in task.routes.items():
        patterns = {leaf.pattern for grid in grids for leaf in grid.leaves}
        here = f.col("stream").isNull() if stream is None else f.col("stream").eqNullSafe(stream)
        yield from (here & could_match(pattern) for pattern in patterns)
    for _, type_ in task.reaction.graph_types if task.reaction else ():
        of_stream = f.col("stream").isNotNull()
        yield from (of_stream & could_match(pattern) for pattern in type_.pattern)


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
