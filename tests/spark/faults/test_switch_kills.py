"""A run that goes on with the hubs that it finds, killed (SIGKILL) inside that switch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from spark.faults.switch_job import ROWS, STAR

from graphtide.graph import LiveGraph
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import read_output
from graphtide.spark.driver.options import read_fingerprint
from graphtide.spark.files import Location

pytestmark = pytest.mark.slow
JOB = Path(__file__).with_name("switch_job.py")


def skewed(files):
    """Most quads are about one node; some are deleted again."""
    rng, alive = Random(11), []
    for tx in range(files):
        rows = []
        for number in range(ROWS):
            node = "<ex:hub>" if rng.random() < 0.7 else f"<ex:n{number % 50}>"
            predicate = "<ex:q>" if rng.random() < 0.02 else "<ex:p>"
            alive.append((node, predicate, f"<ex:o{tx}-{number}>", None))
            rows.append((tx, tx, 1, *alive[-1]))
        gone = (alive.pop(rng.randrange(len(alive))) for _ in range(ROWS // 10))
        yield ChangeBatch.of([*rows, *((tx, tx, -1, *quad) for quad in gone)])


def start(folder, when):
    """Run the job to its end, or to where it kills itself; how it ended."""
    process = subprocess.Popen(
        [sys.executable, str(JOB), str(folder), when],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        return process.wait(timeout=900)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the Java half, and Python workers


def test_killed_in_the_switch_it_goes_on_and_nothing_is_lost_or_repeated(tmp_path):
    (tmp_path / "in").mkdir()
    graph = LiveGraph()
    query = graph.watch(STAR, history=10**6)
    for number, batch in enumerate(skewed(10)):
        write_changes(batch, tmp_path / "in" / f"{number:03}.rdfp")
        graph.apply(batch)
    hubs = []
    for when in ("first", "last"):
        assert start(tmp_path, when) == -signal.SIGKILL
        assert (tmp_path / f"killed-{when}").exists(), "it was killed elsewhere"
        hubs.append(read_fingerprint(Location.of(tmp_path / "checkpoint")).hubs)
    assert not hubs[0] and hubs[1], "the switch was not done, and then it was"
    assert start(tmp_path, "never") == 0
    found = read_fingerprint(Location.of(tmp_path / "checkpoint"))
    assert [term for term, _ in found.hubs] == ["<ex:hub>"]
    output = [tuple(row.values()) for row in read_output(tmp_path / "out", "Star").to_pylist()]
    expected = [(r.time, r.tx, r.diff, *map(str, r.row.values())) for r in query.rows()]
    assert sorted(output) == sorted(expected)
