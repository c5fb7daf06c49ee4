"""A program with rules in a process of its own, to be killed: `python react_job.py JOB.json`.

Calls are written down in a file, each at once. When a file in `notes` says so, the driver kills
itself: at a `call`, after it was made and before its micro-batch is written; or before the
`feedback` of a micro-batch is written, when the rest of it is. Logs are compacted early. A `paced`
job waits for further input until a file in `notes` says that there is no more. While there is a
file `hold`, tasks of patterns and rules wait.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path

from pyspark import SparkContext

from graphtide.lang.tide.program import Program
from graphtide.spark import api
from graphtide.spark.driver import run as run_module
from graphtide.spark.driver.feedback import FeedbackLog
from graphtide.spark.session import make_session
from graphtide.spark.stages import processor


class Noted(processor.PartitionProcessor):
    """The operator of all stages with logs that stay small, and notes of patterns and rules."""

    notes = ""

    def __init__(self, job, stage, counts=None):
        super().__init__(job, stage, counts)
        # Of a class that travels by value, only what its instances hold is sure to arrive.
        self.notes = Noted.notes

    def handleInputRows(self, key, rows, timerValues):  # noqa: N803
        from graphtide.spark.state import cache

        faulthandler.register(signal.SIGUSR1)
        if self._name in {"patterns", "rules"}:
            cache.SMALL_LOG = 5
            head = self._log.head()
            oldest = 0 if head is None else head.oldest
            with Path(self.notes, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"found": self._name, "oldest": oldest}) + "\n")
            while Path(self.notes, "hold").exists():
                time.sleep(0.02)
        yield from super().handleInputRows(key, rows, timerValues)


class Receiver:
    """What is called. It writes down its calls, and may be the end of the process."""

    def __init__(self, job):
        self.path, self.notes = Path(job["calls"]), job["notes"]

    def receive(self, kind, x, y, firing_id):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([firing_id, str(kind), str(x), str(y)]) + "\n")
        die_at("call", self.notes)


class Mortal(FeedbackLog):
    """A log of feedback that may be the end of the process when it has something to write."""

    def write(self, batch, changes):
        changes = list(changes)
        if changes:
            die_at("feedback", Noted.notes)
        super().write(batch, changes)


def die_at(moment, notes):
    """As if somebody killed both halves of the driver, if this is the moment that was asked for."""
    if Path(notes, f"die-at-{moment}").exists():
        for pid in (SparkContext._gateway.proc.pid, os.getpid()):
            os.kill(pid, signal.SIGKILL)


def run(job):
    """Run until the input is used up and actions change nothing more."""
    Noted.notes = job["notes"]
    # Not in its own module: there its pickles are looked up.
    api.PartitionProcessor = Noted
    run_module.FeedbackLog = Mortal
    session = make_session(
        brief=True, master=job["master"], partitions=job["partitions"], settings=job["settings"]
    )
    running = run_module.run(
        session,
        Program.parse(job["program"]),
        changes=Path(job["input"]),
        out=job["out"],
        checkpoint=job["home"],
        partitions=job["partitions"],
        functions={"f": Receiver(job).receive},
        once=not job.get("paced"),
        trigger="100ms",
        rows_per_batch=job["rows_per_batch"],
        streams=tuple(job["streams"]),
    )
    for status in running.statuses(lambda: ended(running, job)):
        print(status.line_of_text(), flush=True)
    session.stop()


def ended(running, job):
    """Whether a paced job has no more input, and has used up what it had."""
    if not job.get("paced") or not Path(job["notes"], "finish").exists():
        return False
    if running.query.isActive:
        running.query.processAllAvailable()
    return True


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)  # for `stacks`
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
