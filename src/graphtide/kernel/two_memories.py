"""TwoMemories: what nodes with a memory on each side have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.kernel.rowtable import RowTable


class TwoMemories:
    """A left and a right memory."""

    def __init__(self, left: RowTable, right: RowTable) -> None:
        self._left = left
        self._right = right

    def sizes(self) -> dict[str, int]:
        """Rows held on each side."""
        return {"left": len(self._left), "right": len(self._right)}

    @property
    def nbytes(self) -> int:
        """Bytes held by both memories."""
        return self._left.nbytes + self._right.nbytes
