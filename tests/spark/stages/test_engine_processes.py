"""Engines in processes of their own: the same output, whatever is killed, and nothing left over."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.stages.shapes import query, stream
from spark.stages.splits import END, in_process, micro_batches

from graphtide.errors import GraphtideError
from graphtide.spark.stages import engine_processes as apart
from graphtide.spark.state import cache
from graphtide.spark.state.log import MemoryLog
from oracles import partitions as testing
from oracles.partitions import PartitionRun, net_of

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")

TEXT = "SELECT ?a ?b { ?a <ex:p> ?b }"
PATIENCE = 60.0
_names = count()


def children(pid):
    """The ids of the processes that one has forked."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(int(path.parent.name))
    return found


def wait_until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


class Processes:
    """Two engine processes, which do the work of a `PartitionRun`."""

    def __init__(self):
        before = children(os.getpid())
        self.known = apart.fork_engine_processes(2)
        (self.keeper,) = set(children(os.getpid())) - set(before)
        self.counts = Counter()

    def run(self, job):
        """A stand-in for `run_partition`."""
        operator = str(next(_names))

        def run_partition(_, state, rows, __, *, now=None):
            key = state.key._replace(operator=operator)
            work = apart.Work(key, rows, now, cache.SMALL_LOG)
            done = apart.ask(self.known.reach(key.partition), work, state.log, job)
            self.counts.update(done.counts)
            return done.rows

        return run_partition

    def kill(self, number):
        """Kill some of the engine processes; the keeper forks others."""
        victims = children(self.keeper)[:number]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(children(self.keeper)) - set(victims)) == 2)

    def end(self):
        os.close(self.known.held)
        os.waitpid(self.keeper, 0)


@pytest.fixture(scope="module")
def processes():
    made = Processes()
    yield made
    made.end()


@pytest.fixture
def run(processes, monkeypatch):
    made = PartitionRun.of({"q": TEXT}, 1)
    monkeypatch.setattr(testing, "run_partition", processes.run(made.job))
    processes.counts.clear()
    return made


def insert(number):
    return [
        [(number, 0, 1, f"<ex:{number}>", "<ex:p>", "<ex:b>", None), (number, 0, 0, *[None] * 4)]
    ]


def out(number):
    return [("q", number, 0, 1, (f"<ex:{number}>", "<ex:b>"))]


def test_an_engine_is_found_where_it_was_made(run, processes):
    for number in range(4):
        assert run.batch(insert(number)) == out(number)
    assert +processes.counts == {"started": 1, "hits": 3}
    assert run.workers[0].engines == {}


def test_a_process_that_was_killed_is_forked_again_and_builds_its_engine(run, processes):
    run.batch(insert(0))
    processes.kill(2)
    assert run.batch(insert(1)) == out(1)
    assert run.batch(insert(2)) == out(2)
    assert +processes.counts == {"started": 1, "rebuilt": 1, "hits": 1}


@pytest.mark.parametrize("call", ["head", "put_head"])
def test_a_process_that_is_killed_at_work(call, run, processes, monkeypatch):
    """The task fails, what it has written is not committed, and the next attempt is right."""
    run.batch(insert(0))
    saved = deepcopy(run.logs)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryLog, call, lambda *_: processes.kill(2))
        with pytest.raises((EOFError, OSError)):
            run.batch(insert(1))
    run.logs = saved
    assert run.batch(insert(1)) == out(1)


def test_a_worker_that_fails_meanwhile_leaves_no_engine(run, processes, monkeypatch):
    """The worker raises, as if it were killed: the engine has rows that no log has."""
    run.batch(insert(0))

    def fails(*_):
        raise KeyError("the worker")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLog, "put_head", fails)
        with pytest.raises(KeyError, match="the worker"):
            run.batch(insert(1))
    assert run.batch(insert(2)) == out(2)
    assert +processes.counts == {"started": 1, "rebuilt": 1}


def test_errors_are_raised_by_the_worker(run):
    run.batch(insert(5))
    with pytest.raises(GraphtideError, match="the stream is not in order") as caught:
        run.batch(insert(3))
    assert "lateness" in caught.value.hint
    assert "match_batch" in str(caught.value.__cause__)
    assert run.batch(insert(6)) == out(6)


def test_without_a_listener_there_is_no_connection(tmp_path):
    assert apart.EngineProcesses(tmp_path, 2, -1).reach(1) is None


def test_without_room_for_sockets_workers_have_the_engines(monkeypatch):
    """A path of a socket has about a hundred bytes at most."""
    monkeypatch.setenv(apart.ENVIRONMENT, "2")
    monkeypatch.setattr(apart, "_processes", None)
    monkeypatch.setattr(apart, "mkdtemp", lambda **_: "/tmp/" + "x" * 200)
    apart.start_engine_processes()
    assert apart.reached(0) is None


def test_nothing_is_left_when_nobody_can_ask():
    made = Processes()
    wait_until(lambda: len(children(made.keeper)) == 2)
    family = [made.keeper, *children(made.keeper)]
    made.end()
    assert not any(Path(f"/proc/{pid}").exists() for pid in family)
    assert not made.known.folder.exists()


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(("chain", "optional, nested", "distinct, hidden", "minus", "constant until")),
    st.sampled_from((None, "rete")),
    st.sampled_from((1, 2, 5)),
    st.integers(0, 10**6),
)
def test_whatever_goes_wrong_the_output_is_the_same(processes, shape, layout, partitions, number):
    """Processes die, attempts fail after they changed engines, logs are compacted."""
    rng = Random(number)
    queries = {"q": query(shape)}
    rows = stream(number % 50)
    run = PartitionRun.of(queries, partitions, layout=layout)
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
        patch.setattr(testing, "run_partition", processes.run(run.job))
        for tasks in micro_batches([*rows, END], rng, most=20):
            if rng.random() < 0.05:
                processes.kill(rng.randint(1, 2))
            if rng.random() < 0.2:
                run.attempt(tasks)
            shown += run.batch(tasks)
    assert net_of(shown) == in_process(queries, rows)
