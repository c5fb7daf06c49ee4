"""Jobs that are killed; at the end nothing of them is left, and all kills are counted."""

from random import Random

import pytest
from spark.faults.assault import TOTAL, Assault
from spark.faults.stream import write_stream


@pytest.fixture
def make_assault(tmp_path):
    """A job on a stream of its own."""
    made = []

    def make(seed, queries, *, master, files, routes=12, fail_at="", small_log=1000):
        assault = make_job(seed, queries, master=master, fail_at=fail_at, small_log=small_log)
        return assault, write_stream(
            tmp_path / "input", queries, files=files, seed=seed, routes=routes
        )

    def make_job(seed, queries, *, master="local[2,4]", fail_at="", small_log=10):
        folders = {name: str(tmp_path / name) for name in ("input", "out", "checkpoint", "notes")}
        (tmp_path / "notes").mkdir()
        job = {"master": master, "partitions": 2, "queries": queries, **folders}
        job |= {"fail_at": fail_at, "small_log": small_log}
        made.append(Assault(tmp_path, job, Random(seed)))
        return made[-1]

    make.job = make_job
    yield make
    for assault in made:
        assault.clear()


def pytest_terminal_summary(terminalreporter):
    """How many processes were killed in all."""
    if TOTAL:
        kinds = ", ".join(f"{count} {kind}s" for kind, count in sorted(TOTAL.items()))
        terminalreporter.write_line(f"kills: {TOTAL.total()} ({kinds})")
