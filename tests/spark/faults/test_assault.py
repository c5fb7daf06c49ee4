"""A kill finds its victim, however quickly workers come and go."""

import subprocess
import sys
import time
from collections import Counter
from random import Random

import pytest
from spark.faults import assault as module
from spark.faults import stacks
from spark.faults.assault import Assault


class ShyWorkers(Assault):
    """A job that commits a batch per file, and whose workers are seen only if they are held."""

    def await_batches(self, count):
        self.release(count)

    def last_batch(self):
        return len(list((self.folder / "input").iterdir()))

    def victims(self, kind):
        return [self.worker.pid] if (self.folder / "notes" / "hold").exists() else []


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 2.0)
    monkeypatch.setattr(module, "TOTAL", Counter())
    for name in ("input", "notes"):
        (tmp_path / name).mkdir()
    for number in range(12):
        (tmp_path / "input" / f"{number:02}").touch()
    folders = {name: str(tmp_path / name) for name in ("input", "notes")}
    job = ShyWorkers(tmp_path, folders, Random(1))
    job.pace()
    asleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    job.process, job.worker = subprocess.Popen(asleep), subprocess.Popen(asleep)
    yield job
    for process in (job.process, job.worker):
        process.kill()
        process.wait()


def test_a_worker_that_ends_too_soon_is_held_in_the_next_batch(job):
    job.kill("worker")
    assert job.worker.wait() == -9
    assert job.kills == {"worker": 1}
    assert not (job.folder / "notes" / "hold").exists()
    assert 12 - len(job.held) <= 5


JAVA = "java -cp x org.apache.spark.deploy.SparkSubmit --conf d=graphtide.spark.stages.worker"
PYTHON = "python -m graphtide.spark.stages.worker pyspark.worker"
COMMANDS = {1: "init", 7: "python stream_job.py", 10: JAVA, 20: PYTHON, 21: PYTHON, 22: PYTHON}
PARENTS = {7: 1, 10: 7, 20: 10, 21: 20, 22: 1}


@pytest.mark.parametrize(
    ("kind", "pids"), [("worker", [21, 22]), ("daemon", [20]), ("driver", [10]), ("executor", [])]
)
def test_who_is_who(kind, pids, tmp_path, monkeypatch):
    """Workers outlive the process that forked them; Java's options name its module."""
    job = Assault(tmp_path, {}, Random(1), process=subprocess.Popen(["true"]))
    job.process.wait()
    family = [(pid, parent, COMMANDS[pid]) for pid, parent in PARENTS.items()]
    monkeypatch.setattr(job, "family", lambda: family)
    monkeypatch.setattr(Assault, "command", staticmethod(COMMANDS.get))
    assert job.victims(kind) == pids


def test_a_victim_that_has_just_ended_is_none(job):
    job.worker.kill()
    job.worker.wait()
    (job.folder / "notes" / "hold").touch()
    assert not job.strike("worker")


def test_a_test_with_too_little_input_says_so_at_once(job):
    job.release(12)
    with pytest.raises(AssertionError, match="the input is used up"):
        job.release(1)


PREPARED = "import faulthandler, signal, time; faulthandler.register(signal.SIGUSR1)"


def test_a_job_that_makes_no_progress_shows_what_it_does(job, monkeypatch):
    monkeypatch.setattr(stacks, "SECONDS", 1.0)
    job.job["checkpoint"] = str(job.folder)
    job.process.kill()
    job.process.wait()
    job.launch([sys.executable, "-c", f"{PREPARED}\ndef asleep(): time.sleep(600)\nasleep()"])
    time.sleep(1)
    family = [(process.pid, 1, "python") for process in (job.process, job.worker)]
    monkeypatch.setattr(job, "family", lambda: family)
    job.check(time.monotonic() - 0.5, "it has just begun, and its log with it")
    with pytest.raises(AssertionError, match=r"no progress(.|\n)*in asleep"):
        job.check(time.monotonic() - module.PATIENCE, "no progress")
    assert job.process.poll() is job.worker.poll() is None, "asked, or let alone; not ended"
