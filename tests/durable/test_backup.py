"""Copies of stores that are in use, and writers that are not alone."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest

import graphtide as gt
from graphtide.cli.main import main
from graphtide.durable.verify import verify

MODES = ("transaction", "batch", "none")
KNOWS = "<ex:knows>"


def subjects(folder, **options):
    with gt.LiveGraph.open(folder, **options) as graph:
        (query,) = graph.queries
        found = {str(quad[0]) for quad in graph.quads()}
        assert query.count() == len(found)
    return found


@pytest.mark.parametrize("durability", MODES)
def test_a_backup_has_everything_so_far(tmp_path, durability):
    store, copy = tmp_path / "store", tmp_path / "copies" / "copy"
    with gt.LiveGraph.open(store, durability=durability) as graph:
        graph.watch(f"SELECT ?a {{ ?a {KNOWS} ?b }}", name="known").cursor("mailer").ack(-1)
        graph.insert("<ex:a>", KNOWS, "<ex:x>")
        assert graph.checkpoint()
        graph.insert("<ex:b>", KNOWS, "<ex:x>")
        graph.store.backup(copy)
        graph.insert("<ex:c>", KNOWS, "<ex:x>")
        assert sorted(path.name for path in copy.iterdir()) == ["journal.db", "snapshot-2.packed"]
        assert not verify(copy, gt.LiveGraph).problems
        with gt.LiveGraph.open(copy) as other:
            assert [delta.seq for delta in other.queries[0].cursor("mailer")] == [0, 1]
            other.insert("<ex:d>", KNOWS, "<ex:x>")
    assert subjects(copy) == {"<ex:a>", "<ex:b>", "<ex:d>"}
    assert subjects(store) == {"<ex:a>", "<ex:b>", "<ex:c>"}
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_backups_of_another_process_are_whole(tmp_path, capsys):
    """While snapshots are written and dropped: the command reads only what the writer has."""
    store, stops = tmp_path / "store", Event()
    graph = gt.LiveGraph.open(store, durability="transaction", retain="0s")
    graph.watch(f"SELECT ?a {{ ?a {KNOWS} ?b }}", name="known")
    graph.insert("<ex:0>", KNOWS, "<ex:x>")

    def write():
        number = 1
        while not stops.is_set():
            graph.insert(f"<ex:{number}>", KNOWS, "<ex:x>")
            number += 1
            if number % 5 == 0:
                graph.checkpoint()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for turn in range(10):
                assert main(["store", "backup", str(store), str(tmp_path / str(turn))]) == 0
        finally:
            stops.set()
        writing.result()
    graph.close()
    sizes = []
    for turn in range(10):
        found = subjects(tmp_path / str(turn), read_only=True)
        assert found == {f"<ex:{number}>" for number in range(len(found))}
        sizes.append(len(found))
    assert sizes == sorted(sizes)
    assert capsys.readouterr().err == ""


def test_a_backup_writes_over_nothing(tmp_path, capsys):
    with gt.LiveGraph.open(tmp_path / "store") as graph:
        graph.insert("<ex:a>", KNOWS, "<ex:x>")
        with pytest.raises(gt.GraphtideError, match="there is something already"):
            graph.store.backup(tmp_path / "store")
        (tmp_path / "file").touch()
        for place in (tmp_path / "file", tmp_path / "file" / "in"):
            with pytest.raises(gt.GraphtideError, match="file"):
                graph.store.backup(place)
        (tmp_path / "empty").mkdir()
        graph.store.backup(tmp_path / "empty")
    assert len(gt.LiveGraph.open(tmp_path / "empty")) == 1
    assert main(["store", "backup", str(tmp_path / "no"), str(tmp_path / "copy")]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


WRITER = f"""
import sys
import graphtide as gt
with gt.LiveGraph.open(sys.argv[1], retain="0s", durability="transaction") as graph:
    graph.insert("<ex:other>", "{KNOWS}", "<ex:x>")
"""


@pytest.mark.parametrize("durability", MODES)
def test_a_row_of_another_writer_is_seen_before_anything_is_acknowledged(tmp_path, durability):
    """Who deletes the file with the lock lets a second process in."""
    graph = gt.LiveGraph.open(tmp_path, durability=durability, retain="0s")
    graph.insert("<ex:a>", KNOWS, "<ex:x>")
    graph.flush()
    (tmp_path / "lock.db").unlink()
    subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=True)
    with pytest.raises(gt.GraphtideError, match="another process has written"):  # noqa: PT012
        graph.insert("<ex:b>", KNOWS, "<ex:x>")
        graph.flush()
    with pytest.raises(gt.GraphtideError, match="another process has written"):
        graph.close()
    with gt.LiveGraph.open(tmp_path) as again:
        assert {str(quad[0]) for quad in again.quads()} == {"<ex:a>", "<ex:other>"}
    assert not verify(tmp_path, gt.LiveGraph).problems


@pytest.mark.parametrize("text", ["3x", "", "[3]", "null"])
def test_a_damaged_format_is_reported_with_its_place(tmp_path, text):
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.insert("<ex:a>", KNOWS, "<ex:x>")
    with closing(sqlite3.connect(tmp_path / "journal.db")) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'format'", (text,))
    for options in ({}, {"read_only": True}):
        with pytest.raises(gt.GraphtideError, match=r"journal\.db"):
            gt.LiveGraph.open(tmp_path, **options)
    assert verify(tmp_path, gt.LiveGraph).problems
    shutil.rmtree(tmp_path)
