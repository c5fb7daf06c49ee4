"""A stateful operator that loads the engine only where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext, cloudpickle
from pyspark.sql.streaming import stateful_processor as sp

from graphtide.spark.state.opened import open_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd


class LateProcessor(sp.StatefulProcessor):
    """A processor of a stage, unpickled by the tasks that run it.

    When a query starts, Spark starts a process for each of its operators, outside of any task, only
    to ask which state it has. That is the same for all, and known without the engine, which takes
    longer to import than all else that such a process does.

    The bytes are made by the driver and travel inside the operator, which Spark itself pickles and
    unpickles: nothing in them comes from a user's data, a checkpoint or the network.
    """

    def __init__(self, processor: sp.StatefulProcessor) -> None:
        self._pickled: bytes = cloudpickle.dumps(processor)  # type: ignore[no-untyped-call]

    def init(self, handle: sp.StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        if TaskContext.get() is None:
            open_state(handle)
            return
        self._processor: sp.StatefulProcessor = cloudpickle.loads(self._pickled)
        self._processor.init(handle)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: sp.TimerValues,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """One partition's part of a micro-batch."""
        return self._processor.handleInputRows(key, rows, timerValues)  # type: ignore[return-value]

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: tuple[int],
        timerValues: sp.TimerValues,  # noqa: N803 - Spark's name
        expiredTimerInfo: sp.ExpiredTimerInfo,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Time has passed."""
        return self._processor.handleExpiredTimer(key, timerValues, expiredTimerInfo)  # type: ignore[return-value]

    def close(self) -> None:
        """The task is done (called by Spark)."""
        if TaskContext.get() is not None:
            self._processor.close()
