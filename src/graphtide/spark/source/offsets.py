"""How far a directory of change logs has been read, as JSON that Spark stores.

The directory is one log, cut into files whose order is that of their names:

- A file is finished as soon as a file with a later name is there. Only the last one may grow.
- Times do not go back. A transaction with an earlier time than one before it is late.
- Transaction numbers rise from file to file: a file's numbers stay if its first one is greater
  than all before it; otherwise all of them are shifted, so that the first follows the last.
- Changes of RDF Patch outside of `TX` … `TC` are a transaction when another row, the next file or a
  pause of the writer ends them. A transaction is taken only when it is complete.
- A transaction without a time, and every statement of N-Triples and N-Quads, has the time of the
  one before it. In these formats a transaction is one line, and its number is the line's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Closing(Enum):
    """The end of a file: more may come at once, the writer pauses, or there is no more."""

    OPEN = "open"
    PAUSE = "pause"
    ONCE = "once"
    END = "end"

    def takes(self, rest: bytes) -> bool:
        """Whether a last line without its line break counts as whole."""
        return self is Closing.END or (self is Closing.ONCE and rest.rstrip().endswith(b"."))


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position between two transactions of a file, and the state of the log there.

    `offset` counts bytes, or rows of a Parquet file. `time` and `tx` are the latest of the whole
    log; `shift` is added to the file's own numbers and is None before its first transaction. The
    `own_…` fields and `prefixes` are the state of RDF Patch inside the file.
    """

    file: str = ""
    offset: int = 0
    line: int = 1
    time: int | None = None
    tx: int = -1
    shift: int | None = None
    own_time: int = 0
    own_tx: int = 0
    own_last: tuple[int, int] | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def begin(self, file: str) -> LogPosition:
        """The start of another file, after this one.

        >>> LogPosition("a.nt", 300, 9, time=17, tx=8).begin("b.nt")
        ... # doctest: +NORMALIZE_WHITESPACE
        LogPosition(file='b.nt', offset=0, line=1, time=17, tx=8, shift=None,
              own_time=17, own_tx=0, own_last=None, prefixes={})
        """
        return LogPosition(file, time=self.time, tx=self.tx, own_time=self.time or 0)

    def shift_of(self, first: int) -> int:
        """What is added to the numbers of this file, if its first transaction has this one."""
        if self.shift is not None:
            return self.shift
        return 0 if first > self.tx else self.tx + 1 - first


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file of a micro-batch: up to where it is read, or why it is rejected."""

    file: str
    stop: int
    finished: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a micro-batch: a position, the files of the batch, and how many files so far."""

    position: LogPosition = LogPosition()
    taken: tuple[FileRange, ...] = ()
    files: int = 0

    def to_json(self) -> dict[str, Any]:
        """A dict of plain values."""
        found = asdict(self)
        found["taken"] = [asdict(part) for part in self.taken]
        last = self.position.own_last
        found["position"]["own_last"] = None if last is None else list(last)
        return found

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Offset:
        """The offset of a dict.

        >>> offset = Offset(LogPosition("a.nt", own_last=(1, 2)), (FileRange("a.nt", 10),), 1)
        >>> Offset.from_json(offset.to_json()) == offset
        True
        """
        last = found["position"]["own_last"]
        position = LogPosition(
            **{**found["position"], "own_last": None if last is None else tuple(last)}
        )
        return Offset(position, tuple(FileRange(**part) for part in found["taken"]), found["files"])
