"""A streaming job in a process of its own, to be killed: `python stream_job.py JOB.json`.

Every task writes down how it found the cached engine. If the job says so, one task fails right
after the engine took its changes in; the query then starts again on the same workers.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException

from graphtide.spark import pipeline, watch
from graphtide.spark.match import Match
from graphtide.spark.metrics_cache import CacheCounts
from graphtide.spark.session import make_session

CHANGES = "time long, tx long, diff int, seq long, s string, p string, o string, g string"


class Noted(Match):
    """Match, with a note per cell and micro-batch, and a failure on demand."""

    notes = ""
    fail_at = ""
    counts = None

    def __init__(self, task):
        super().__init__(task)
        # Of a class that travels by value, only what its instances hold is sure to arrive.
        self.notes, self.fail_at, self.counts = Noted.notes, Noted.fail_at, Noted.counts

    def handleInputRows(self, key, rows, timerValues):  # noqa: N803
        from graphtide.spark import match

        cell = match.cell_keys(self._task.cells).index(key[0])
        cached = match.CACHE.engines.get((match.run_id(), "match", cell))
        head = self._log.head()
        self._note({"cell": cell, "found": found(cached, head), "pid": os.getpid()})
        yield from super().handleInputRows(key, rows, timerValues)
        if cell == 0 and head is not None and str(head.version) in self.fail_at.split(","):
            marker = Path(self.notes, f"failed-{head.version}")
            if not marker.exists():
                marker.touch()
                raise RuntimeError("injected after the engine took the changes in")

    def close(self):
        from graphtide.spark import match

        self.counts.report(match.CACHE)
        super().close()

    def _note(self, note):
        with Path(self.notes, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")


def found(cached, head):
    """How a cached engine stands to its log."""
    if head is None:
        return "new"
    if cached is None:
        return "missing"
    if cached.version != head.version:
        return "ahead" if cached.version > head.version else "behind"
    return "hit" if cached.token == head.token else "other attempt"


def run(job):
    """Run until the input is used up, starting the query again whenever it fails."""
    Noted.notes, Noted.fail_at = job["notes"], job.get("fail_at", "")
    pipeline.Match = Noted
    session = make_session(
        master=job["master"],
        cells=job["cells"],
        settings={"spark.sql.streaming.stopTimeout": "60s", **job.get("settings", {})},
    )
    Noted.counts = CacheCounts(session.sparkContext)
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
            counts = json.dumps(dict(Noted.counts.values()))
            Path(job["notes"], "counts.json").write_text(counts, encoding="utf-8")
            session.stop()
            return
    sys.exit("the query failed too often")


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
