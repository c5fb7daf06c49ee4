"""The changes of a piece of RDF Patch, in columns, before they know their transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.line_kernel import DELETE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from graphtide.rdf.statements import LineBlock
    from graphtide.rdf.text_column import Strings


class Segment(NamedTuple):
    """Rows from start to before stop, which are one transaction (or a part of one)."""

    start: int
    stop: int
    time: int
    tx: int


@dataclass(frozen=True, slots=True)
class Part:
    """Changes without time and transaction number."""

    diff: NDArray[np.int8]
    columns: tuple[Strings, ...]

    def __len__(self) -> int:
        return len(self.diff)

    def slice(self, start: int, stop: int) -> Part:
        """Return the rows from start to before stop."""
        return Part(self.diff[start:stop], tuple(c[start:stop] for c in self.columns))

    def batch(self, segments: Sequence[Segment]) -> ChangeBatch:
        """Return the rows of these transactions; rows between them are left out."""
        starts, stops, times, numbers = np.array(segments, np.int64).T
        sizes = stops - starts
        part = self.slice(int(starts[0]), int(stops[-1]))
        if len(part) > sizes.sum():
            keep = np.zeros(len(part) + 1, np.int64)
            np.add.at(keep, starts - starts[0], 1)
            np.add.at(keep, stops - starts[0], -1)
            part = part.filter(np.cumsum(keep[:-1]) > 0)
        s, p, o, g = part.columns
        return ChangeBatch(
            np.repeat(times, sizes), np.repeat(numbers, sizes), part.diff, s, p, o, g
        )

    def filter(self, keep: NDArray[np.bool_]) -> Part:
        """Return the rows that are marked."""
        mask = pa.array(keep)
        return Part(self.diff[keep], tuple(column.filter(mask) for column in self.columns))


@dataclass(slots=True)
class Rows:
    """The change rows of a block: plain ones from the kernel, others added one by one in order."""

    block: LineBlock
    lines: list[int] = field(default_factory=list)
    diffs: list[int] = field(default_factory=list)
    quads: list[list[str | None]] = field(default_factory=list)

    def place(self, line: int) -> int:
        """How many change rows stand before this line of the block."""
        return int(np.searchsorted(self.block.rows, line)) + len(self.lines)

    def add(self, line: int, diff: int, terms: Sequence[str]) -> None:
        """Add a change that the kernel did not read; lines come in ascending order."""
        self.lines.append(line)
        self.diffs.append(diff)
        self.quads.append([*terms, None][:4])

    def part(self) -> Part:
        """Return all change rows in the order of their lines."""
        deleted = self.block.status[self.block.rows] == DELETE
        diff = np.where(deleted, -1, 1).astype(np.int8)
        if not self.lines:
            return Part(diff, self.block.columns)
        order = np.argsort(np.concatenate([self.block.rows, self.lines]), kind="stable")
        extra = [pa.array(texts, pa.string()) for texts in zip(*self.quads, strict=True)]
        places: Any = pa.array(order)
        columns = tuple(
            pa.concat_arrays([plain, added]).take(places)
            for plain, added in zip(self.block.columns, extra, strict=True)
        )
        return Part(np.concatenate([diff, np.array(self.diffs, np.int8)])[order], columns)
