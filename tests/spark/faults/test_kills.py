"""Whatever is killed, and whenever: nothing is lost and nothing comes out twice.

Here are the tests that look into the engines on the way; `test_campaign` has any number of kills.
Starting Spark takes most of the time, so there are few starts. On `local[2]` engines have processes
of their own unless a test says otherwise; any of these, and their keeper, are killed as workers.
"""

from collections import Counter
from random import Random

import pyarrow.parquet as pq
import pytest
from spark.faults.assault import RunAssault
from spark.faults.stream import ONE_STAGE, TWO_STAGES, assert_exact, in_process

from graphtide.datasets.railway import PREFIX, change_stream
from graphtide.rdf.formats.change_log import write_changes

pytestmark = pytest.mark.slow


def test_drivers_and_python_workers(make_assault):
    assault, expected = make_assault(
        1, ONE_STAGE, master="local[2,4]", files=80, routes=2, small_log=0
    )
    assault.job["in_workers"] = True
    assault.pace()
    assault.start([2] * 5)
    for victim in ["worker"] * 2 + ["daemon"] + ["worker"] * 2 + ["driver"]:
        assault.kill(victim)
    assault.start([3] * 5)
    for _ in range(4):
        assault.kill("worker")
    assault.finish()
    assert assault.kills == {"driver": 1, "worker": 8, "daemon": 1}
    assert_exact(assault, expected)
    found = assault.found()
    assert found["missing"] > 0 and found["behind"] + found["too old"] > 0, found
    assert max(note["oldest"] for note in assault.noted()) > 1, "logs were compacted on the way"


def test_executors_and_python_workers(make_assault):
    assault, expected = make_assault(2, ONE_STAGE, master="local-cluster[2,1,1024]", files=40)
    assault.pace()
    assault.start([1, 2, 2, 2])
    assault.await_batches(8)
    # Executors of one core: until something goes wrong, a partition finds its engine every time.
    found = assault.found()
    assert found["new"] == 2 and found["hit"] >= 12 and len(found) == 2, found
    for victim in ("executor", "worker", "worker", "executor", "worker"):
        assault.kill(victim)
    assault.finish()
    assert assault.kills == {"executor": 2, "worker": 3}
    assert_exact(assault, expected)
    assert assault.found()["missing"] > 0


def test_a_failure_after_the_cache_was_updated(make_assault):
    # Whether the other worker lives on is Spark's affair: often enough, some of six do.
    fail_at = "3,4,6,8,10,12"
    assault, expected = make_assault(3, TWO_STAGES, master="local[2]", files=30, fail_at=fail_at)
    assault.job["in_workers"] = True
    assault.start([1, 3, 2, 1, 2, 1, 2])
    assault.finish()
    restarts = (assault.folder / "notes" / "restarts.txt").read_text(encoding="utf-8")
    assert restarts.count("[STREAM_FAILED]") == 6
    assert_exact(assault, expected)
    # The worker of the other partition outlived the query, and its engine has changes that were
    # never written. It is ahead if it gets its partition at once, or of another attempt later.
    found = assault.found()
    assert found["ahead"] + found["other attempt"] > 0, found


def test_the_run_command(tmp_path):
    """A worker, the Java half and the command itself are killed; the same command goes on."""
    stream = list(change_stream(90, seed=6))
    (tmp_path / "input").mkdir()
    for number, batch in enumerate(stream):
        write_changes(batch, tmp_path / "input" / f"{number:03}.rdfp")
    queries = [f"QUERY {name} AS {text}" for name, text in TWO_STAGES.items()]
    program = PREFIX + "".join(queries).replace(PREFIX, "")
    (tmp_path / "rail.tide").write_text(program, encoding="utf-8")
    checkpoint = str(tmp_path / "checkpoint" / "stream")
    assault = RunAssault(tmp_path, {"checkpoint": checkpoint}, Random(6))
    try:
        assault.start(5)
        for victim in ("worker", "worker", "driver"):
            assault.kill(victim)
        assault.start(9)
        for victim in ("worker", "command"):
            assault.kill(victim)
        assault.start(20)
        assault.kill("worker")
        assault.finish()
    finally:
        assault.clear()
    assert assault.kills == {"worker": 4, "driver": 1, "command": 1}
    assert "resumes after micro-batch" in assault.log()
    found = Counter(
        (name, row.pop("time"), row.pop("tx"), row.pop("diff"), frozenset(row.items()))
        for name in TWO_STAGES
        for row in pq.read_table(tmp_path / "out" / name).to_pylist()
    )
    expected = in_process(TWO_STAGES, stream)
    assert len(expected) > 5 and len({name for name, *_ in expected}) == len(TWO_STAGES)
    assert not expected - found, "lost"
    assert not found - expected, "double, or never true"
