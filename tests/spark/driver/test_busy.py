"""A machine so busy that Python does not start in time: the micro-batch is run again."""

from types import SimpleNamespace

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark.driver import run
from graphtide.spark.driver.options import RunOptions
from graphtide.spark.driver.status import explained
from graphtide.spark.files import Location
from graphtide.spark.output import Progress

BUSY = "[STREAM_FAILED] org.apache.spark.SparkException: Python worker failed to connect back."
OTHER = "java.lang.IllegalStateException: something else"
OURS = f"graphtide.errors.GraphtideError: the log is torn\n\nand {BUSY}"


class Stream:
    """What Spark does with a query: each start fails as it is told to, or ends well."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.starts = 0
        self.writeStream = self

    def foreachBatch(self, _):
        return self

    def option(self, *_):
        return self

    def trigger(self, **_):
        return self

    def start(self):
        failure = self.failures[self.starts] if self.starts < len(self.failures) else None
        self.starts += 1
        return SimpleNamespace(isActive=False, recentProgress=[], exception=lambda: failure)


@pytest.fixture
def job(tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(run.time, "sleep", pauses.append)

    def make(stream, failure=None):
        sink = SimpleNamespace(progress=Progress())
        writer = SimpleNamespace(
            sink=sink, write=None, failure=failure, feeds_back=False, ended=False
        )
        places = [Location.of(tmp_path)] * 3
        counts = SimpleNamespace(state_bytes=dict, hubs=dict)
        return run.StreamJob(stream, writer, RunOptions(*places, 2), counts, "stream"), pauses

    return make


def test_it_is_run_again_after_pauses(job):
    stream = Stream(BUSY, BUSY)
    running, pauses = job(stream)
    assert list(running.statuses()) == []
    assert stream.starts == 3
    assert [pause for pause in pauses if pause != run.POLL_SECONDS] == [2.0, 10.0]


def test_after_three_times_the_machine_is_blamed_and_not_us(job):
    stream = Stream(*[BUSY] * 9)
    with pytest.raises(GraphtideError, match="do not start in the ten seconds") as caught:
        list(job(stream)[0].statuses())
    assert stream.starts == 4
    assert "overloaded" in caught.value.hint and "nothing is lost" in caught.value.hint


@pytest.mark.parametrize(
    ("report", "failure"), [(OTHER, None), (OURS, None), (BUSY, GraphtideError("a full disk"))]
)
def test_other_failures_end_the_run_at_once(job, report, failure):
    error = RuntimeError(report)
    stream = Stream(error)
    with pytest.raises((GraphtideError, RuntimeError)) as caught:
        list(job(stream, failure)[0].statuses())
    assert stream.starts == 1
    assert caught.value is (failure or (caught.value if report is OURS else error))


def test_a_run_that_is_to_stop_is_not_started_again(job):
    stream = Stream(BUSY)
    with pytest.raises(GraphtideError):
        list(job(stream)[0].statuses(lambda: True))
    assert stream.starts == 1


def test_the_source_is_asked_again(job):
    job(Stream())
    answers = [RuntimeError(BUSY), RuntimeError(BUSY), "changes"]

    def load():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert run.patiently(load) == "changes"
    answers[:] = [RuntimeError(OTHER)]
    with pytest.raises(RuntimeError, match="something else"):
        run.patiently(load)
    answers[:] = [RuntimeError(BUSY)] * 4
    with pytest.raises(GraphtideError, match="ten seconds"):
        run.patiently(load)


def test_what_is_ours_is_told_as_ours():
    assert explained(OURS).message == "the log is torn"
