"""TextIds: small numbers for texts, whatever they say.

Rows between the stages hold terms that an expression may have made; they are only compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class TextIds:
    """Texts by number, from 1; 0 is null.

    >>> ids = TextIds()
    >>> ids.encode_column(pa.array(["b", None, "a", "b"])).tolist()
    [1, 0, 2, 1]
    >>> ids.decode_column([2, 0]).to_pylist()
    ['a', None]
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str | None] = [None]

    def encode_column(self, column: pa.Array[Any]) -> NDArray[np.int32]:
        """The number of each text; new texts get new ones."""
        coded: Any = column.dictionary_encode()
        known = [self._id(text) for text in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        ids: NDArray[np.int32] = np.array([*known, 0], np.int32)[codes]
        return ids

    def decode_column(self, ids: NDArray[np.integer] | Sequence[int]) -> pa.Array[Any]:
        """The text of each number."""
        distinct, places = np.unique(np.asarray(ids), return_inverse=True)
        texts = pa.array([self._texts[i] for i in distinct.tolist()], pa.string())
        return texts.take(places.reshape(-1))

    def _id(self, text: str) -> int:
        found = self._ids.setdefault(text, len(self._texts))
        if found == len(self._texts):
            self._texts.append(text)
        return found
