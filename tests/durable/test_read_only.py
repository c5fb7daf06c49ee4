"""A store in a directory that this process cannot write to, as on a read-only file system."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from pathlib import Path

import pytest

import graphtide as gt
from graphtide.durable.verify import describe, verify

NOBODY = 65534


def is_reached_by_all(folder):
    """Whether every user may pass through a directory and those above it."""
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


@pytest.fixture
def place():
    """A directory that everybody reaches; those of pytest are for its own user."""
    places = (Path(name) for name in (tempfile.gettempdir(), "/var/tmp", "/dev/shm"))
    base = next((each for each in places if each.is_dir() and is_reached_by_all(each)), None)
    if base is None:
        pytest.skip("no directory of temporary files is reached by other users")
    folder = Path(tempfile.mkdtemp(dir=base))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


def forbid_writing(folder):
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


def without_rights(work):
    """Whether something succeeds in a process for which permissions hold: not that of root."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - the parent asserts
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def read(store, many):
    with pytest.raises(PermissionError):
        (store / "a file").touch()
    with gt.LiveGraph.open(store, read_only=True) as graph:
        assert len(graph) == many
        assert graph.queries[0].count() == many
        assert not graph.follow()
        assert len(graph.at(tx=1)) == 1
    assert dict(describe(store))["format"]
    assert not verify(store, gt.LiveGraph).problems
    with pytest.raises(gt.GraphtideError, match="must be writable"):
        gt.LiveGraph.open(store)


def test_a_closed_store_can_be_read(place):
    with gt.LiveGraph.open(place / "store") as graph:
        graph.watch("SELECT ?a { ?a <ex:knows> ?b }", name="known")
        for name in "abc":
            graph.insert(f"<ex:{name}>", "<ex:knows>", "<ex:x>")
    assert not (place / "store" / "journal.db-wal").exists()
    forbid_writing(place / "store")
    assert without_rights(lambda: read(place / "store", 3))


def test_what_a_crash_has_left_can_be_read(place):
    """With its write-ahead log: what only that has is not left out."""
    graph = gt.LiveGraph.open(place / "store", durability="transaction")
    graph.watch("SELECT ?a { ?a <ex:knows> ?b }", name="known")
    for name in "abcd":
        graph.insert(f"<ex:{name}>", "<ex:knows>", "<ex:x>")
    shutil.copytree(place / "store", place / "crashed")
    graph.close()
    forbid_writing(place / "crashed")
    assert without_rights(lambda: read(place / "crashed", 4))
