"""The Spark session of a run; what Java and the workers print goes to a log."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError
from graphtide.spark.session import make_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession


def default_cells(master: str) -> int:
    """One cell per core of this machine; of a cluster nobody knows the cores yet.

    >>> default_cells("local[3]")
    3
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        raise GraphtideError(
            f"--cells is needed with --master {master}",
            hint="give the number of cores that the executors have together",
        )
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


@contextmanager
def open_session(
    master: str, cells: int, log: Path, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that is stopped at the end."""
    with _output_to(log):
        try:
            session = make_session(
                master=master,
                cells=cells,
                settings={"spark.log.level": "ERROR", **(settings or {})},
            )
        except Exception as error:
            raise GraphtideError(
                f"Spark does not start: {str(error).strip().splitlines()[0]}",
                hint=f"{log} has what it printed; is --master {master} right?",
            ) from error
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Send what processes print that are started in here to a file, as long as they live."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with log.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
