"""A run that finds its hubs and is killed in the switch: `python switch_job.py FOLDER KILL_AT`.

The process kills itself (SIGKILL) when the switch has written so many files; with an odd number,
right before that one. The rest of what it does is a run of the user's.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from graphtide.lang.tide.program import Program
from graphtide.spark.driver import dividing
from graphtide.spark.driver import run as driver
from graphtide.spark.files import Location
from graphtide.spark.session import open_session

STAR = "SELECT ?a ?b ?c { ?a <ex:p> ?b . ?a <ex:q> ?c }"
ROWS = 400
"""Of a file, and of a micro-batch."""


def kill_in_switch(notes: Path, at: int) -> None:
    """Let the switch end with the process, when it has written so many files."""
    switch, write = driver.add_hubs, Location.write_bytes
    written = []

    def counted(self, data):
        written.append(str(self))
        (notes / f"written-{at}").write_text("\n".join(written), encoding="utf-8")
        if len(written) == at and at % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, data)
        if len(written) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def switched(*given):
        Location.write_bytes = counted
        try:
            switch(*given)
        finally:
            Location.write_bytes = write

    driver.add_hubs = switched


def main(folder: Path, at: int) -> None:
    dividing.FIRST_LOOK = 2 * ROWS
    if at:
        kill_in_switch(folder, at)
    with open_session("local[2,4]", 2, folder / "spark.log", brief=True) as spark:
        job = driver.run(
            spark, Program.parse(f"QUERY Star AS {STAR}"), changes=folder / "in",
            out=folder / "out", checkpoint=folder / "checkpoint", partitions=2, hubs="auto",
            rows_per_batch=ROWS, once=True,
        )  # fmt: skip
        for _ in job.statuses():
            pass


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
