"""Plain writes between events whose rules raise, at random: what is stored is what was given.

Every write has terms of its own, so that an id which is freed while a call holds it is soon that of
another term. Terms are freed at every safe point. GRAPHTIDE_SEEDS=5000 draws so many graphs.
"""

from __future__ import annotations

import os
from random import Random

import pytest

import graphtide as gt
from graphtide.engine import reclaim, runtime
from graphtide.errors import ActionError, CascadeError, GraphtideError

PROGRAM = """PREFIX : <http://e/>
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
EVENT C(?x) AS { ?x :c ?y }
QUERY Kept AS SELECT ?x { ?x :kept ?y }
RULE R ON A(?x) THEN CALL fail(?x)
RULE Loop ON B(?x) THEN EMIT :in { [] :b 1 }
RULE Later WHEN EVENT c = C(?x) NO EVENT a = A(?x) AFTER[0,3] c THEN CALL fail(?x)
RULE Row ON APPEAR OF Kept THEN CALL fail(?x)
"""
WINDOW = """REGISTER RSTREAM <http://e/o> AS SELECT ?x
    FROM NAMED WINDOW <http://e/w> ON <http://e/in> [RANGE 4 STEP 2]
    { WINDOW <http://e/w> { ?x <http://e/c> ?y } }"""


def iri(name):
    return f"<http://e/{name}>"


class World:
    """A graph, and the quads that were given to it: `maybe`, by calls that raised."""

    def __init__(self, rng, make=gt.LiveGraph):
        self.rng, self.number = rng, 0
        self.wanted, self.maybe = set(), set()
        self.graph = make(strict=rng.random() < 0.3)

        def fail(_):
            if rng.random() < 0.7:
                raise ValueError

        self.graph.run(
            gt.Program.parse(PROGRAM), functions={"fail": fail}, max_firings=5,
            on_error=rng.choice(("raise", "raise", "skip")),
        )  # fmt: skip
        self.graph.stream(iri("in"), lateness=rng.choice((0, 0, 2)))
        if rng.random() < 0.5:
            self.graph.watch(WINDOW, name="window").on_result(lambda _: None)
        if rng.random() < 0.3:
            self.graph.watch("SELECT * { ?s ?p ?o }").on_delta(lambda _: None)

    def fresh(self, predicate):
        self.number += 1
        return iri(f"s{self.number}"), iri(predicate), f'"v{self.number}"'

    def calls(self, call):
        """Make a call, which may raise what a rule has raised; whether it has returned.

        An event of before that raised may have left a later clock than was seen.
        """
        try:
            call()
        except (ActionError, CascadeError):
            return False
        except GraphtideError as error:
            assert "runs backwards" in str(error)  # noqa: PT017
            return False
        return True

    def event(self):
        kind, time = self.rng.choice("abcc"), self.graph.clock + self.rng.choice((0, 0, 1, 3))
        triple, stream = self.fresh(kind), self.graph.stream(iri("in"))
        match self.rng.randrange(4):
            case 0:
                self.calls(lambda: self.graph.publish([triple], time=time))
            case 1:
                more = self.fresh("c")
                self.calls(lambda: stream.push_many([([triple], time), ([more], time)]))
            case _:
                self.calls(lambda: stream.push([triple], time=time))

    def write(self):
        rng, graph = self.rng, self.graph
        quad = self.fresh(rng.choice(("p", "p", "kept")))
        time = rng.choice((None, None, graph.clock + rng.choice((0, 1, 4))))
        change = graph.insert
        match rng.randrange(6):
            case 0 if self.wanted - self.maybe:
                change, quad = graph.delete, rng.choice(sorted(self.wanted - self.maybe))
            case 1:

                def change(*quad, time):
                    with graph.transaction(time=time) as tx:
                        tx.insert(*quad)

            case 2:

                def change(*quad, time):
                    graph.update(f"INSERT DATA {{ {' '.join(quad)} }}", time=time)

            case 3:
                at = graph.clock if time is None else time

                def change(*quad, time):
                    graph.apply(gt.ChangeBatch.of([(at, 0, 1, *quad, None)]))

            case _:
                pass
        if not self.calls(lambda: change(*quad, time=time)):
            self.maybe.add(quad)
        elif change == graph.delete:
            self.wanted.discard(quad)
        else:
            self.wanted.add(quad)

    def look(self):
        graph = self.graph
        match self.rng.randrange(4):
            case 0:
                self.calls(lambda: graph.advance(graph.clock + self.rng.choice((0, 2, 5))))
            case 1:
                self.calls(lambda: len(graph))
            case _:
                pass

    def check(self):
        found = set()
        while not self.calls(lambda: found.update(map(texts, self.graph.quads()))):
            pass
        self.check_equal(found)

    def check_equal(self, found):
        assert found - self.maybe == self.wanted - self.maybe


def texts(quad):
    return tuple(map(str, quad[:3]))


def run(seed, make=gt.LiveGraph, many=120):
    rng = Random(seed)
    world = World(rng, make)
    for _ in range(many):
        rng.choice((world.event, world.event, world.write, world.write, world.look))()
    world.check()
    return world


@pytest.fixture(autouse=True)
def _frees_always(monkeypatch):
    for module in (reclaim, runtime):
        monkeypatch.setattr(module, "ALWAYS", True)


@pytest.mark.parametrize("seed", range(int(os.environ.get("GRAPHTIDE_SEEDS", "12"))))
def test_what_is_stored_is_what_was_given(seed):
    run(seed)


@pytest.mark.parametrize("durability", ["transaction", "batch", "none"])
def test_what_a_store_has_is_what_was_given(tmp_path, durability):
    def make(**options):
        return gt.LiveGraph.open(tmp_path, durability=durability, **options)

    world = run(7, make)
    world.graph.close()
    functions = {"fail": lambda _: None}
    with gt.LiveGraph.open(tmp_path, functions=functions) as graph:
        world.check_equal(set(map(texts, graph.quads())))
