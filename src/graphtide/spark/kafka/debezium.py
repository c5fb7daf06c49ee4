"""Records of Debezium: rows of relational tables before and after a change. Spark parses them.

The triples of a row are those of its mapping. A change deletes the triples that only the row
before has, and inserts those that only the row after has. `docs/kafka.md` says where times and
transactions come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from graphtide.spark.kafka.json_records import first_reason, parsed_objects
from graphtide.spark.kafka.records import change_rows
from graphtide.spark.stages.prune import struct_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

    from graphtide.spark.kafka.mapping import ColumnMapping, IriTemplate, TableMapping

RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NO_VALUE: Final = "__debezium_unavailable_value"
"""What Debezium writes for a large value that has not changed."""

_FIELDS: Final = {
    "op": "string",
    "ts_ms": "bigint",
    "before": "map<string, string>",
    "after": "map<string, string>",
    "source": "struct<db string, schema string, table string, ts_ms bigint, sequence string, "
    "gtid string>",
    "status": "string",
    "id": "string",
}
_ENVELOPE: Final = ", ".join(f"{name} {kind}" for name, kind in _FIELDS.items())
_QUAD: Final = "s:string, p:string, o:string, g:string"
_QUADS: Final = f"array<struct<{_QUAD}>>"
_CHANGES: Final = f"array<struct<diff:int, {_QUAD}>>"
_ROW_OPS: Final = {"before": ("u", "d"), "after": ("c", "r", "u")}


def debezium_changes(
    records: DataFrame, tables: Mapping[str, TableMapping], tick_ms: int
) -> DataFrame:
    """The changes of records with places."""
    found = parsed_objects(records, f"{_ENVELOPE}, payload struct<{_ENVELOPE}>")
    # With schemas.enable the envelope is a field beside its schema.
    inner = f.when(f.col("json.payload").isNotNull(), f.col("json.payload")).otherwise(
        f.struct(*(f.col(f"json.{name}").alias(name) for name in _FIELDS))
    )
    events = found.withColumn("event", inner).select(
        "offset", "shard", "file", "text", "broken", "event", _time(tick_ms).alias("time"),
        transaction().alias("told"), f.coalesce(transaction(), _end(), f.col("tx")).alias("tx"),
        _table_name(tables).alias("table"),
    )  # fmt: skip
    rows = events.withColumns({row: _quads(tables, row) for row in _ROW_OPS})
    rows = rows.withColumn("reason", first_reason(_reasons()))
    # What has no transaction of its own, and an END marker, ends one.
    alone = f.col("event.op").isNotNull() & f.col("told").isNull()
    end = f.array(f.struct(f.lit(0).alias("diff"), *(f.lit(None).alias(name) for name in "spog")))
    ends = f.when(alone | _end().isNotNull(), end.cast(_CHANGES)).otherwise(
        f.array().cast(_CHANGES)
    )
    changes = f.concat(_only_in("before", "after", -1), _only_in("after", "before", 1), ends)
    return change_rows(rows.withColumn("changes", changes))


def _time(tick_ms: int) -> Column:
    """The time of the change in the database; else that of the record."""
    milliseconds = f.coalesce("event.source.ts_ms", "event.ts_ms")
    ticks = f.floor(milliseconds / f.lit(tick_ms)).cast("bigint")
    return f.coalesce(ticks, f.col("time"))


def transaction() -> Column:
    """A number that the changes of a transaction share, and that grows with each commit.

    PostgreSQL: the position of the commit before it, first of `source.sequence`. MySQL: the last
    number of `source.gtid`.
    """
    sequence = f.from_json("event.source.sequence", "array<string>")
    before = f.get(sequence, f.lit(0)).try_cast("bigint")
    return f.coalesce(before, _last_number(f.col("event.source.gtid"), r"^[0-9A-Fa-f-]{36}:(\d+)$"))


def _end() -> Column:
    """The last number of the transaction that an END marker names.

    The id of PostgreSQL ends with the position of the commit, from which the next one is numbered.
    """
    ended = f.when(f.col("event.status") == "END", f.col("event.id"))
    postgres = _last_number(ended, r"^\d+:(\d+)$") - 1
    return f.coalesce(postgres, _last_number(ended, r"^[0-9A-Fa-f-]{36}:(\d+)$"))


def _last_number(text: Column, pattern: str) -> Column:
    return f.regexp_extract(text, pattern, 1).try_cast("bigint")


def _table_name(tables: Mapping[str, TableMapping]) -> Column:
    """The table of the mapping that a change is of: by its name, or with its schema or database."""
    parts = [f.col(f"event.source.{name}") for name in ("db", "schema", "table")]
    spelled = [
        parts[2],
        f.concat_ws(".", parts[1], parts[2]),
        f.concat_ws(".", parts[0], parts[2]),
        f.concat_ws(".", *parts),
    ]
    names = [f.when(text.isin(*tables), text) for text in reversed(spelled)]
    return f.coalesce(*names)


def _reasons() -> list[tuple[Column, str | Column]]:
    op, marker = f.col("event.op"), f.col("event.status").isin("BEGIN", "END")
    of_table = op.isin("c", "r", "u", "d")
    lacks = {row: op.isin(*ops) & f.col(f"event.{row}").isNull() for row, ops in _ROW_OPS.items()}
    nameless = f.col("before").isNull() | f.col("after").isNull()
    no_table = f.concat(
        f.lit("the mapping has no table "), f.coalesce("event.source.table", f.lit("without name"))
    )
    return [
        (f.col("broken"), "not a change event of Debezium in JSON"),
        (op.isNull() & ~f.coalesce(marker, f.lit(False)), "neither op nor status BEGIN or END"),
        (op.isNotNull() & ~of_table, f.concat(f.lit("op is not c, r, u or d: "), op)),
        (of_table & f.col("table").isNull(), no_table),
        (lacks["before"], "no row before the change: PostgreSQL needs REPLICA IDENTITY FULL"),
        (lacks["after"], "no row after the change"),
        (of_table & nameless, "a column of the subject is null or missing"),
    ]


# --- triples ---


def _only_in(row: str, other: str, diff: int) -> Column:
    """The changes from triples that a row has and the other has not."""
    nothing = f.array().cast(_QUADS)
    quads = f.array_except(f.coalesce(row, nothing), f.coalesce(other, nothing))
    return f.transform(
        quads,
        lambda quad: f.struct(f.lit(diff).alias("diff"), *(quad[n].alias(n) for n in "spog")),
    )


def _quads(tables: Mapping[str, TableMapping], row: str) -> Column:
    """The triples of the row before or after a change; null where they cannot be told."""
    found = f.lit(None).cast(_QUADS)
    for name, table in tables.items():
        found = f.when(f.col("table") == name, _quads_of(table, row)).otherwise(found)
    applies = f.col("event.op").isin(*_ROW_OPS[row])
    return f.when(applies, found).otherwise(f.array().cast(_QUADS))


def _quads_of(table: TableMapping, row: str) -> Column:
    """The triples of a row; null if there is no row, or none with a subject."""

    def value(column: str) -> Column:
        found = f.col(f"event.{row}").getItem(column)
        return f.when(found == NO_VALUE, f.col("event.before").getItem(column)).otherwise(found)

    def iri(template: IriTemplate) -> Column:
        parts = [f.lit(f"<{template.constants[0]}")]
        for column, constant in zip(template.columns, template.constants[1:], strict=True):
            parts += [encoded(value(column)), f.lit(constant)]
        return f.concat(*parts, f.lit(">"))

    def pairs() -> Iterator[tuple[str, Column]]:
        if table.type is not None:
            yield RDF_TYPE, f.lit(f"<{table.type}>")
        for name, column in table.columns.items():
            object_ = iri(column.iri) if column.iri else _literal(value(name), column)
            yield f"<{column.predicate}>", object_

    subject = iri(table.subject)
    graph = iri(table.graph) if table.graph else f.lit(None).cast("string")
    quads = f.array(
        *(
            f.struct(subject.alias("s"), f.lit(p).alias("p"), o.alias("o"), graph.alias("g"))
            for p, o in pairs()
        )
    )
    placed = f.lit(True) if table.graph is None else graph.isNotNull()
    there = f.filter(quads.cast(_QUADS), lambda quad: quad["o"].isNotNull() & placed)
    return f.when(subject.isNotNull(), there)


def encoded(value: Column) -> Column:
    """A value inside an IRI: all but letters, digits and `-._~` is percent-encoded, as UTF-8."""
    text = f.url_encode(value)
    for wrong, right in (("+", "%20"), ("*", "%2A"), ("%7E", "~")):
        text = f.replace(text, f.lit(wrong), f.lit(right))
    return text


def _literal(value: Column, column: ColumnMapping) -> Column:
    parts = {"value": value, "datatype": column.datatype, "language": column.language}
    columns = [
        (part if not isinstance(part, str | None) else f.lit(part).cast("string")).alias(name)
        for name, part in parts.items()
    ]
    literal = f.struct(f.lit("literal").alias("kind"), *columns)
    return f.when(value.isNotNull(), struct_text(literal, ["kind", *parts]))
