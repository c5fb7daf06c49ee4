"""Calls in random order, some of which are interrupted at a random place, or find the disk full.

What was accepted is in the graph and on disk, once; both are equal; what was interrupted happened
wholly or not at all, and what a full disk refused not at all. GRAPHTIDE_SEEDS=500 draws so many
sequences for each kind of graph.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from random import Random

import pytest
from durable.faulty_calls import WINDOW
from durable.full_disk import full_disk
from engine.injection import fault_at

import graphtide as gt
from graphtide.durable.verify import verify

RULES = "EVENT S(?x) AS { ?x <ex:at> ?y }\nRULE R ON S(?x) THEN INSERT { ?x <ex:was> 1 }"
QUERY = "SELECT * { ?a <ex:is> ?b }"
CALLS = 50


class Session:
    """A graph, the numbers of accepted changes, and of those of calls that were interrupted."""

    def __init__(self, seed, folder, durability):
        self.rng, self.folder = Random(seed), folder
        self.durable = durability != "memory"
        if self.durable:
            self.graph = gt.LiveGraph.open(folder, durability=durability)
        else:
            self.graph = gt.LiveGraph()
        self.accepted, self.maybe = set(), set()
        self.raised = []
        """The errors stay, with the frames that they hold: a console keeps the last one, too."""
        self.ended = self.several = False
        if self.rng.random() < 0.4:
            self.graph.watch(WINDOW, name="window")
        if self.rng.random() < 0.4:
            self.graph.run(gt.Program.parse(RULES), name="rules")

    def call(self, number):
        """Make a random call; returns whether it changes quads."""
        graph, subject, clock = self.graph, f"<ex:{number}>", self.graph.clock
        match self.rng.randrange(14):
            case 0:
                graph.watch(QUERY, name=f"query {number}")
            case 1 if graph.queries:
                graph.queries[-1].close()
            case 2:
                graph.update(f"INSERT DATA {{ {subject} <ex:is> {number} }}")
                return True
            case 3:
                with graph.transaction() as tx:
                    tx.insert(subject, "<ex:is>", number)
                    tx.insert(subject, "<ex:was>", number)
                return True
            case 4:
                event = [(subject, "<ex:at>", "<ex:b>")]
                graph.stream("<ex:s>").push(event, time=clock + number % 2)
            case 5:
                graph.advance(clock + number % 3)
            case 6:
                graph.flush() if self.durable else len(graph)
            case 7 if self.durable and not number % 3:
                graph.checkpoint()
            case 8:
                self.several = True
                rows = [
                    (clock, tx, 1, subject, f"<ex:{name}>", '"x"', None)
                    for tx, name in enumerate(("is", "was"))
                ]
                graph.apply(gt.ChangeBatch.of(rows))
                return True
            case 9:
                graph.insert(subject, "<ex:is>", number, time=clock + 1)
                return True
            case kind if kind > 9:
                graph.insert(subject, "<ex:is>", number)
                return True
        return False

    def step(self, number):
        rng = self.rng
        place = rng.choice((0, 0, 0, *(rng.randrange(1, most) for most in (60, 400, 1500))))
        try:
            with fault_at(place, KeyboardInterrupt, returns=True):
                changes = self.call(number)
            if changes:
                self.accepted.add(number)
        except KeyboardInterrupt as raised:
            self.raised.append(raised)
            self.maybe.add(number)
        except gt.GraphtideError as error:
            assert "open it again" in str(error)  # noqa: PT017
            self.maybe.add(number)
            self.ended = True

    def step_on(self, disk, number):
        """Make a call on a disk that becomes full now and then, and has room again."""
        if disk.room and self.rng.random() < 0.2:
            disk.fill(self.rng.randrange(1, 6))
        elif self.rng.random() < 0.2:
            disk.room = True
        self.several = False
        try:
            if self.call(number):
                self.accepted.add(number)
        except gt.GraphtideError as error:
            assert "disk is full" in str(error)  # noqa: PT017
            if self.several:  # the first of its transactions may be on disk
                self.maybe.add(number)

    def finish(self):
        """The last call; an input that was interrupted and is on disk ends the graph here."""
        try:
            self.graph.insert(f"<ex:{CALLS}>", "<ex:is>", CALLS)
            if self.durable:
                self.graph.flush()
        except gt.GraphtideError as error:
            assert "open it again" in str(error)  # noqa: PT017
            self.maybe.add(CALLS)
            self.ended = True
        else:
            self.accepted.add(CALLS)

    def check(self, graph):
        found = numbers(graph)
        assert self.accepted <= found <= self.accepted | self.maybe
        return found, graph.clock, {query.name: query.count() for query in graph.queries}


def numbers(graph):
    return {int(str(s)[4:-1]) for s, p, _, _ in graph.quads() if str(p) == "<ex:is>"}


@pytest.mark.parametrize("durability", ["memory", "transaction", "batch", "none"])
@pytest.mark.parametrize("seed", range(int(os.environ.get("GRAPHTIDE_SEEDS", "12"))))
def test_what_was_accepted_is_there(tmp_path, durability, seed):
    session = Session(seed, tmp_path / "store", durability)
    for number in range(CALLS):
        if not session.ended:
            session.step(number)
    if not session.ended:
        session.finish()
    shown = None if session.ended else session.check(session.graph)
    if session.durable and (durability == "transaction" or shown):
        shutil.copytree(tmp_path / "store", tmp_path / "copy")
        assert not verify(tmp_path / "copy", gt.LiveGraph).problems
        with gt.LiveGraph.open(tmp_path / "copy") as graph:
            found = session.check(graph)
        assert shown is None or found == shown
    if session.durable:
        session.graph.close()


@pytest.mark.parametrize("durability", ["transaction", "batch", "none"])
@pytest.mark.parametrize("seed", range(int(os.environ.get("GRAPHTIDE_SEEDS", "12"))))
def test_what_a_full_disk_refused_is_not_there(tmp_path, monkeypatch, durability, seed):
    with full_disk(monkeypatch) as disk:
        session = Session(seed, tmp_path / "store", durability)
        for number in range(CALLS):
            session.step_on(disk, number)
        disk.room = True
        with suppress(gt.GraphtideError):  # what was being written just then may have failed
            session.graph.flush()
        session.finish()
        assert not session.ended
        shown = session.check(session.graph)
        session.graph.close()
        assert not verify(tmp_path / "store", gt.LiveGraph).problems
        with gt.LiveGraph.open(tmp_path / "store") as graph:
            assert session.check(graph) == shown


REGISTRATIONS = {
    "a query": lambda graph: graph.watch(QUERY, name="q"),
    "a program": lambda graph: graph.run(gt.Program.parse(RULES), name="p"),
}


def registered(graph):
    return [each.name for each in (*graph.queries, *graph.programs)]


@pytest.mark.parametrize("call", REGISTRATIONS.values(), ids=REGISTRATIONS)
def test_what_was_recorded_is_registered(tmp_path, call):
    """Also if the call is interrupted after that: else the store has what the graph has not."""
    for name in ("the first one loads code", "count"):
        with gt.LiveGraph.open(tmp_path / name) as graph, fault_at(0, returns=True) as counted:
            call(graph)
    raised = 0
    for number in range(counted.calls - 60, counted.calls + 1):
        folder = tmp_path / str(number)
        graph = gt.LiveGraph.open(folder)
        try:
            with fault_at(number, KeyboardInterrupt, returns=True):
                call(graph)
        except KeyboardInterrupt:
            raised += 1
        names = registered(graph)
        with suppress(gt.GraphtideError):  # or it has to be opened again
            graph.insert("<ex:a>", "<ex:is>", 1)
            graph.close()
            with gt.LiveGraph.open(folder) as again:
                assert registered(again) == names
        graph.close()
    assert raised > 40
