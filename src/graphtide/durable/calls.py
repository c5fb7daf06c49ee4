"""Calls of functions that are finished: a replay takes what they have caused instead.

What a function changes, pushes or registers while rules run is input, and its place is inside the
input that has caused the call. So it is recorded with the call, in one row: a call is finished with
all that it has caused, or it is made again. A replay comes to the same firing at the same moment,
and applies it there.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from graphtide.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class CallRow(NamedTuple):
    """A call that was finished: for which firing, its error if it failed, what it has caused."""

    firing: str
    error: str | None
    caused: bytes | None = None

    def sealed(self) -> bytes | None:
        """What it has caused, after a checksum."""
        return None if self.caused is None else self._checksum().to_bytes(4, "big") + self.caused

    @staticmethod
    def opened(firing: str, error: str | None, sealed: bytes | None) -> CallRow | None:
        """The row; None if it does not have its checksum.

        >>> row = CallRow("mail-Tell-1-0", None, b"inputs")
        >>> CallRow.opened(row.firing, row.error, row.sealed()) == row
        True
        >>> CallRow.opened("mail-Tell-2-0", row.error, row.sealed())
        """
        if sealed is None:
            return CallRow(firing, error)
        row = CallRow(firing, error, bytes(sealed[4:]))
        return row if row.sealed() == sealed else None

    def _checksum(self) -> int:
        return zlib.crc32(self.caused or b"", zlib.crc32(f"{self.firing}\0{self.error}".encode()))


class FinishedCalls:
    """The calls that were finished before, by firing; `apply` applies what one has caused."""

    def __init__(self) -> None:
        self._rows: dict[str, deque[CallRow]] = {}
        self.apply: Callable[[bytes], None] | None = None

    def put(self, rows: Iterable[CallRow]) -> None:
        """Know these and no others."""
        self._rows = {}
        for row in rows:
            self._rows.setdefault(row.firing, deque()).append(row)

    def replay(self, firing: str) -> bool:
        """Whether a call was finished. Then it is not made again; if it failed, it fails again."""
        known = self._rows.get(firing)
        if not known:
            return False
        row = known.popleft()
        if row.caused is not None and self.apply is not None:
            self.apply(row.caused)
        if row.error is not None:
            raise ActionError(row.error)
        return True
