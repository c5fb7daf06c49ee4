"""Changes given as id arrays, checked and put together as kernel rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs


def id_rows(most: int, s: Ints, p: Ints, o: Ints, g: Ints | None, diff: Ints | None) -> Ints:
    """Changes as kernel rows, checked: ids in range, one length, diffs of +1 or -1."""
    rows = np.zeros((len(s), 6), np.int32)
    named = {"s": s, "p": p, "o": o} if g is None else {"s": s, "p": p, "o": o, "g": g}
    for column, (name, ids) in enumerate(named.items(), start=2):
        values = integers(name, ids, len(s))
        least = 0 if name == "g" else 1
        if len(values) and (values.min() < least or values.max() > most):
            raise GraphtideError(
                f"the ids of {name} run from {least} to {most}", hint="make ids with graph.terms"
            )
        rows[:, column] = values
    rows[:, 1] = 1 if diff is None else integers("diff", diff, len(s))
    if len(rows) and (np.abs(rows[:, 1]) != 1).any():
        raise GraphtideError("diff is +1 for an insert and -1 for a delete")
    return rows


def integers(name: str, values: Ints | Longs, count: int) -> Longs:
    """A column of so many integers, as an array."""
    column: Longs = np.asarray(values)
    if column.shape != (count,) or (count and column.dtype.kind not in "iu"):
        raise GraphtideError(
            f"{name} must be an array of {count} integers, as long as s,"
            f" not of {column.dtype} with shape {column.shape}"
        )
    return column
