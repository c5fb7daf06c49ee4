"""Delta tables: delta rows of ids as an Arrow table of texts, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.spark.schemas import DELTAS, table_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.spark.text_ids import TextIds


def delta_table(
    query: int,
    time: NDArray[np.int64],
    tx: NDArray[np.int64],
    diff: NDArray[np.integer],
    values: Ints,
    terms: TermDictionary | TextIds,
) -> pa.Table:
    """Rows of one query: stamps, diffs and, per row, the ids of its values."""
    n, width = values.shape
    texts: Any = terms.decode_column(np.ascontiguousarray(values).reshape(-1))
    offsets: Any = pa.array(np.arange(n + 1, dtype=np.int32) * width, pa.int32())
    rows = pa.ListArray.from_arrays(offsets, texts)
    columns = [np.full(n, query, np.int32), time, tx, diff.astype(np.int64), rows]
    return table_of(DELTAS, columns)


def value_ids(deltas: pa.Table, width: int, texts: TextIds | TermDictionary) -> Ints:
    """The values of rows of one query as ids; unbound is 0."""
    rows: Any = deltas["row"].combine_chunks()
    if not len(deltas) or not width:
        return np.zeros((len(deltas), width), np.int32)
    ids: Ints = texts.encode_column(rows.flatten()).reshape(len(deltas), width)
    return ids
