"""A program with rules in a process of its own, to be killed: `python react_job.py JOB.json`.

Calls are written down in a file, each at once. If the job says so, the process kills itself: at a
`call`, after it was made and before its micro-batch is written; or before the `feedback` of a
micro-batch is written, when the rest of it is. Logs are compacted from the first changes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from graphtide.lang.program import parse_program
from graphtide.spark import react, run_program
from graphtide.spark.feedback import FeedbackLog
from graphtide.spark.session import make_session


class Noted(react.React):
    """React with logs that stay small, and a note per cell and micro-batch."""

    notes = ""

    def __init__(self, task, stage):
        super().__init__(task, stage)
        # Of a class that travels by value, only what its instances hold is sure to arrive.
        self.notes = Noted.notes

    def handleInputRows(self, key, rows, timerValues):  # noqa: N803
        from graphtide.spark import detect_cell, rule_cell

        detect_cell.SMALL_LOG = rule_cell.SMALL_LOG = 5
        head = self._log.head()
        oldest = 0 if head is None else head.oldest
        with Path(self.notes, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"found": self._stage.name, "oldest": oldest}) + "\n")
        yield from super().handleInputRows(key, rows, timerValues)


class Receiver:
    """What is called. It writes down its calls, and may be the end of the process."""

    def __init__(self, path, dies_at):
        self.path, self.dies_at, self.made = path, dies_at, 0

    def tell(self, kind, x, y, firing_id):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([firing_id, str(kind), str(x), str(y)]) + "\n")
        self.made += 1
        if self.made == self.dies_at:
            die()


class Forgetful(FeedbackLog):
    """A log of feedback that is killed instead of the second time that it has much to write."""

    many = 0

    def write(self, batch, changes):
        changes = list(changes)
        Forgetful.many += len(changes) > 1
        if Forgetful.many == 2:
            die()
        super().write(batch, changes)


def die():
    """As if somebody killed this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def run(job):
    """Run until the input is used up and actions change nothing more."""
    Noted.notes, react.React = job["notes"], Noted
    if job["dies"] == "feedback":
        from graphtide.spark import run as module

        module.FeedbackLog = Forgetful
    session = make_session(master=job["master"], cells=job["cells"], settings=job["settings"])
    receiver = Receiver(Path(job["calls"]), 3 if job["dies"] == "call" else 0)
    running = run_program(
        session,
        parse_program(job["program"]),
        changes=Path(job["input"]),
        out=job["out"],
        checkpoint=job["home"],
        cells=job["cells"],
        functions={"f": receiver.tell},
        once=True,
        rows_per_batch=job["rows_per_batch"],
        streams=tuple(job["streams"]),
    )
    for status in running.statuses():
        print(status.line_of_text(), flush=True)
    session.stop()


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
