"""The streaming job of the cluster test: `spark-submit cluster_job.py FOLDER MASTER`.

It takes a file of FOLDER/input per micro-batch, until FOLDER/done says that there are no more.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from spark.faults.stream import TWO_STAGES
from spark.faults.stream_job import CHANGES

from graphtide.spark import watch
from graphtide.spark.session import make_session

PARTITIONS = 3


def home_of_graphtide(_):
    """Where a worker found the package."""
    import graphtide

    return graphtide.__file__


def run(folder, master):
    """The job; in the end it notes where the code came from."""
    session = make_session(master=master, partitions=PARTITIONS, brief=True)
    changes = session.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1)
    query = (
        watch(changes.parquet(str(folder / "input")), TWO_STAGES, partitions=PARTITIONS)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    while not (folder / "done").exists():
        if not query.isActive:
            raise query.exception()
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
    homes = session.sparkContext.parallelize(range(2), 2).map(home_of_graphtide).collect()
    (folder / "homes.json").write_text(json.dumps(homes), encoding="utf-8")
    session.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
