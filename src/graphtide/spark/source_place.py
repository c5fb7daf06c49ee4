"""Place and Offset: how far a directory of change logs has been read, as JSON that Spark keeps.

The directory is one log, cut into files whose order is that of their names:

- A file is finished as soon as a file with a later name is there. Only the last one may grow.
- Times do not go back. A transaction with an earlier time than one before it is too late.
- Transaction numbers rise from file to file: a file's numbers are kept if its first one is greater
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
    """What the end of what is there means: more may come at once, a pause, or nothing more."""

    OPEN = "open"
    PAUSE = "pause"
    ONCE = "once"
    END = "end"

    def takes(self, rest: bytes) -> bool:
        """Whether a last line without its line break counts as whole."""
        return self is Closing.END or (self is Closing.ONCE and rest.rstrip().endswith(b"."))


@dataclass(frozen=True, slots=True)
class Place:
    """A place between two transactions of a file, and what is known there.

    `position` counts bytes, or rows of a Parquet file. `time` and `tx` are the latest of the whole
    log; `shift` is added to the file's own numbers and is None before its first transaction. The
    `own_…` fields and `prefixes` are the state of RDF Patch inside the file.
    """

    file: str = ""
    position: int = 0
    line: int = 1
    time: int | None = None
    tx: int = -1
    shift: int | None = None
    own_time: int = 0
    own_tx: int = 0
    own_last: tuple[int, int] | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def begin(self, file: str) -> Place:
        """The start of another file, after this one.

        >>> Place("a.nt", 300, 9, time=17, tx=8).begin("b.nt")
        ... # doctest: +NORMALIZE_WHITESPACE
        Place(file='b.nt', position=0, line=1, time=17, tx=8, shift=None,
              own_time=17, own_tx=0, own_last=None, prefixes={})
        """
        return Place(file, time=self.time, tx=self.tx, own_time=self.time or 0)

    def shift_of(self, first: int) -> int:
        """What is added to the numbers of this file, if its first transaction has this one."""
        if self.shift is not None:
            return self.shift
        return 0 if first > self.tx else self.tx + 1 - first


@dataclass(frozen=True, slots=True)
class Taken:
    """A file of a micro-batch: how far it is read, if that is its end, or why it is not read."""

    file: str
    stop: int
    finished: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a micro-batch: a place, the files that led to it, and how many there were ever."""

    place: Place = Place()
    taken: tuple[Taken, ...] = ()
    files: int = 0

    def to_json(self) -> dict[str, Any]:
        """A dict of plain values."""
        found = asdict(self)
        found["taken"] = [asdict(part) for part in self.taken]
        last = self.place.own_last
        found["place"]["own_last"] = None if last is None else list(last)
        return found

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Offset:
        """The offset of a dict.

        >>> offset = Offset(Place("a.nt", own_last=(1, 2)), (Taken("a.nt", 10),), 1)
        >>> Offset.from_json(offset.to_json()) == offset
        True
        """
        last = found["place"]["own_last"]
        place = Place(**{**found["place"], "own_last": None if last is None else tuple(last)})
        return Offset(place, tuple(Taken(**part) for part in found["taken"]), found["files"])
