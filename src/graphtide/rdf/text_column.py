"""A column of texts as kernels see it: one run of UTF-8 bytes and the offsets of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from graphtide.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Strings: TypeAlias = "pa.Array[Any]"
"""An Arrow array of strings."""

Texts: TypeAlias = "Strings | pa.ChunkedArray[Any] | NDArray[Any] | Sequence[str | None]"
"""What may be given where a column of texts is wanted."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Row i is `data[offsets[i]:offsets[i + 1]]`; `valid` (None: all) is False at nulls."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return self.offsets.size - 1

    def text(self, row: int) -> str:
        """Return one row's text."""
        raw = self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()
        return raw.decode(errors="replace")

    def without_empty(self) -> TextColumn:
        """Return the column with its empty texts taken as nulls."""
        filled = self.offsets[1:] > self.offsets[:-1]
        return replace(self, valid=filled if self.valid is None else filled & self.valid)


def text_column(array: Strings) -> TextColumn:
    """View an Arrow string array, sliced or not, without copying its bytes.

    >>> column = text_column(pa.array(["a", None, "bcd"]).slice(1))
    >>> column.text(1), column.valid.tolist()
    ('bcd', [False, True])
    """
    kind = array.type
    wide = pa.types.is_large_string(kind)
    if not (wide or pa.types.is_string(kind)):
        raise DataError(f"a column of terms holds strings, not {kind}")
    _, offset_buffer, data_buffer = array.buffers()
    count, skip = len(array), array.offset
    if offset_buffer is None or count == 0:
        return TextColumn(np.empty(0, np.uint8), np.zeros(count + 1, np.int64), None)
    memory: Any = offset_buffer
    raw = np.frombuffer(memory, np.int64 if wide else np.int32, count + skip + 1)
    offsets = raw[skip:].astype(np.int64)
    data = (
        np.frombuffer(cast("Any", data_buffer), np.uint8) if data_buffer else np.empty(0, np.uint8)
    )
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return TextColumn(data, offsets, valid)


def as_chunks(texts: Texts) -> list[Strings]:
    """Return a column of texts as Arrow arrays, one per chunk.

    >>> as_chunks(["a", "b"])[0].type
    DataType(string)
    """
    if isinstance(texts, pa.ChunkedArray):
        return list(texts.chunks)
    if isinstance(texts, pa.Array):
        return [texts]
    try:
        return [pa.array(texts, pa.string(), from_pandas=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise DataError(f"a column of terms holds strings: {error}") from None


def buffer_of(array: NDArray[Any]) -> pa.Buffer:
    """Return the memory of a NumPy array as an Arrow buffer, without copying it.

    >>> buffer_of(np.zeros(3, np.int64)).size
    24
    """
    return pa.py_buffer(cast("Any", array))
