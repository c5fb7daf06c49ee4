"""Jars: fetched once, checked, and a clear error where they cannot be had."""

from __future__ import annotations

from hashlib import sha256

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark.kafka import jars


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Maven repository of one jar, in a directory."""
    (tmp_path / "maven" / "org" / "x" / "1").mkdir(parents=True)
    (tmp_path / "maven" / "org" / "x" / "1" / "x-1.jar").write_bytes(b"jar")
    locked = ((sha256(b"jar").hexdigest(), "org/x/1/x-1.jar"),)
    monkeypatch.setattr(jars, "jars", lambda wanted: locked)
    monkeypatch.setenv("GRAPHTIDE_MAVEN", (tmp_path / "maven").as_uri() + "/")
    monkeypatch.setenv("GRAPHTIDE_JARS", str(tmp_path / "cache"))
    return tmp_path


def test_a_jar_is_fetched_once(repository):
    (path,) = jars.fetch_jars("connector")
    assert path.read_bytes() == b"jar" and path.parent == repository / "cache"
    (repository / "maven" / "org" / "x" / "1" / "x-1.jar").unlink()
    assert jars.kafka_settings() == {"spark.jars": str(path)}
    assert [each.name for each in path.parent.iterdir()] == ["x-1.jar"]


def test_a_damaged_jar_is_fetched_again(repository):
    (repository / "cache").mkdir()
    (repository / "cache" / "x-1.jar").write_bytes(b"half a j")
    assert jars.fetch_jars("broker")[0].read_bytes() == b"jar"


def test_another_jar_than_the_locked_one_is_rejected(repository):
    (repository / "maven" / "org" / "x" / "1" / "x-1.jar").write_bytes(b"other")
    with pytest.raises(GraphtideError, match="is not the jar that it should be"):
        jars.fetch_jars("connector")
    assert not (repository / "cache").exists()


def test_what_cannot_be_fetched_is_said_with_a_hint(repository, monkeypatch):
    for url in ((repository / "nowhere").as_uri(), "no url"):
        monkeypatch.setenv("GRAPHTIDE_MAVEN", url)
        with pytest.raises(GraphtideError, match=r"cannot be fetched[^$]*GRAPHTIDE_MAVEN"):
            jars.fetch_jars("connector")


def test_the_lock_names_each_jar_once_with_its_checksum():
    found = [*jars.jars("connector"), *jars.jars("broker")]
    assert len(jars.jars("connector")) == 4 and len(jars.jars("broker")) == 46
    assert all(len(sum_) == 64 and path.endswith(".jar") for sum_, path in found)
    names = [path.rsplit("/", 1)[1] for _, path in found]
    assert len(set(names)) == len(names)
