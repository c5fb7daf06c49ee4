"""Groups of inputs: what is on disk when, in which order, and with which terms."""

from __future__ import annotations

import shutil
import time
from random import Random
from threading import Event

import pytest

import graphtide as gt
from graphtide.durable import snapshot, store
from graphtide.durable.chunks import decoded
from graphtide.durable.journal import Journal
from graphtide.rdf.dictionary import TermDictionary

RULES = """
QUERY Known AS SELECT ?a ?b { ?a <ex:knows> ?b }
RULE Tell ON APPEAR OF Known THEN CALL tell(?a)
"""


def inserted(folder):
    """The quads that the rows of a journal insert, read beside the process that writes."""
    journal = Journal(folder, writes=False)
    terms = TermDictionary()
    try:
        return {
            tuple(terms.text(term) for term in quad[:3])
            for row in journal.rows(0, 0)
            for entry in decoded([row.chunk], terms)[0]
            if entry.kind == "changes"
            for quad in entry.rows[:, 2:].tolist()
        }
    finally:
        journal.close()


def wait_for(wanted, folder):
    """Wait until quads are in a journal, without a look at the graph."""
    wait_until(lambda: wanted <= inserted(folder))


def wait_until(holds):
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_change_gets_to_disk_by_itself(tmp_path):
    graph = gt.LiveGraph.open(tmp_path)
    quads = [(f"<ex:{number}>", "<ex:knows>", "<ex:b>") for number in range(3)]
    for quad in quads:  # the first wakes the thread; then nothing is under way; then one more
        graph.insert(*quad)
        wait_for({quad}, tmp_path)
    with graph.transaction() as tx:
        tx.insert("<ex:c>", "<ex:knows>", "<ex:d>")
    wait_for({("<ex:c>", "<ex:knows>", "<ex:d>")}, tmp_path)
    graph.close()


def test_no_change_waits_longer_than_its_group(tmp_path):
    """What is in the write buffer of a graph belongs to a group that has begun."""
    graph = gt.LiveGraph.open(tmp_path)
    quads = {(f"<ex:{number}>", "<ex:knows>", f"<ex:{number % 7}>") for number in range(5000)}
    for quad in quads:
        graph.insert(*quad)
    wait_for(quads, tmp_path)
    graph.close()


def test_a_call_is_never_on_disk_before_its_input(tmp_path):
    graph = gt.LiveGraph.open(tmp_path)
    journal = graph._durable.store.recorder
    seen = []

    def recorded():
        """The finished calls on disk, after what the thread may do at any moment."""
        journal._writer.write()
        return [row for _, row in graph._durable.store.journal.every_call(0)]

    graph.run(gt.Program.parse(RULES), functions={"tell": lambda _: seen.append(recorded())})
    graph.flush()
    with graph.lock:  # the thread cannot close the group
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
        assert recorded() == []
    graph.flush()
    assert len(recorded()) == 1
    assert seen == [[]]
    graph.close()


def test_terms_are_right_while_others_come_and_are_freed(tmp_path):
    """The thread reads texts while the graph makes new terms, and frees what nobody holds."""
    rng = Random(5)
    graph = gt.LiveGraph.open(tmp_path / "store")
    present = set()
    for number in range(30_000):
        quad = f"<ex:{number}>", "<ex:knows>", f'"{rng.random()}"'
        graph.insert(*quad)
        present.add(quad)
        if rng.random() < 0.97:
            gone = present.pop()
            graph.delete(*gone)
        if rng.random() < 0.0003:
            graph.flush()
    graph.flush()
    assert graph.terms.generation > 0  # terms were freed, and their ids given again
    shutil.copytree(tmp_path / "store", tmp_path / "crashed")
    graph.close()
    with gt.LiveGraph.open(tmp_path / "crashed") as again:
        assert {tuple(map(str, quad[:3])) for quad in again.quads()} == present


def test_many_small_transactions_make_a_snapshot(tmp_path, monkeypatch):
    """What has to be replayed after a crash is bounded: rows count, not only their changes."""
    monkeypatch.setattr(store, "FIRST_SNAPSHOT", 1000)
    with gt.LiveGraph.open(tmp_path, durability="transaction") as graph:
        for number in range(100):
            graph.insert(f"<ex:{number % 5}>", "<ex:knows>", "<ex:a>", time=number)
        wait_until(lambda: list(tmp_path.glob("snapshot-*")))


@pytest.mark.parametrize("durability", ["batch", "transaction", "none"])
def test_while_a_snapshot_is_written_changes_get_to_disk(tmp_path, monkeypatch, durability):
    begun, may_end = Event(), Event()
    write = snapshot.write_snapshot

    def slowly(*what):
        begun.set()
        assert may_end.wait(60)
        return write(*what)

    monkeypatch.setattr(snapshot, "write_snapshot", slowly)
    monkeypatch.setattr(store, "FIRST_SNAPSHOT", 100)
    graph = gt.LiveGraph.open(tmp_path, durability=durability)
    graph.watch("SELECT ?a { ?a <ex:knows> ?b }", name="known")
    for number in range(200):  # the journal is long, the graph is small
        graph.insert("<ex:a>", "<ex:knows>", f"<ex:{number}>")
        graph.delete("<ex:a>", "<ex:knows>", f"<ex:{number}>")
    graph.flush()
    assert begun.wait(60)
    quad = "<ex:c>", "<ex:knows>", "<ex:d>"
    graph.insert(*quad)
    if durability == "none":
        graph.flush()
    wait_for({quad}, tmp_path)
    assert not list(tmp_path.glob("snapshot-*.packed"))
    may_end.set()
    graph.close()
    with gt.LiveGraph.open(tmp_path) as again:
        assert again.queries[0].count() == 1
    assert len(list(tmp_path.glob("snapshot-*.packed"))) == 2  # unasked, and at the end
