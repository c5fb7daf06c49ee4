"""Spark's own watermark: that of the input says how late rows may be, ours shows the frontier.

Spark lets a query have one watermark on the way from a source to the sink. If the input has none,
the rows that leave the last stage get one: their times are those up to which the stream is
complete, with lateness, shards and idle sources taken into account. It comes after all stages with
state, because Spark would run those once more each time that a watermark before them rises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from graphtide.spark.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: later times cannot be printed."""

_DELAY: Final = "spark.watermarkDelayMs"
"""What Spark notes on a column with a watermark."""

_COLUMN: Final = "graphtide_event_time"


def delay_of(changes: DataFrame) -> int | None:
    """The delay of a stream's watermark in milliseconds, the greatest if it has several."""
    if not changes.isStreaming:
        return None
    if is_connect(changes):  # which shows no plans: only a column that is still there tells
        known = [field.metadata.get(_DELAY) for field in changes.schema.fields]
        return max((delay for delay in known if delay is not None), default=None)
    java: Any = changes.sparkSession.sparkContext._jvm  # noqa: SLF001
    nodes = java.org.apache.spark.sql.catalyst.plans.logical
    found = [node for node in plan_nodes(changes) if node.nodeName() == "EventTimeWatermark"]
    return max((nodes.EventTimeWatermark.getDelayMs(node.delay()) for node in found), default=None)


def lateness_of(changes: DataFrame, tick_ms: int) -> int:
    """How many ticks rows may be late by the watermark of their DataFrame; 0 if it has none."""
    return -(-(delay_of(changes) or 0) // tick_ms)


def with_watermark(rows: DataFrame, tick_ms: int) -> DataFrame:
    """Stage rows, whose times are Spark's watermark from the next micro-batch on."""
    ticks = f.greatest(f.lit(0), f.least(f.col("time"), f.lit(LAST_MS // tick_ms)))
    timed = rows.withColumn(_COLUMN, f.timestamp_millis(ticks * tick_ms))
    return timed.withWatermark(_COLUMN, "0 seconds").drop(_COLUMN)


def plan_nodes(frame: DataFrame) -> Iterator[Any]:
    """All nodes of the logical plan of a DataFrame."""
    inside: Any = frame
    found = [inside._jdf.queryExecution().analyzed()]  # noqa: SLF001 - PySpark shows it as text only
    while found:
        yield (node := found.pop())
        children = node.children()
        found += [children.apply(at) for at in range(children.size())]
