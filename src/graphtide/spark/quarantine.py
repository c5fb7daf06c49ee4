"""Quarantine: input that was set aside, with its reason and its place.

What the source sets aside travels through the match with the changes, as a row that has no place
in the stream and whose object is the report. So one pass over the input yields both outputs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPORT: Final = ("reason", "file", "line", "column", "text")
_MARK: Final = "\x1e"

_FIELDS: list[pa.Field[Any]] = [
    pa.field("reason", pa.string()),
    pa.field("file", pa.string()),
    pa.field("line", pa.int64()),
    pa.field("column", pa.int64()),
    pa.field("text", pa.string()),
    pa.field("time", pa.int64()),
    pa.field("tx", pa.int64()),
    pa.field("diff", pa.int64()),
]
QUARANTINE: Final = pa.schema(_FIELDS)
"""Why, where (file, line and column, as far as they are known) and what was set aside."""


def with_reports(changes: DataFrame) -> DataFrame:
    """The source's rows as changes only; what it has set aside becomes a row without stamps."""
    if not set(_REPORT) <= set(changes.columns):
        return changes
    report = f.concat(f.lit(_MARK), f.to_json(f.struct(*_REPORT)))
    terms = [f.col(name) for name in ("s", "p", "g")]
    return changes.select(
        *("time", "tx", "diff", "seq"),
        *terms,
        f.when(f.col("reason").isNotNull(), report).otherwise(f.col("o")).alias("o"),
    )


def set_aside(rejects: pa.Table) -> pa.Table:
    """The rejects of the match as rows of the quarantine.

    >>> reject = {"time": [None], "tx": [None], "diff": [None], "reason": ["no time"]}
    >>> report = _MARK + '{"reason": "no term", "file": "a.nt", "line": 3}'
    >>> set_aside(pa.table(reject | {"text": [report]})).select(["reason", "line"]).to_pylist()
    [{'reason': 'no term', 'line': 3}]
    """
    rows = [_row(reject) for reject in rejects.to_pylist()]
    return pa.Table.from_pylist(rows, schema=QUARANTINE)


def _row(reject: dict[str, Any]) -> dict[str, Any]:
    text = reject["text"] or ""
    if not text.startswith(_MARK):
        return reject
    report: dict[str, Any] = json.loads(text[len(_MARK) :])
    # Zero is how the source says that there is no line or column to name.
    return {key: value for key, value in report.items() if value != 0}
