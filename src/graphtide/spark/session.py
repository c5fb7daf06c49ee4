"""A Spark session with the settings that the pipeline is measured with."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""State in RocksDB, which stateful Python operators need; small batches at low fixed cost."""


def make_session(
    *,
    master: str = "local[*]",
    cells: int = 2,
    name: str = "graphtide",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session whose shuffles have one partition per cell; `settings` win over ours."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    chosen = {**SETTINGS, "spark.sql.shuffle.partitions": str(cells), **(settings or {})}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
