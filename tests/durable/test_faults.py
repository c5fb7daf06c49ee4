"""Damage and shortage: a full disk, files that are cut or have a bit flipped, interrupts.

Whatever happens, a store is opened with whole transactions or not at all; damage is reported with
its place.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
from contextlib import closing
from random import Random

import pytest

import graphtide as gt
from graphtide.cli.main import main
from graphtide.durable.tables import COLUMNS
from graphtide.durable.verify import verify

pytestmark = pytest.mark.slow
FLIPS = int(os.environ.get("GRAPHTIDE_FLIPS", "60"))
KNOWS = "<ex:knows>"
RULES = """
QUERY Known AS SELECT ?a { ?a <ex:knows> ?b }
RULE Note ON APPEAR OF Known THEN CALL tell(?a) ; INSERT { ?a <ex:is> <ex:known> }
"""


def write(graph, first, last):
    for number in range(first, last):
        with graph.transaction(time=number) as tx:
            tx.insert(f"<ex:{number}>", KNOWS, f"<ex:{number + 1}>")
            tx.insert(f"<ex:{number}>", "<ex:size>", number)


def count(graph):
    """How many transactions are there; each is whole."""
    found = {str(s) for s, p, *_ in graph.quads() if str(p) == KNOWS}
    sizes = {str(s) for s, p, *_ in graph.quads() if str(p) == "<ex:size>"}
    assert found == sizes == {f"<ex:{number}>" for number in range(len(found))}
    return len(found)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A store as a kill leaves it: two snapshots, rows after them, a write-ahead log."""
    folder = tmp_path_factory.mktemp("faults") / "store"
    with gt.LiveGraph.open(folder, durability="transaction") as graph:
        query = graph.watch(f"SELECT ?a {{ ?a {KNOWS} ?b }}", name="known")
        write(graph, 0, 20)
        query.cursor("mailer").ack(10)
    graph = gt.LiveGraph.open(folder, durability="transaction")
    write(graph, 20, 30)
    graph.checkpoint()
    write(graph, 30, 40)
    copy = folder.with_name("crashed")
    shutil.copytree(folder, copy)
    graph.close()
    assert (copy / "journal.db-wal").stat().st_size
    return copy


def opened(folder):
    """How many transactions a store has; None if it cannot be opened, and says where and why."""
    try:
        with gt.LiveGraph.open(folder) as graph:
            (query,) = graph.queries or (None,)
            many = count(graph)
            assert query is None or query.count() == many
    except gt.GraphtideError as error:
        problem = str(error)
    else:
        return many
    assert str(folder) in problem
    return None


FILES = ["journal.db", "journal.db-wal", "journal.db-shm", "last", "snapshot"]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found(crashed, tmp_path, name):
    rng = Random(name)
    outcomes = set()
    many = FLIPS if name in ("journal.db", "journal.db-wal", "snapshot") else FLIPS // 4
    for turn in range(many):
        folder = tmp_path / str(turn)
        shutil.copytree(crashed, folder)
        path = rng.choice(sorted(folder.glob(f"{name}*.packed" if name == "snapshot" else name)))
        data = bytearray(path.read_bytes())
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        found = opened(folder)
        outcomes.add(found)
        assert found in (None, 40), at  # unused bytes of a page mean nothing
        shutil.rmtree(folder)
    assert 40 in outcomes or name not in ("snapshot", "journal.db-shm", "last")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_is_found(crashed, tmp_path, name):
    rng = Random(f"cut {name}")
    for turn in range(FLIPS // 3):
        folder = tmp_path / str(turn)
        shutil.copytree(crashed, folder)
        path = rng.choice(sorted(folder.glob(f"{name}*.packed" if name == "snapshot" else name)))
        os.truncate(path, rng.randrange(path.stat().st_size))
        found = opened(folder)
        assert found in (None, 40)
        shutil.rmtree(folder)


def _value_changed(folder, table, column):
    """Change a value of the first row of a table, as a flipped bit may."""
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        ((found, row),) = database.execute(f"SELECT {column}, rowid FROM {table} LIMIT 1")
        other = found + type(found)(1) if isinstance(found, (int, float)) else f"{found}0"
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, row))


@pytest.mark.parametrize(
    ("table", "column"),
    [(t, c) for t in ("snapshots", "cursors") for c in COLUMNS[t]],
)
def test_what_is_beside_the_journal_has_checksums(crashed, tmp_path, capsys, table, column):
    folder = tmp_path / "store"
    shutil.copytree(crashed, folder)
    _value_changed(folder, table, column)
    for options in ({}, {"read_only": True}):
        with pytest.raises(gt.GraphtideError, match="does not have its checksum") as raised:
            gt.LiveGraph.open(folder, **options)
        assert str(folder) in str(raised.value)
    assert any(
        "does not have its checksum" in problem for problem in verify(folder, gt.LiveGraph).problems
    )
    assert main(["store", "compact", str(folder), "--cut"]) == 0
    assert "cut after row" in capsys.readouterr().err
    assert opened(folder) == 40
    assert not verify(folder, gt.LiveGraph).problems


def test_a_property_of_the_store_has_a_checksum(crashed, tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(crashed, folder)
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        database.execute(
            "UPDATE meta SET value = replace(value, 'alse', 'rue') WHERE key = 'options'"
        )
        database.execute("UPDATE meta SET value = value || ' ' WHERE key = 'options'")
    with pytest.raises(gt.GraphtideError, match="the property options does not have its checksum"):
        gt.LiveGraph.open(folder)


def test_a_call_of_another_firing_is_none(tmp_path):
    """A finished call is not made again; one whose id has changed would be taken for another."""
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.run(gt.Program.parse(RULES), functions={"tell": lambda _: None})
        write(graph, 0, 1)
        graph.flush()
        shutil.copytree(tmp_path, tmp_path / "crashed")
    _value_changed(tmp_path / "crashed", "calls", "firing")
    with pytest.raises(gt.GraphtideError, match="has a call that does not have its checksum"):
        gt.LiveGraph.open(tmp_path / "crashed", functions={"tell": lambda _: None})


def test_both_snapshots_may_be_lost_while_the_journal_is_there(crashed, tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(crashed, folder)
    for path in folder.glob("snapshot-*.packed"):
        path.write_bytes(path.read_bytes()[:-1])
    problems = verify(folder, gt.LiveGraph).problems
    assert len(problems) == 2
    assert all("snapshot is damaged" in problem for problem in problems)
    assert opened(folder) == 40


def test_a_snapshot_that_was_cut_short_is_not_used(crashed, tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(crashed, folder)
    (folder / "snapshot-999.tmp").write_bytes(b"half")
    assert opened(folder) == 40


def test_a_newer_format_is_refused(crashed, tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(crashed, folder)
    with sqlite3.connect(folder / "journal.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(gt.GraphtideError, match="newer version of graphtide: format 99"):
        gt.LiveGraph.open(folder)


def test_something_else_is_not_a_store(tmp_path):
    (tmp_path / "journal.db").write_bytes(b"no database" * 100)
    with pytest.raises(gt.GraphtideError, match=r"journal\.db"):
        gt.LiveGraph.open(tmp_path)


def fill(graph, acknowledged):
    """Write until the disk is full."""
    for number in range(10, 1000):
        write(graph, number, number + 1)
        graph.flush()
        acknowledged.append(number + 1)


@pytest.mark.parametrize("durability", ["transaction", "batch"])
def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path, durability):
    graph = gt.LiveGraph.open(tmp_path, durability=durability)
    write(graph, 0, 10)
    graph.flush()
    size = max(path.stat().st_size for path in tmp_path.iterdir())
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    acknowledged = []
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, limits[1]))
        with pytest.raises(gt.GraphtideError, match=r"journal\.db"):
            fill(graph, acknowledged)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    there = count(graph)
    assert 10 < there < 1000
    assert durability == "batch" or there == acknowledged[-1]
    write(graph, there, there + 5)  # there is room again
    graph.flush()
    graph.close()
    assert opened(tmp_path) == there + 5


def test_an_interrupt_while_programs_run_leaves_the_store_whole(tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    graph = gt.LiveGraph.open(tmp_path, durability="transaction")
    graph.run(gt.Program.parse(RULES), functions={"tell": interrupt})
    with pytest.raises(KeyboardInterrupt):
        write(graph, 0, 1)
    with pytest.raises(gt.GraphtideError, match="interrupted by KeyboardInterrupt"):
        write(graph, 1, 2)
    graph.close()
    told = []
    with gt.LiveGraph.open(tmp_path, functions={"tell": told.append}) as graph:
        assert len(told) == 1
        assert ("<ex:0>", "<ex:is>", "<ex:known>") in graph
        write(graph, 1, 2)
        assert count(graph) == 2
