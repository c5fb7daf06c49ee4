"""A program over a bounded DataFrame: all of it is one batch, and then it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from graphtide.spark.run_batch import BatchWriter
    from graphtide.spark.status import BatchStatus


class BoundedRun:
    """A run that has come to its end when it is there."""

    def __init__(self, matched: DataFrame, writer: BatchWriter) -> None:
        self.sink = writer.sink
        if self.sink.progress.batch >= 0:
            raise GraphtideError(
                f"{self.sink.out} has the output of a bounded DataFrame already",
                hint="choose another out and another checkpoint; only a stream can go on",
            )
        writer.take(matched, 0)

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:  # noqa: ARG002 - as of a stream
        """Nothing is left to follow."""
        return iter(())

    def stop(self) -> None:
        """Nothing is left to stop."""
