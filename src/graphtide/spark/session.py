"""A Spark session with the settings that the pipeline is measured with."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final = {
    # Stateful Python operators need RocksDB; a change log per batch is cheaper than a snapshot.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Workers are forked with the engine loaded, and speak through sockets without TCP's delays.
    "spark.python.daemon.module": "graphtide.spark.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Only stateless stages hear of this. Spark pools workers by what they are told, so the workers
    # that hold engines are not lent to other stages, and a cell meets its engine again.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Partitions must stay as they are: one per cell.
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What holds on every master. `docs/deploy.md` gives the reasons and the measurements."""

LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # One machine with few cores: a collector without threads, and a compiler that is done sooner.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""What is added where driver and executors share this machine."""

WORKER_ENVIRONMENT: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""For processes that fork: libraries must not start threads while they are loaded."""


def make_session(
    *,
    master: str = "local[*,4]",
    cells: int = 2,
    name: str = "graphtide",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session whose shuffles have one partition per cell; `settings` win over ours."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        for key, value in WORKER_ENVIRONMENT.items():
            os.environ.setdefault(key, value)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in all_settings(master, cells, settings or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def all_settings(master: str, cells: int, settings: Mapping[str, str]) -> dict[str, str]:
    """Our settings for a master, with the given ones on top.

    >>> all_settings("local[2]", 4, {})["spark.sql.shuffle.partitions"]
    '4'
    >>> "spark.driver.host" in all_settings("spark://head:7077", 4, {})
    False
    """
    return {
        **SETTINGS,
        **(LOCAL_SETTINGS if master.startswith("local") else {}),
        **{f"spark.executorEnv.{key}": value for key, value in WORKER_ENVIRONMENT.items()},
        "spark.sql.shuffle.partitions": str(cells),
        **settings,
    }
