"""Patterns: the patterns of a program in one partition, on the events that were sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import AnyDetector, make_detector
from graphtide.patterns.event_rows import by_first_row
from graphtide.patterns.saved import load_tokens, save_tokens
from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.stages.events import event_numbers, send_detected, take_messages
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Longs
    from graphtide.patterns.general import MatchColumns
    from graphtide.patterns.tokens import PatternMatch
    from graphtide.spark.job import JobSpec
    from graphtide.spark.partition.program import ProgramSpec
    from graphtide.spark.state.cache import PartitionState


KINDS = (msg.MessageKind.PATTERN_EVENT,)
"""The messages that patterns take."""


def detect_batch(job: JobSpec, state: PartitionState, batch: msg.StageInput) -> msg.StageOutput:
    """Give the patterns of a partition their events; complex events go on to rules."""
    spec = job.program
    assert spec is not None  # noqa: S101 - only programs have this stage
    messages = take_messages(state, batch, KINDS, lambda: PatternsPartition(spec))
    return msg.StageOutput(send_detected(messages, spec, state.partition), batch.frontier)


class PatternsPartition:
    """All patterns of a program in one partition; each sees the events that are addressed to it.

    The state of a pattern are its tokens. Events do not lead back to them, so a snapshot has them
    as they are.
    """

    def __init__(self, spec: ProgramSpec, terms: TermDictionary | None = None) -> None:
        self._terms = TermDictionary() if terms is None else terms
        self._widths = [len(type_.parameters) for type_ in spec.named.values()]
        indices = {name: index for index, name in enumerate(spec.named)}
        self._types = [spec.types[type_] for type_ in spec.complex.values()]
        self._type_of = np.array([*(spec.types[type_] for type_ in spec.named.values()), -1])
        self.detectors: list[AnyDetector] = [
            make_detector(
                compile_pattern(pattern, indices, self._terms.encode, spec.tick_ms, self._terms)
            )
            for pattern in spec.source.patterns
        ]
        self._intervals = [pattern.interval for pattern in spec.source.patterns]
        self.log_rows = 0
        self.live_rows = 0

    @property
    def terms(self) -> int:
        """How many terms it knows."""
        return len(self._terms)

    def first(self) -> pa.Table:
        """Nothing: all events come from other stages."""
        return msg.empty(msg.MESSAGES)

    def apply(self, rows: pa.Table, time: int) -> pa.Table:
        """Take events in, in their order, then let time pass; the complex events."""
        self.log_rows += len(rows)
        self._load(msg.of_kind(rows, msg.MessageKind.TOKENS))
        parts = [msg.empty(msg.MESSAGES)]
        for pattern in range(len(self.detectors)):
            events = msg.of_kind(rows, msg.MessageKind.PATTERN_EVENT, pattern)
            parts += self._detect(pattern, events, time)
        return pa.concat_tables(parts)

    def replay(self, rows: pa.Table, time: int) -> None:
        """Take events in whose complex events were emitted before."""
        self.apply(rows, time)

    def _detect(self, pattern: int, rows: pa.Table, time: int) -> Iterator[pa.Table]:
        detector = self.detectors[pattern]
        if len(rows):
            rows, events = self._events(rows)
            types, times = rows["type"].to_numpy(), rows["time"].to_numpy()
            numbers = detector.events + events
            found = detector.feed(types, self._values(rows, types), times, numbers)
            if len(found.time):
                yield self._complex(pattern, rows, found)
        if detector.now is None or time > detector.now:
            passed = detector.advance(time)
            if passed:
                yield self._passed(pattern, passed)

    def _events(self, rows: pa.Table) -> tuple[pa.Table, Longs]:
        """The rows, those of one event together; and the index of each one's event.

        All that one graph event matches is one event. So is what one change of the graph matches,
        if it has several names.
        """
        time, tx, seq = (rows[name].to_numpy() for name in ("time", "tx", "seq"))
        own = seq <= 0
        events, _ = event_numbers(rows, own)
        types = self._type_of[rows["type"].to_numpy()]
        if own.any() and len(np.unique(self._type_of)) < len(self._type_of):
            first: dict[tuple[object, ...], int] = {}
            texts: Any = rows["values"].to_pylist()
            for at in np.flatnonzero(own).tolist():
                line = time[at], tx[at], types[at], *texts[at]
                events[at] = first.setdefault(line, events[at])
            order = by_first_row(events)
            rows, events = rows.take(order), events[order]
        begins = np.zeros(len(rows), np.int64)
        begins[1:] = events[1:] != events[:-1]
        return rows, np.cumsum(begins)

    def _values(self, rows: pa.Table, types: NDArray[np.integer]) -> NDArray[np.int32]:
        values = np.zeros((len(rows), max(self._widths, default=0)), np.int32)
        for type_ in np.unique(types[types >= 0]).tolist():
            mine = np.flatnonzero(types == type_)
            width = self._widths[type_]
            values[mine, :width] = msg.value_ids(rows.take(mine), width, self._terms)
        return values

    def _complex(self, pattern: int, rows: pa.Table, found: MatchColumns) -> pa.Table:
        """Complex events, each with the stamps of what completes it: an event, or time."""
        at = found.at
        over = found.time < rows["time"].to_numpy()[at]
        txs = np.where(over, msg.AFTER_ALL, rows["tx"].to_numpy()[at])
        seqs = np.where(over, 0, rows["seq"].to_numpy()[at])
        values = found.values.astype(np.int32)
        lasting = found.time - found.start if self._intervals[pattern] else None
        return msg.event_messages(
            self._types[pattern], (found.time, txs, seqs), values, self._terms, lasting
        )

    def _passed(self, pattern: int, passed: list[PatternMatch]) -> pa.Table:
        """Complex events that the passing of time completes."""
        times = np.array([each.time for each in passed], np.int64)
        values = np.array([each.values for each in passed], np.int32).reshape(len(passed), -1)
        stamps = (
            times,
            np.full(len(passed), msg.AFTER_ALL, np.int64),
            np.zeros(len(passed), np.int64),
        )
        starts = np.array([each.start for each in passed], np.int64)
        lasting = times - starts if self._intervals[pattern] else None
        return msg.event_messages(self._types[pattern], stamps, values, self._terms, lasting)

    @property
    def retained(self) -> int:
        """How many tokens there are."""
        return sum(len(detector.tokens()) for detector in self.detectors)

    def snapshot(self) -> pa.Table:
        """The tokens of each pattern."""
        states = [save_tokens(each, self._terms) for each in self.detectors]
        self.log_rows = self.live_rows = len(states) + self.retained
        return msg.token_messages(states)

    def _load(self, rows: pa.Table) -> None:
        for row in rows.select(["id", "state"]).to_pylist():
            load_tokens(self.detectors[row["id"]], row["state"], self._terms)
