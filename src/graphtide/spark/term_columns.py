"""Term columns: terms as N-Triples text, whether the user has texts or structs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import NullType, StringType, StructType

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
        return _struct_text(column, kind.names)
    raise GraphtideError(
        f"column {name} is {kind.simpleString()}, not terms",
        hint=f"give N-Triples text, or a struct of {', '.join(FIELDS)}",
    )


def _struct_text(term: Column, fields: list[str]) -> Column:
    kind, value = f.lower(term["kind"]), term["value"]
    none = f.lit(None).cast("string")
    datatype, language = (
        f.nullif(term[name], f.lit("")) if name in fields else none for name in FIELDS[2:]
    )
    mark = f.coalesce(
        f.concat(f.lit("@"), language), f.concat(f.lit("^^<"), datatype, f.lit(">")), f.lit("")
    )
    literal = f.concat(f.lit('"'), _escaped(value), f.lit('"'), mark)
    return (
        f.when(kind.isin("iri", "uri"), f.concat(f.lit("<"), value, f.lit(">")))
        .when(kind.isin("blank", "bnode"), f.concat(f.lit("_:"), value))
        .when(kind == "literal", literal)
    )


def _escaped(text: Column) -> Column:
    for char, escape in _ESCAPES:
        text = f.replace(text, f.lit(char), f.lit(escape))
    return text
