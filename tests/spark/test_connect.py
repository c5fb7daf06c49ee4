"""Spark Connect: `watch` works, `run` says why it does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark import run
from graphtide.spark.watermark import delay_of, lateness_of

REMOTE = "pyspark.sql.connect.session"


def remote(**attributes):
    """An object of Spark Connect: its packages are not needed to tell."""
    return type("Remote", (), {"__module__": REMOTE, **attributes})()


def test_run_is_refused_with_the_reason(tmp_path):
    program = Program.parse("QUERY Q AS SELECT ?a { ?a <ex:p> ?b }")
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(GraphtideError, match="this session is one of Spark Connect") as caught:
        run(remote(), program, changes=remote(isStreaming=True), **places)
    assert "watch works on Spark Connect" in caught.value.hint
    assert not list(tmp_path.iterdir())


class Field:
    def __init__(self, **metadata):
        self.metadata = metadata


class Schema:
    fields = (Field(), Field(**{"spark.watermarkDelayMs": 1500}))


class Unmarked:
    fields = (Field(),)


def test_a_watermark_is_seen_by_its_column():
    assert lateness_of(remote(isStreaming=True, schema=Schema), 1000) == 2
    assert delay_of(remote(isStreaming=True, schema=Unmarked)) is None
    assert delay_of(remote(isStreaming=False, schema=Schema)) is None


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="needs pyspark[connect]")
def test_watch_on_a_server(tmp_path):
    """In a process of its own: one that has a classic session cannot have a remote one."""
    job = Path(__file__).with_name("connect_job.py")
    command = [sys.executable, str(job), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "[0, 1, 2] [1, 2]"
