"""A run that finds its hubs itself: with `hubs="auto"`, the stream goes on with those it has shown.

The driver looks at the counts of terms that workers report (`graphtide.spark.load`). If a hub would
pay, the stream ends before its next micro-batch is computed, and the checkpoint is rescaled in
place, to the same number of partitions and with the hub. So a switch is what `rescale` is: exactly
once, wherever it is killed. The counts only decide when there is one. That micro-batch has been
planned: the source of change logs ends it where it was to end, that of Kafka may end it elsewhere.
"""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Final

from graphtide.spark.load import unnamed_hubs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.spark.driver.run import StreamJob
    from graphtide.spark.driver.sink import Sink
    from graphtide.spark.driver.status import BatchStatus
    from graphtide.spark.load import PartitionLoad

    Found = Mapping[str, Mapping[str, int]]

log = getLogger(__name__)

FIRST_LOOK: Final = 10_000
"""Quads that were counted before hubs are looked for; then again whenever they have doubled."""


class DividingJob:
    """A stream, and after each switch the one that goes on from it.

    `begin` starts the stream of the checkpoint as it is now; `divide` gives it more hubs.
    """

    def __init__(self, begin: Callable[[], StreamJob], divide: Callable[[Found], None]) -> None:
        self._begin, self._divide = begin, divide
        self._next_look = FIRST_LOOK
        self._found: Found = {}
        self.current = begin()

    @property
    def sink(self) -> Sink:
        """Where the output goes, with the totals so far."""
        return self.current.sink

    @property
    def query(self) -> StreamingQuery:
        """The streaming query that runs now."""
        return self.current.query

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with."""
        while True:
            for status in self.current.statuses(until):
                self._look()
                yield status
            if not self.current.ended_early or until():
                return
            log.warning("goes on with more hubs: %s", ", ".join(self._found))
            self._divide(self._found)
            self._found = {}
            self.current = self._begin()

    def loads(self) -> Mapping[tuple[str, int], PartitionLoad]:
        """What each partition of each stage did last."""
        return self.current.loads()

    def _look(self) -> None:
        """Look for hubs, if enough quads are new; if there are any, let the stream end."""
        counted = self.current.counts.terms()
        if self._found or counted.total < self._next_look:
            return
        self._next_look = 2 * counted.total
        self._found = unnamed_hubs(self.current.job, counted)
        if self._found:
            self.current.end_before_next()

    def stop(self) -> None:
        """Stop after the current micro-batch."""
        self.current.stop()
