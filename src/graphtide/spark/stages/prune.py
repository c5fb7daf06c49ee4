"""Prune: Spark itself drops what no query can match, before anything is shuffled.

Terms may be N-Triples texts or structs; from here on they are texts.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import IntegralType, NullType, StringType, StructType

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.spark.job import JobSpec


NEEDED = ("time", "tx", "diff", "s", "p", "o")

REPORT = {
    "reason": "string",
    "file": "string",
    "line": "bigint",
    "column": "bigint",
    "text": "string",
}
"""The columns in which the source of change logs reports rejected input, with their types."""


FILE_ID = "graphtide_file_id"
"""The column of plain changes that `_file_id` makes."""


def prune(changes: DataFrame, job: JobSpec) -> DataFrame:
    """The changes, without the terms of those that no pattern can match (not `relevant`).

    Their times stay: they end earlier transactions.
    """
    missing = [name for name in NEEDED if name not in changes.columns]
    if missing:
        raise GraphtideError(
            f"the changes have no column {', '.join(missing)}",
            hint=f"they need {', '.join(NEEDED)}, and may have g (graph), seq (order), stream "
            "and shard (a part of the source that is in order)",
        )
    numbers = ["time", "tx", "diff", *(["seq"] if "seq" in changes.columns else [])]
    texts = changes.select(
        *(whole_number(changes, name).alias(name) for name in numbers),
        *(term_text(changes, name).alias(name) for name in "spo"),
        *graph_and_stream(changes, job.stream_names),
        *_shard(changes),
        *_file_id(changes),
        *_report(changes),
    )
    matched = reduce(lambda a, b: a | b, _conditions(job), f.lit(False))
    stamped = reduce(lambda a, b: a & b, (f.col(name).isNotNull() for name in numbers))
    # What lacks a term or a number is rejected later, with a reason.
    relevant = f.coalesce(matched, f.lit(True)) | ~stamped
    return texts.select(
        *numbers,
        relevant.alias("relevant"),
        *(f.when(relevant, f.col(name)).alias(name) for name in "spog"),
        *(["stream"] if job.has_streams else []),
        *(name for name in ("shard", "file_id") if name in texts.columns),
        *(name for name in REPORT if name in texts.columns),
    )


def _report(changes: DataFrame) -> list[Column]:
    """The columns of rejected input, if there are all of them."""
    if not set(REPORT) <= set(changes.columns):
        return []
    return [f.col(f"`{name}`").cast(kind).alias(name) for name, kind in REPORT.items()]


def plain_changes(changes: DataFrame, job: JobSpec) -> DataFrame:
    """Changes with all columns that there may be, as texts and whole numbers."""
    seq = whole_number(changes, "seq") if "seq" in changes.columns else f.lit(0).cast("bigint")
    return changes.select(
        *(whole_number(changes, name).alias(name) for name in ("time", "tx", "diff")),
        seq.alias("seq"),
        *(term_text(changes, name).alias(name) for name in "spo"),
        *graph_and_stream(changes, job.stream_names),
        *_shard(changes),
        *(column.alias(FILE_ID) for column in _file_id(changes)),
        *_report(changes),
    )


def _shard(changes: DataFrame) -> list[Column]:
    """The column of the source's shards as texts, if there is one."""
    if "shard" not in changes.columns:
        return []
    kind = changes.schema["shard"].dataType
    if not isinstance(kind, (IntegralType, StringType, NullType)):
        raise GraphtideError(
            f"column shard is {kind.simpleString()}",
            hint="it is a text or a whole number, as the partition of Kafka",
        )
    return [f.col("shard").cast("string").alias("shard")]


def _file_id(changes: DataFrame) -> list[Column]:
    """A number for the file and block of a row, where Spark knows it and no `seq` orders rows."""
    if FILE_ID in changes.columns:
        return [f.coalesce(FILE_ID, f.lit(0)).alias("file_id")]
    if "seq" in changes.columns:
        return []
    place = f.xxhash64("_metadata.file_path", "_metadata.file_block_start").alias("file_id")
    try:
        _ = changes.select(place).schema
    except AnalysisException:
        return []
    return [place]


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


def _conditions(job: JobSpec) -> Iterator[Column]:
    """Conditions of which every quad or event that some query can match fulfils one."""
    for stream, grids in job.routes.items():
        patterns = {leaf.pattern for grid in grids for leaf in grid.leaves}
        here = f.col("stream").isNull() if stream is None else f.col("stream").eqNullSafe(stream)
        yield from (here & could_match(pattern) for pattern in patterns)
    for _, type_ in job.program.graph_types if job.program else ():
        of_stream = f.col("stream").isNotNull()
        yield from (of_stream & could_match(pattern) for pattern in type_.pattern)


def whole_number(changes: DataFrame, name: str) -> Column:
    """A column as integers; a text that is none becomes null, to be rejected later."""
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


FIELDS = ("kind", "value", "datatype", "language")

_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"))


def term_text(changes: DataFrame, name: str) -> Column:
    """A column of terms as N-Triples text, by Spark's own functions.

    A struct has the fields `kind` (`iri` or `uri`, `blank` or `bnode`, `literal`), `value`, and for
    literals perhaps `datatype` (an IRI) and `language`. Another kind, or no value, gives null.
    """
    column, kind = f.col(f"`{name}`"), changes.schema[name].dataType
    if isinstance(kind, (StringType, NullType)):
        return column.cast("string")
    if isinstance(kind, StructType) and {"kind", "value"} <= set(kind.names):
        return struct_text(column, kind.names)
    raise GraphtideError(
        f"column {name} is {kind.simpleString()}, not terms",
        hint=f"give N-Triples text, or a struct of {', '.join(FIELDS)}",
    )


def struct_text(term: Column, fields: list[str]) -> Column:
    """The N-Triples text of a struct with some of `FIELDS`."""
    kind, value = f.lower(term["kind"]), term["value"]
    none = f.lit(None).cast("string")
    datatype, language = (
        f.nullif(term[name], f.lit("")) if name in fields else none for name in FIELDS[2:]
    )
    suffix = f.coalesce(
        f.concat(f.lit("@"), language), f.concat(f.lit("^^<"), datatype, f.lit(">")), f.lit("")
    )
    literal = f.concat(f.lit('"'), _escaped(value), f.lit('"'), suffix)
    return (
        f.when(kind.isin("iri", "uri"), f.concat(f.lit("<"), value, f.lit(">")))
        .when(kind.isin("blank", "bnode"), f.concat(f.lit("_:"), value))
        .when(kind == "literal", literal)
    )


def _escaped(text: Column) -> Column:
    for char, escape in _ESCAPES:
        text = f.replace(text, f.lit(char), f.lit(escape))
    return text
