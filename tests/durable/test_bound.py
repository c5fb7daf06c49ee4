"""How far the disk may be behind with "batch": nobody is faster than a slow disk, or is lost in it.

The disk of these tests writes when it is let. What is missing is counted from outside: changes of
calls that have returned, without those in rows that the journal has appended.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from threading import Event, Semaphore, Thread

import numpy as np
import pytest

import graphtide as gt
from graphtide.durable import recorder
from graphtide.durable.chunks import decoded
from graphtide.durable.groups import GroupWriter
from graphtide.durable.journal import Journal
from graphtide.kernel.batch import DIFF
from graphtide.rdf.dictionary import TermDictionary

PROMISED = 10_000
LONG = 60
RULES = """
QUERY Known AS SELECT ?a { ?a <ex:knows> ?b }
RULE Note ON APPEAR OF Known THEN INSERT { ?a <ex:is> <ex:known> }
"""


class SlowDisk:
    """Writes one batch for each `turn`, or all of them while it is `quick`; counts changes."""

    def __init__(self, patch):
        self.turns, self.begun, self.stops = Semaphore(0), Event(), Event()
        self.quick, self.error = True, None
        self.changes = self.waiting = 0
        append, wait = Journal.append, GroupWriter.wait

        def slowly(journal, rows, calls, settled=None):
            self.begun.set()
            while not (self.quick or self.turns.acquire(timeout=0.01)):
                pass
            if self.error is not None:
                raise self.error
            append(journal, rows, calls, settled)
            for *_, chunk in rows:
                [entries] = decoded([chunk], TermDictionary())
                self.changes += sum(int(np.count_nonzero(e.rows[:, DIFF])) for e in entries)

        def stopping(writer, ready):
            if not ready():
                self.stops.set()
            self.waiting += 1
            try:
                wait(writer, ready)
            finally:
                self.waiting -= 1

        patch.setattr(Journal, "append", slowly)
        patch.setattr(GroupWriter, "wait", stopping)

    def stand_still(self):
        self.quick = False
        self.begun.clear()
        self.stops.clear()


@pytest.fixture
def disk(monkeypatch):
    return SlowDisk(monkeypatch)


@pytest.fixture
def no_clock(monkeypatch):
    """Only the number of changes counts."""
    monkeypatch.setattr(recorder, "MAX_SECONDS", 3600.0)


@pytest.fixture
def ctrl_c():
    """Heed Ctrl-C, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


class Changes:
    """Calls that change a graph, each with a number of new quads."""

    def __init__(self, graph):
        self.graph, self.made = graph, 0

    def _texts(self, many):
        first, self.made = self.made, self.made + many
        return [f"<ex:{number}>" for number in range(first, first + many)]

    def single(self, _=1):
        (text,) = self._texts(1)
        self.graph.insert(text, "<ex:knows>", text)

    def in_transaction(self, many):
        with self.graph.transaction() as tx:
            for text in self._texts(many):
                tx.insert(text, "<ex:knows>", text)

    def ids(self, many):
        nodes = self.graph.terms.encode_column(self._texts(many))
        predicate = self.graph.terms.encode_column(["<ex:knows>"] * many)
        self.graph.apply_ids(nodes, predicate, nodes)
        self.graph.terms.release(nodes)

    def update(self, many):
        triples = " . ".join(f"{text} <ex:knows> {text}" for text in self._texts(many))
        self.graph.update(f"INSERT DATA {{ {triples} }}")

    def event(self, many):
        triples = [(text, "<ex:knows>", text) for text in self._texts(many)]
        self.graph.stream("<ex:s>").push(triples, time=self.graph.clock)

    def random(self, rng):
        """A call of a random kind and size; how many changes it has made."""
        kind = rng.choice(["single", "single", "in_transaction", "ids", "update", "event"])
        most = {"single": 1, "ids": 30_000, "in_transaction": 3_000}.get(kind, 300)
        many = int(most ** rng.random())
        getattr(self, kind)(many)
        return many


def reopened(graph, folder):
    """What another process finds after a crash now: quads and transactions."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.copytree(folder, copy)
    with gt.LiveGraph.open(copy, read_only=True) as again:
        found = {tuple(map(str, quad)) for quad in again.quads()}, again.transactions
    shutil.rmtree(copy)
    return found


def content(graph):
    return {tuple(map(str, quad)) for quad in graph.quads()}, graph.transactions


@pytest.mark.parametrize("seed", range(4))
def test_at_most_so_many_changes_of_earlier_calls_are_missing(tmp_path, disk, no_clock, seed):
    rng, chance = Random(f"bound {seed}"), Random(f"disk {seed}")
    graph = gt.LiveGraph.open(tmp_path / "store")
    graph.watch("SELECT ?a { ?a <ex:knows> ?b }")
    graph.flush()
    changes, most = Changes(graph), 0
    disk.quick, ended = False, Event()

    def let_it_write():
        """Write when somebody waits for it, and else rarely."""
        while not ended.wait(0.001):
            if disk.waiting or chance.random() < 0.001:
                disk.turns.release()

    letting = Thread(target=let_it_write)
    letting.start()
    try:
        for _ in range(30):
            for _ in range(int(4000 ** rng.random())):
                changes.single()
                most = max(most, changes.made - 1 - disk.changes)
            own = changes.random(rng)
            most = max(most, changes.made - own - disk.changes)
            assert most <= PROMISED
    finally:
        ended.set()
        disk.quick = True
        letting.join()
    assert most > 1000  # it was a slow disk
    graph.flush()
    assert disk.changes == changes.made
    assert reopened(graph, tmp_path / "store") == content(graph)
    graph.close()


@pytest.mark.parametrize("kind", ["single", "in_transaction", "ids", "update", "event"])
def test_a_disk_that_stands_still_stops_who_writes(tmp_path, disk, no_clock, kind):
    graph = gt.LiveGraph.open(tmp_path / "store")
    graph.flush()
    changes, returned = Changes(graph), []
    size = 1 if kind == "single" else 250
    disk.stand_still()

    def change():
        while changes.made < 3 * PROMISED:
            getattr(changes, kind)(size)
            returned.append(changes.made)

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        try:
            assert disk.stops.wait(LONG)
            assert not changing.done()
            assert disk.changes == 0
            assert PROMISED // 2 < returned[-1] <= PROMISED + size
        finally:
            disk.quick = True
        changing.result(LONG)
    graph.close()
    assert disk.changes == 3 * PROMISED


def test_a_large_call_stops_the_next_one(tmp_path, disk, no_clock):
    graph = gt.LiveGraph.open(tmp_path)
    graph.flush()
    changes = Changes(graph)
    disk.stand_still()
    changes.ids(5 * PROMISED)
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(changes.single)
        try:
            assert disk.stops.wait(LONG)
            assert not changing.done()
        finally:
            disk.quick = True
        changing.result(LONG)
    assert disk.changes >= 5 * PROMISED
    graph.close()


class HandClock:
    """The time of a recorder, moved by hand."""

    def __init__(self, patch):
        self.now = time.monotonic()
        patch.setattr(recorder, "time", self)

    def monotonic(self):
        return self.now

    def time(self):
        return time.time()

    def sleep(self, seconds):
        time.sleep(seconds)


@pytest.mark.parametrize("between", [0, 3])
def test_nobody_goes_on_while_a_change_is_too_old(tmp_path, disk, monkeypatch, between):
    """Also after changes that only the write buffer of the graph has."""
    clock = HandClock(monkeypatch)
    graph = gt.LiveGraph.open(tmp_path)
    graph.flush()
    changes, runtime = Changes(graph), graph._runtime
    disk.stand_still()
    changes.single()
    clock.now += 0.02  # the thread closes its group
    assert disk.begun.wait(LONG)
    clock.now += 0.025
    for _ in range(between):
        changes.single()
    clock.now += 0.01  # 55 ms after the first
    until = time.monotonic() + LONG
    while runtime.max_buffered > 1 and time.monotonic() < until:
        time.sleep(0.001)
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(changes.single)
        try:
            assert disk.stops.wait(LONG)
            assert not changing.done()
            assert disk.changes == 0
        finally:
            disk.quick = True
        changing.result(LONG)
    assert disk.changes >= 1
    graph.close()
    assert disk.changes == changes.made


@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("kind", ["single", "in_transaction", "ids", "update", "event"])
def test_the_wait_can_be_interrupted_and_nothing_is_lost(
    tmp_path, monkeypatch, disk, no_clock, ctrl_c, kind, rules
):
    monkeypatch.setattr(recorder, "MAX_MISSING", recorder.PASSED_ON + 500)
    # An open group that is larger than what may be missing would be waited for until it is old.
    monkeypatch.setattr(recorder, "CLOSE_CHANGES", 500)
    graph = gt.LiveGraph.open(tmp_path / "store")
    if rules:
        graph.run(gt.Program.parse(RULES))
    graph.flush()
    changes = Changes(graph)
    changes.event(1)
    disk.stand_still()
    changes.ids(1000)

    def interrupt():
        assert disk.stops.wait(LONG)
        ctrl_c()

    interrupting = Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            getattr(changes, kind)(1 if kind == "single" else 50)
        interrupting.join(LONG)
        assert disk.changes <= 1
    finally:
        disk.quick = True
    changes.in_transaction(3)  # it takes more
    graph.flush()
    wanted = content(graph)
    assert len(wanted[0]) >= 1000 + 3
    assert reopened(graph, tmp_path / "store") == wanted
    graph.close()


@pytest.mark.parametrize("kind", ["single", "in_transaction", "ids", "update"])
@pytest.mark.parametrize("durability", ["batch", "transaction", "none"])
def test_an_interrupt_at_the_end_of_recording_is_not_recorded_twice(
    tmp_path, monkeypatch, durability, kind
):
    graph = gt.LiveGraph.open(tmp_path / "store", durability=durability)
    changes = Changes(graph)
    changes.in_transaction(2)
    graph.flush()
    name = "write" if durability == "transaction" else "_wake"
    owner = GroupWriter if durability == "transaction" else recorder.Recorder
    work, times = getattr(owner, name), []

    def interrupted(*args, **options):
        work(*args, **options)
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with suppress(KeyboardInterrupt):
        getattr(changes, kind)(1 if kind == "single" else 5)
        assert durability == "none"  # there it may be in the write buffer of the graph
        graph.flush()
    assert times
    if kind == "update" and durability == "transaction":  # undone in memory, but on disk
        with pytest.raises(gt.GraphtideError, match="open it again"):
            changes.in_transaction(3)
    else:
        changes.in_transaction(3)
        graph.flush()
        assert reopened(graph, tmp_path / "store") == content(graph)
    graph.close()
    with gt.LiveGraph.open(tmp_path / "store") as again:
        again.insert("<ex:a>", "<ex:b>", "<ex:c>")
        assert len(again) >= 6


@pytest.mark.parametrize("error", [gt.GraphtideError("no room"), ValueError("no room")])
def test_an_error_of_the_disk_reaches_the_next_call(tmp_path, disk, no_clock, error):
    graph = gt.LiveGraph.open(tmp_path / "store")
    graph.flush()
    changes, writer = Changes(graph), graph._durable.store.recorder._writer
    disk.error = error
    changes.single()
    until = time.monotonic() + LONG
    while writer.problem is None and time.monotonic() < until:
        time.sleep(0.001)
    with pytest.raises(gt.GraphtideError, match="no room"):
        changes.in_transaction(5000)
    with pytest.raises(gt.GraphtideError, match="no room"):
        changes.ids(10)
    with pytest.raises(gt.GraphtideError, match="no room"):
        graph.flush()
    disk.error = None
    changes.ids(10)
    graph.flush()
    assert reopened(graph, tmp_path / "store") == content(graph)
    graph.close()


def test_an_error_of_the_disk_reaches_who_waits(tmp_path, disk, no_clock):
    graph = gt.LiveGraph.open(tmp_path / "store")
    graph.flush()
    changes = Changes(graph)
    disk.stand_still()
    changes.ids(2 * PROMISED)
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(changes.single)
        assert disk.stops.wait(LONG)
        disk.error, disk.quick = gt.GraphtideError("no room"), True
        with pytest.raises(gt.GraphtideError, match="no room"):
            changing.result(LONG)
    disk.error = None
    graph.flush()
    assert len(graph) in (2 * PROMISED, 2 * PROMISED + 1)
    assert reopened(graph, tmp_path / "store") == content(graph)
    graph.close()


def test_threads_that_write_flush_and_checkpoint_beside_one_that_waits(tmp_path, disk, no_clock):
    graph = gt.LiveGraph.open(tmp_path / "store")
    graph.flush()
    changes = Changes(graph)
    disk.stand_still()
    changes.ids(2 * PROMISED)

    def write(name):
        for number in range(300):
            graph.insert(f"<ex:{name}>", "<ex:knows>", f"<ex:{number}>")
            if number % 100 == 50:
                graph.flush()

    with ThreadPoolExecutor(5) as pool:
        work = [pool.submit(write, name) for name in "ab"]
        assert disk.stops.wait(LONG)
        work += [pool.submit(each) for each in (graph.flush, graph.checkpoint, changes.single)]
        for _ in range(3):
            disk.turns.release()
        disk.quick = True
        for each in work:
            each.result(LONG)
    graph.flush()
    assert len(graph) == 2 * PROMISED + 600 + 1
    assert reopened(graph, tmp_path / "store") == content(graph)
    graph.close()


def test_a_graph_is_closed_while_somebody_waits(tmp_path, disk, no_clock):
    graph = gt.LiveGraph.open(tmp_path / "store")
    graph.flush()
    changes = Changes(graph)
    disk.stand_still()
    changes.ids(2 * PROMISED)
    with ThreadPoolExecutor(2) as pool:
        changing = pool.submit(changes.single)
        assert disk.stops.wait(LONG)
        closing = pool.submit(graph.close)
        disk.quick = True
        changing.result(LONG)
        closing.result(LONG)
    with gt.LiveGraph.open(tmp_path / "store") as again:
        assert len(again) == 2 * PROMISED + 1
