"""Rejects: input that could not be used, each once and with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from graphtide.spark.schemas import REJECTS, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.spark.frontier import Frontier


def rejected(changes: pa.Table, reasons: Mapping[int, str]) -> pa.Table:
    """Rows of a table set aside, by row number, with their reasons.

    >>> row = {"time": [7], "tx": [0], "diff": [1], "s": ["<ex:a>"], "p": ["b"], "o": [None]}
    >>> rejected(pa.table({**row, "g": [None]}), {0: "no IRI"})["text"].to_pylist()
    ['<ex:a> b']
    """
    rows = list(reasons)
    numbers = [_picked(changes, name, rows) for name in ("time", "tx", "diff")]
    names = [*"spog", *(["stream"] if "stream" in changes.column_names else [])]
    parts = zip(*(_picked(changes, name, rows) for name in names), strict=True)
    texts = [" ".join(part for part in row if part) for row in parts]
    return table_of(REJECTS, [*numbers, texts, list(reasons.values())])


def rejected_late(changes: pa.Table, frontier: Frontier) -> pa.Table:
    """Changes that came after their transaction was complete; of several copies the one at home."""
    reason = f"too late: the stream was complete up to time {frontier.time}, tx {frontier.tx}"
    at_home = changes["home"].to_pylist()
    return rejected(changes, {row: reason for row, home in enumerate(at_home) if home})


def _picked(table: pa.Table, name: str, rows: list[int]) -> list[Any]:
    if not rows:
        return []
    values: list[Any] = table[name].take(pa.array(rows, pa.int64())).to_pylist()
    return values
