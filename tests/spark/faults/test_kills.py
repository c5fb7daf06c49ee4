"""Whatever is killed, and whenever: nothing is lost and nothing comes out twice."""

import json
from random import Random

import pytest
from spark.faults.assault import Assault
from spark.faults.stream import ONE_STAGE, TWO_STAGES, read_output, write_stream

pytestmark = pytest.mark.slow


@pytest.fixture
def make_assault(tmp_path):
    """A job on a stream of its own; at the end nothing of it is left."""
    made = []

    def make(seed, queries, *, master, files, fail_at=""):
        folders = {name: str(tmp_path / name) for name in ("input", "out", "checkpoint", "notes")}
        expected = write_stream(tmp_path / "input", queries, files=files, seed=seed)
        (tmp_path / "notes").mkdir()
        job = {"master": master, "cells": 2, "queries": queries, "fail_at": fail_at, **folders}
        assault = Assault(tmp_path, job, Random(seed))
        made.append(assault)
        return assault, expected

    yield make
    for assault in made:
        assault.clear()


def assert_exact(assault, expected):
    found = read_output(assault.folder / "out")
    assert len(expected) > 5, "the stream must have something to lose"
    assert not expected - found, "lost"
    assert not found - expected, "double, or never true"


def test_drivers_and_python_workers(make_assault):
    assault, expected = make_assault(1, ONE_STAGE, master="local[2,4]", files=120)
    for _ in range(5):
        assault.start([assault.random.randint(1, 3)] * 5)
        for _ in range(2):
            assault.kill("worker")
        assault.kill("driver")
    assault.start([20])
    assault.finish()
    assert assault.kills == {"driver": 5, "worker": 10}
    assert_exact(assault, expected)
    found = assault.found()
    assert found["missing"] > 0 and found["behind"] > 0, found


def test_executors_and_python_workers(make_assault):
    assault, expected = make_assault(2, ONE_STAGE, master="local-cluster[2,1,1024]", files=60)
    assault.start([1] * 5)
    for _ in range(2):
        assault.kill("executor")
        assault.kill("worker")
    assault.kill("driver")
    assault.start([2] * 5)
    for _ in range(2):
        assault.kill("worker")
        assault.kill("executor")
    assault.finish()
    assert assault.kills == {"executor": 4, "worker": 4, "driver": 1}
    assert_exact(assault, expected)
    assert assault.found()["missing"] > 0


def test_a_cell_meets_its_engine_again_on_executors_of_one_core(make_assault):
    assault, expected = make_assault(4, ONE_STAGE, master="local-cluster[2,1,1024]", files=12)
    assault.start([1])
    assault.finish()
    assert_exact(assault, expected)
    found = assault.found()
    assert found == {"new": 2, "hit": 22}
    counts = json.loads((assault.folder / "notes" / "counts.json").read_text(encoding="utf-8"))
    assert counts == {"hit": 22, "behind": 0, "rebuilt": 0, "new": 2}


def test_a_failure_after_the_cache_was_updated(make_assault):
    assault, expected = make_assault(
        3, TWO_STAGES, master="local[2]", files=50, fail_at="4,9,17,23"
    )
    assault.start([1, 3, 2, 1, 4])
    assault.finish()
    restarts = (assault.folder / "notes" / "restarts.txt").read_text(encoding="utf-8")
    assert restarts.count("injected after the engine") >= 4
    assert_exact(assault, expected)
    assert assault.found()["ahead"] > 0, "the workers outlived the query, and knew too much"
