"""A run that finds its hubs and is killed in the switch: `python switch_job.py FOLDER WHEN`.

The process kills itself (SIGKILL) when the switch is about to write its first file on the driver
("first"), or when it is done and the next stream has not begun ("last"). With "never", it runs to
the end.
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


def kill_in_switch(folder: Path, when: str) -> None:
    """Let the process end in the switch."""
    switch, write = driver.add_hubs, Location.write_bytes

    def die(*_):
        (folder / f"killed-{when}").touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def switched(*given):
        Location.write_bytes = die if when == "first" else write
        switch(*given)
        die()

    driver.add_hubs = switched


def main(folder: Path, when: str) -> None:
    dividing.FIRST_LOOK = 2 * ROWS
    if when != "never":
        kill_in_switch(folder, when)
    with open_session("local[2,4]", 2, folder / "spark.log", brief=True) as spark:
        job = driver.run(
            spark, Program.parse(f"QUERY Star AS {STAR}"), changes=folder / "in",
            out=folder / "out", checkpoint=folder / "checkpoint", partitions=2, hubs="auto",
            rows_per_batch=ROWS, once=True,
        )  # fmt: skip
        for _ in job.statuses():
            pass


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
