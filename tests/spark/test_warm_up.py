"""Warming up: the classes of Java are stored, and a session finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark import session, warm_up

CODE = """
import sys, pathlib
from graphtide.spark.warm_up import warm_up
warm_up(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_the_classes_are_stored(tmp_path, monkeypatch):
    """In a process of its own: one JVM stores its classes when it ends."""
    archive = tmp_path / "java.jsa"
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(tmp_path / "scratch")}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(archive)],
        capture_output=True, text=True, timeout=900, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert archive.stat().st_size > 20 << 20
    assert not list(tmp_path.glob("*.part"))
    monkeypatch.setattr(session, "class_archive", lambda: archive)
    java = session.local_settings(brief=True)[session.DRIVER_JAVA]
    assert f"-XX:SharedArchiveFile={archive} " in java


def test_what_is_stored_is_not_stored_again(tmp_path, monkeypatch, capsys):
    archive = tmp_path / "java.jsa"
    made = []

    def store(path):
        made.append(path)
        path.write_bytes(b"classes")

    monkeypatch.setattr(warm_up, "class_archive", lambda: archive)
    monkeypatch.setattr(warm_up, "warm_up", store)
    assert [warm_up.main("--once"), warm_up.main("--once"), warm_up.main()] == [0, 0, 0]
    assert made == [archive] * 2
    assert capsys.readouterr().err.count("java.jsa: 0 MiB") == 2


def test_a_machine_without_room(tmp_path, monkeypatch):
    monkeypatch.setattr(warm_up, "class_archive", lambda: None)
    with pytest.raises(GraphtideError, match="no directory to store classes in"):
        warm_up.main()

    @contextmanager
    def opened(*_, **__):
        yield SimpleNamespace(sparkContext=SimpleNamespace(_gateway=None))

    monkeypatch.setattr(warm_up, "open_session", opened)
    monkeypatch.setattr(warm_up, "start", lambda *_: SimpleNamespace(statuses=lambda: iter(())))
    archive = tmp_path / "java.jsa"
    Path(archive).with_suffix(".part").write_text("of a run before, which was cut off")
    with pytest.raises(GraphtideError, match="Java has not stored its classes"):
        warm_up.warm_up(archive)
    assert not list(tmp_path.iterdir())
