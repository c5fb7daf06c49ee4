"""Matched rows: what a cell's micro-batch puts out, with where each part of it goes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.spark.chunk import to_chunk
from graphtide.spark.consolidate import meeting_cells
from graphtide.spark.hashing import cell_keys
from graphtide.spark.react_send import send_matched

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from graphtide.spark.cell_state import Outcome
    from graphtide.spark.task import Task

MatchedRow = tuple[int, bytes | None, bytes | None]
"""The key of a cell, a chunk of deltas, a chunk of rejects."""


def matched_rows(
    outcome: Outcome, task: Task, cell: int, rejects: Sequence[bytes]
) -> list[MatchedRow]:
    """A cell's deltas by the cell where they meet others, and all that was set aside on the way."""
    keys = cell_keys(task.cells)
    aside = [*rejects, *([to_chunk(outcome.late)] if len(outcome.late) else [])]
    rows: list[MatchedRow] = [(keys[cell], None, chunk) for chunk in aside]
    meets = any(query.meets for query in task.cell_queries)
    if task.reaction is None or meets:
        parts = by_cell(outcome.deltas, task, cell)
    else:
        parts = send_matched(outcome.deltas, task.reaction, cell)
    return [*rows, *((keys[target], to_chunk(part), None) for target, part in parts)]


def by_cell(deltas: pa.Table, task: Task, cell: int) -> list[tuple[int, pa.Table]]:
    """Deltas split by the cell to which they are sent on; parts without rows are left out."""
    if not len(deltas):
        return []
    where = meeting_cells(deltas, task, cell)
    targets: list[int] = np.unique(where).tolist()
    return [(target, deltas.take(np.flatnonzero(where == target))) for target in targets]
