"""A streaming job in a process of its own, to be killed: `python stream_job.py JOB.json`.

Every task of the match writes down how it found the cached engine; with `in_workers`, engines are
in the workers, where they can be looked at, and not in processes of their own. If the job says so,
one task fails right after the engine took its changes in; the query then starts again on the same
workers. Logs are compacted from `small_log` changes on. A `paced` job waits for further input until
a file in `notes` says that there is no more. While there is a file `hold`, tasks of the match wait.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException

from graphtide.spark import api, watch
from graphtide.spark.session import ENGINE_PROCESSES, make_session
from graphtide.spark.stages import processor

CHANGES = "time long, tx long, diff int, seq long, s string, p string, o string, g string"


class Noted(processor.PartitionProcessor):
    """The operator of all stages, with notes of the match, and failures on demand."""

    notes = ""
    fail_at = ""
    small_log = 1000

    def __init__(self, job, stage, counts=None):
        super().__init__(job, stage, counts)
        # Of a class that travels by value, only what its instances hold is sure to arrive.
        names = ("notes", "fail_at", "small_log")
        vars(self).update({name: getattr(Noted, name) for name in names})

    def handleInputRows(self, key, rows, timerValues):  # noqa: N803
        from graphtide.spark.state import cache

        faulthandler.register(signal.SIGUSR1)
        if self._name != "match":
            yield from super().handleInputRows(key, rows, timerValues)
            return
        cache.SMALL_LOG = self.small_log
        engine_key = self.engine_key(key[0])
        cached = processor.CACHE.engines.get(engine_key)
        head = self._log.head()
        oldest = 0 if head is None else head.oldest
        self._note({"found": found(cached, head, self._log), "oldest": oldest})
        while Path(self.notes, "hold").exists():
            time.sleep(0.02)
        yield from super().handleInputRows(key, rows, timerValues)
        Path(self.notes, f"done-{engine_key.partition}-{batch_id()}").touch()
        if (
            engine_key.partition == 0
            and head is not None
            and str(head.version) in self.fail_at.split(",")
        ):
            marker = Path(self.notes, f"failed-{head.version}")
            if not marker.exists():
                marker.touch()
                self._await_other_partition()
                raise RuntimeError("injected after the engine took the changes in")

    def _await_other_partition(self):
        """Let the other partition's engine take its changes in too: its worker will live on."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if Path(self.notes, f"done-1-{batch_id()}").exists():
                return
            time.sleep(0.05)

    def _note(self, note):
        with Path(self.notes, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")


def found(cached, head, log):
    """How a cached engine stands to its log."""
    if head is None:
        return "new"
    if cached is None:
        return "missing"
    if (cached.version, cached.token) == (head.version, head.token):
        return "hit"
    if cached.version > head.version:
        return "ahead"
    if cached.version < head.oldest:
        return "too old"
    found = log.chunk(cached.version)
    return "behind" if found and found.token == cached.token else "other attempt"


def batch_id():
    """The micro-batch that is under way."""
    return TaskContext.get().getLocalProperty("streaming.sql.batchId")


def follow(writer, job):
    """Start a query and wait for its end."""
    if not job.get("paced"):
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    query = writer.start()
    while not Path(job["notes"], "finish").exists():
        query.awaitTermination(0.1)
    query.processAllAvailable()
    query.stop()


def run(job):
    """Run until the input is used up, starting the query again whenever it fails."""
    Noted.notes, Noted.fail_at, Noted.small_log = job["notes"], job["fail_at"], job["small_log"]
    # Not in its own module: there its pickles are looked up.
    api.PartitionProcessor = Noted
    engines = {ENGINE_PROCESSES: "0"} if job.get("in_workers") else {}
    session = make_session(
        brief=True,
        master=job["master"],
        partitions=job["partitions"],
        settings={"spark.sql.streaming.stopTimeout": "60s", **engines, **job.get("settings", {})},
    )
    for files in job["files_per_trigger"]:
        changes = (
            session.readStream.schema(CHANGES)
            .option("maxFilesPerTrigger", files)
            .parquet(job["input"])
        )
        writer = (
            watch(
                changes,
                job["queries"],
                partitions=job["partitions"],
                layout=job.get("layout"),
            )
            .writeStream.format("parquet")
            .option("path", job["out"])
            .option("checkpointLocation", job["checkpoint"])
        )
        try:
            follow(writer, job)
        except StreamingQueryException as error:
            with Path(job["notes"], "restarts.txt").open("a", encoding="utf-8") as file:
                file.write(f"{error}\n=====\n")
        else:
            session.stop()
            return
    sys.exit("the query failed too often")


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)  # for `stacks`
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
