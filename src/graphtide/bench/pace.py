"""How fast a stream goes: which triples come together, and when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.bench.triples import Triples
    from graphtide.kernel.batch import Longs

TICKS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Unit of time -> how many of them are a second."""


@dataclass(frozen=True, slots=True)
class Pace:
    """So many triples a second, in graph events of so many triples each.

    An event comes when its first triple is due, and is one transaction. Several may share a time.

    >>> Pace(rate=10_000, event=20).stamps(0, 3)
    (array([0, 0, 0]), array([0, 0, 0]))
    """

    rate: int = 10_000
    event: int = 1
    start: int = 0
    ticks: int = TICKS["ms"]

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("event size", self.event), ("unit", self.ticks)):
            if value < 1:
                raise GraphtideError(f"{name} {value} is not possible", hint="it is 1 or more")

    def stamps(self, first: int, count: int) -> tuple[Longs, Longs]:
        """The times and transactions of so many triples, of which `first` is the first.

        >>> time, tx = Pace(rate=2_000, event=2).stamps(3, 4)
        >>> time.tolist(), tx.tolist()
        ([1, 2, 2, 3], [1, 2, 2, 3])
        """
        events = np.arange(first, first + count, dtype=np.int64) // self.event
        # Whole seconds apart, so that large numbers in small units do not overflow.
        seconds, rest = np.divmod(events * self.event, self.rate)
        return self.start + seconds * self.ticks + rest * self.ticks // self.rate, events

    def stamped(self, parts: Iterable[Triples]) -> Iterator[Triples]:
        """The triples with their times; an event may go on in the next part.

        >>> import pyarrow as pa
        >>> from graphtide.bench.triples import Triples
        >>> part = Triples(*3 * [pa.array(["<ex:a>", "<ex:b>"])])
        >>> [each.time.tolist() for each in Pace(rate=1_000).stamped([part, part])]
        [[0, 1], [2, 3]]
        """
        first = 0
        for part in parts:
            time, tx = self.stamps(first, len(part))
            yield replace(part, time=time, tx=tx)
            first += len(part)


def find_ticks(unit: str) -> int:
    """How many of a unit of time are a second.

    >>> find_ticks("ms")
    1000
    """
    if unit not in TICKS:
        raise GraphtideError(f"unit {unit!r} is unknown", hint=f"choose from {', '.join(TICKS)}")
    return TICKS[unit]
