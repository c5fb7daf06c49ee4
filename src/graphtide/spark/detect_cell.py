"""DetectCell: the patterns of a program at work in one cell, on the events sent to it.

What a pattern knows are its tokens, which no set of events leads back to. So a snapshot has them
as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import make_detector
from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.cell_engine import SMALL_LOG
from graphtide.spark.delta_table import delta_table, value_ids
from graphtide.spark.reaction import LAST, MOST_TYPES, SAVED, TO_PATTERN, TYPES
from graphtide.spark.saved_tokens import load_tokens, save_tokens
from graphtide.spark.schemas import DELTAS, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from graphtide.patterns.detector import AnyDetector, MatchColumns
    from graphtide.patterns.tokens import PatternMatch
    from graphtide.spark.reaction import Reaction


class DetectCell:
    """All patterns of a program; each sees the events that are addressed to it."""

    def __init__(self, reaction: Reaction, cell: int) -> None:  # noqa: ARG002 - as other engines
        self._terms = TermDictionary()
        self._widths = [len(type_.parameters) for type_ in reaction.named.values()]
        numbers = {name: number for number, name in enumerate(reaction.named)}
        self._types = [TYPES + reaction.types[type_] for type_ in reaction.complex.values()]
        self.detectors: list[AnyDetector] = [
            make_detector(compile_pattern(pattern, numbers, self._terms.encode, reaction.tick_ms))
            for pattern in reaction.program.patterns
        ]
        self._logged = 0
        self._left = 0

    def first(self) -> pa.Table:
        """Nothing: all rows come from other stages."""
        return DELTAS.empty_table()

    def apply(self, changes: pa.Table, time: int) -> pa.Table:
        """Take in events in their order, then let time pass; the complex events."""
        self._logged += len(changes)
        query = changes["query"].to_numpy()
        saved = np.flatnonzero(query >= SAVED)
        if len(saved):
            self._load(changes.take(saved))
        numbers = np.where((query >= TO_PATTERN) & (query < SAVED), query - TO_PATTERN, -1)
        parts = [DELTAS.empty_table()]
        for number in range(len(self.detectors)):
            mine = np.flatnonzero(numbers // MOST_TYPES == number)
            parts += self._detect(number, changes.take(mine), time)
        return pa.concat_tables(parts)

    def replay(self, changes: pa.Table, time: int) -> None:
        """Events whose complex events went out when they first came."""
        self.apply(changes, time)

    def _detect(self, number: int, rows: pa.Table, time: int) -> Iterator[pa.Table]:
        detector = self.detectors[number]
        if len(rows):
            types = rows["query"].to_numpy() - TO_PATTERN - number * MOST_TYPES
            times = rows["time"].to_numpy()
            found = detector.feed(types, self._values(rows, types), times)
            if len(found.time):
                yield self._complex(number, rows, found)
        if detector.now is None or time > detector.now:
            passed = detector.advance(time)
            if passed:
                yield self._passed(number, passed)

    def _values(self, rows: pa.Table, types: NDArray[np.integer]) -> NDArray[np.int32]:
        values = np.zeros((len(rows), max(self._widths, default=0)), np.int32)
        for type_ in np.unique(types).tolist():
            mine = np.flatnonzero(types == type_)
            width = self._widths[type_]
            values[mine, :width] = value_ids(rows.take(mine), width, self._terms)
        return values

    def _complex(self, number: int, rows: pa.Table, found: MatchColumns) -> pa.Table:
        """Complex events, each with the stamps of what completes it: an event, or time."""
        at = found.at
        times = rows["time"].to_numpy()[at]
        over = found.time < times
        txs = np.where(over, LAST, rows["tx"].to_numpy()[at])
        places = np.where(over, 0, rows["diff"].to_numpy()[at])
        values = found.values.astype(np.int32)
        return delta_table(self._types[number], found.time, txs, places, values, self._terms)

    def _passed(self, number: int, passed: list[PatternMatch]) -> pa.Table:
        times = np.array([each.time for each in passed], np.int64)
        values = np.array([each.values for each in passed], np.int32).reshape(len(passed), -1)
        txs = np.full(len(passed), LAST, np.int64)
        zeros = np.zeros(len(passed), np.int64)
        return delta_table(self._types[number], times, txs, zeros, values, self._terms)

    @property
    def kept(self) -> int:
        """How many tokens there are."""
        return sum(len(detector.tokens()) for detector in self.detectors)

    @property
    def overgrown(self) -> bool:
        """Whether the log is worth replacing by the tokens."""
        return self._logged > SMALL_LOG + 2 * self._left

    def snapshot(self) -> pa.Table:
        """A row for each pattern with its tokens, as a text."""
        n = len(self.detectors)
        numbers = SAVED + np.arange(n, dtype=np.int32)
        zeros = np.zeros(n, np.int64)
        texts = [[save_tokens(each, self._terms)] for each in self.detectors]
        self._logged = self._left = n + self.kept
        return table_of(DELTAS, [numbers, zeros, zeros, zeros, texts])

    def _load(self, rows: pa.Table) -> None:
        numbers: Any = rows["query"].to_pylist()
        texts: Any = rows["row"].to_pylist()
        for number, (text,) in zip(numbers, texts, strict=True):
            load_tokens(self.detectors[number - SAVED], text, self._terms)
