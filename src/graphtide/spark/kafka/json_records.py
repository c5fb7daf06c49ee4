r"""Records of JSON: a change, or all changes of a transaction. Spark itself parses them.

    {"time": 17, "tx": 3, "diff": 1, "s": "<ex:a>", "p": "<ex:p>", "o": "\"x\"@en", "g": "<ex:g>"}
    {"time": 17, "tx": 3, "end": true}
    {"time": 18, "changes": [{"s": "<ex:a>", "p": "<ex:p>", "o": {"type": "uri", "value": "ex:b"}}]}

`docs/kafka.md` describes the fields.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from graphtide.spark.kafka.records import ROWS_PER_RECORD, change_rows, whole
from graphtide.spark.stages.prune import FIELDS, struct_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

# Everything is read as a text first: a field of another type must not make the others null.
_CHANGE: Final = "diff string, s string, p string, o string, g string"
_RECORD: Final = f"time string, tx string, end string, {_CHANGE}, changes array<struct<{_CHANGE}>>"
_LIST: Final = "array<struct<diff:string, s:string, p:string, o:string, g:string>>"
_TERM: Final = (
    "kind string, type string, value string, datatype string, language string, `xml:lang` string"
)
OPTIONS: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def json_changes(records: DataFrame) -> DataFrame:
    """The changes of records with places."""
    parsed = parsed_objects(records, _RECORD).withColumn("is_end", f.lower("json.end") == "true")
    bare = f.coalesce(f.col("json.s"), f.col("json.p"), f.col("json.o")).isNull()
    closes = f.col("is_end") | (whole(f.col("json.diff")) == 0)
    only_end = bare & f.coalesce(closes, f.lit(False))
    single = f.array(f.struct(*(f.col(f"json.{name}").alias(name) for name in ("diff", *"spog"))))
    listed = f.coalesce("json.changes", f.when(only_end, f.array().cast(_LIST)), single)
    # A record without tx is a transaction by itself, and so is a list unless it says otherwise.
    told = f.col("json.end").isNotNull()
    ended = f.when(told, f.col("is_end")).otherwise(
        f.col("json.tx").isNull() | f.col("json.changes").isNotNull() | only_end
    )
    numbers = {name: f.col(f"json.{name}") for name in ("time", "tx")}
    wrong_end = told & ~f.coalesce(f.lower("json.end").isin("true", "false"), f.lit(False))
    rows = parsed.select(
        "offset", "shard", "file", "text", ended.alias("ended"), listed.alias("listed"),
        *(f.coalesce(whole(text), f.col(name)).alias(name) for name, text in numbers.items()),
        first_reason(
            [
                (f.col("broken"), "not a JSON object with the fields of a change"),
                *(_no_number(name, text) for name, text in numbers.items()),
                (wrong_end, "end is neither true nor false"),
                (f.size(listed) >= ROWS_PER_RECORD, f"more than {ROWS_PER_RECORD} changes"),
            ]
        ).alias("reason"),
    )  # fmt: skip
    end = f.array(f.struct(f.lit("0").alias("diff"), *(f.lit(None).alias(name) for name in "spog")))
    changes = f.when(f.col("ended"), f.concat("listed", end)).otherwise(f.col("listed"))
    return with_terms(change_rows(rows.withColumn("changes", changes)))


def parsed_objects(records: DataFrame, fields: str) -> DataFrame:
    """Records with their JSON in a struct `json`, and with `broken` where it is none.

    In an array, text after the object is an error; Spark would ignore it.
    """
    schema = f"array_ array<struct<{fields}>>, broken_ string"
    wrapped = f.concat(f.lit('{"array_":['), f.col("text"), f.lit("]}"))
    options = {**OPTIONS, "columnNameOfCorruptRecord": "broken_"}
    found = records.withColumn("found", f.from_json(wrapped, schema, options))
    objects = f.col("found.array_")
    whole_object = (
        f.col("is_text") & f.col("found.broken_").isNull()
        & (f.size(objects) == 1) & objects[0].isNotNull()
    )  # fmt: skip
    return found.withColumn("broken", ~f.coalesce(whole_object, f.lit(False))).withColumn(
        "json", f.get(objects, f.lit(0))
    )


def first_reason(reasons: Sequence[tuple[Column, str | Column]]) -> Column:
    """The text of the first condition that holds, or null."""
    texts = (
        f.when(condition, f.lit(text) if isinstance(text, str) else text)
        for condition, text in reasons
    )
    return reduce(f.coalesce, texts)


def _no_number(name: str, text: Column) -> tuple[Column, Column]:
    said = f.concat(f.lit(f"{name} is not a whole number of 64 bits: "), text)
    return text.isNotNull() & whole(text).isNull(), said


def with_terms(rows: DataFrame) -> DataFrame:
    """Changes with whole numbers as diff, by default 1, and terms as N-Triples texts."""
    diff = whole(f.col("diff")).try_cast("int")
    inserts = f.col("diff").isNull() & f.col("reason").isNull()
    objects = {
        f"{name}_": f.when(f.col(name).startswith("{"), f.from_json(name, _TERM, OPTIONS))
        for name in "spog"
    }
    texts = {name: f.coalesce(_term_text(f.col(f"{name}_")), f.col(name)) for name in "spog"}
    columns = {"diff": f.when(inserts, f.lit(1)).otherwise(diff), **objects}
    return rows.withColumns(columns).withColumns(texts).drop(*objects)


def _term_text(found: Column) -> Column:
    """The N-Triples text of an object, whose fields are ours or those of SPARQL's results."""
    parts = (
        f.coalesce(found["kind"], found["type"]),
        found["value"],
        found["datatype"],
        f.coalesce(found["language"], found["xml:lang"]),
    )
    term = f.struct(*(part.alias(name) for part, name in zip(parts, FIELDS, strict=True)))
    return struct_text(term, list(FIELDS))
