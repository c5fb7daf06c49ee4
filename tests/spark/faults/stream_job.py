"""A streaming job in a process of its own, to be killed: `python stream_job.py JOB.json`.

Every task writes down how it found the cached engine. If the job says so, one task fails right
after the engine took its changes in; the query then starts again on the same workers. Logs are
compacted from `small_log` changes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException

from graphtide.spark import pipeline, watch
from graphtide.spark.match import Match
from graphtide.spark.session import make_session

CHANGES = "time long, tx long, diff int, seq long, s string, p string, o string, g string"


class Noted(Match):
    """Match, with a note per cell and micro-batch, and a failure on demand."""

    notes = ""
    fail_at = ""
    small_log = 1000

    def __init__(self, task, counts):
        super().__init__(task, counts)
        # Of a class that travels by value, only what its instances hold is sure to arrive.
        names = ("notes", "fail_at", "small_log")
        vars(self).update({name: getattr(Noted, name) for name in names})

    def handleInputRows(self, key, rows, timerValues):  # noqa: N803
        from graphtide.spark import cell_engine, match

        cell_engine.SMALL_LOG = self.small_log
        cell = match.cell_keys(self._task.cells).index(key[0])
        cached = match.CACHE.engines.get((match.run_id(), "match", cell))
        head = self._log.head()
        oldest = 0 if head is None else head.oldest
        self._note({"found": found(cached, head, self._log), "oldest": oldest})
        yield from super().handleInputRows(key, rows, timerValues)
        Path(self.notes, f"done-{cell}-{batch_id()}").touch()
        if cell == 0 and head is not None and str(head.version) in self.fail_at.split(","):
            marker = Path(self.notes, f"failed-{head.version}")
            if not marker.exists():
                marker.touch()
                self._await_other_cell()
                raise RuntimeError("injected after the engine took the changes in")

    def _await_other_cell(self):
        """Let the other cell's engine take its changes in too: its worker will live on."""
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
    return "behind" if found and found[0] == cached.token else "other attempt"


def batch_id():
    """The micro-batch that is under way."""
    return TaskContext.get().getLocalProperty("streaming.sql.batchId")


def run(job):
    """Run until the input is used up, starting the query again whenever it fails."""
    Noted.notes, Noted.fail_at, Noted.small_log = job["notes"], job["fail_at"], job["small_log"]
    pipeline.Match = Noted
    session = make_session(
        master=job["master"],
        cells=job["cells"],
        settings={"spark.sql.streaming.stopTimeout": "60s", **job.get("settings", {})},
    )
    for files in job["files_per_trigger"]:
        changes = (
            session.readStream.schema(CHANGES)
            .option("maxFilesPerTrigger", files)
            .parquet(job["input"])
        )
        query = (
            watch(changes, job["queries"], cells=job["cells"])
            .writeStream.format("parquet")
            .option("path", job["out"])
            .option("checkpointLocation", job["checkpoint"])
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            with Path(job["notes"], "restarts.txt").open("a", encoding="utf-8") as file:
                file.write(f"{error}\n=====\n")
        else:
            session.stop()
            return
    sys.exit("the query failed too often")


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
