"""The operator of a stage tells its state without the engine, and runs with it."""

import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import TaskContext

from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.stages.late import LateProcessor
from graphtide.spark.stages.processor import PartitionProcessor
from graphtide.spark.topology import stages_of
from oracles.partitions import PartitionRun

QUERY = "SELECT DISTINCT ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }"
JOB = PartitionRun.of({"q": QUERY}, 2, layout="rete").job

ASKED = """
import pickle, sys
processor = pickle.load(sys.stdin.buffer)
class Handle:
    def __getattr__(self, kind):
        return lambda *arguments: print(kind, *arguments)
processor.init(Handle())
processor.close()
loaded = {"numba", "pyarrow", "graphtide.spark.job", "graphtide.spark.topology"} & set(sys.modules)
print("loaded", *sorted(loaded))
"""


class Handle:
    """Writes down which state is asked for."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, kind):
        return lambda *arguments: self.asked.append(" ".join((kind, *arguments)))


def state_of(processor):
    handle = Handle()
    processor.init(handle)
    return handle.asked


@pytest.mark.parametrize("stage", [stage.name for stage in stages_of(JOB) if stage.stateful])
def test_the_state_is_that_of_every_stage(stage, monkeypatch):
    processor = PartitionProcessor(JOB, stage)
    outside, inside = LateProcessor(processor), LateProcessor(processor)
    known = state_of(processor)
    assert len(known) == 2
    assert state_of(outside) == known
    in_task = SimpleNamespace(getLocalProperty=lambda _: None)
    monkeypatch.setattr(TaskContext, "get", lambda: in_task)
    assert state_of(inside) == known
    key = partition_keys(JOB.partitions)[0]
    assert inside._processor.engine_key(key) == processor.engine_key(key), "the same operator"


def test_outside_of_a_task_the_engine_is_not_loaded():
    processor = PartitionProcessor(JOB, "match")
    asked = subprocess.run(
        [sys.executable, "-c", ASKED],
        input=pickle.dumps(LateProcessor(processor)), capture_output=True, check=True,
    )  # fmt: skip
    assert asked.stdout.decode().splitlines() == [*state_of(processor), "loaded"]
