"""Faults between any two lines that make room for compiled loops; run in a process of its own.

What is written past the end of an array ends the process, now or later, or changes what is seen.
"""

import sys

from engine.injection import LineFaults, after_fault, places
from engine.small_graph import PREFIX, iri

from graphtide import LiveGraph, Program

EVENTS = """
EVENT A(?x, ?y) AS { ?x :a ?y }
EVENT B(?x, ?y) AS { ?x :b ?y }
EVENT C(?x, ?y) AS { ?x :a ?y . ?z :c ?y }
"""

PROGRAMS = {
    "join": """RULE R WHEN EVENT a = A(?x, ?y) EVENT b = A(?v, ?w) EVENT c = B(?u, ?t)
        THEN INSERT { ?x :met ?v . ?u :saw ?w }""",
    "facts": """RULE R WHEN FACT { ?x :knows ?z } EVENT a = A(?x, ?y) EVENT b = B(?v, ?w)
        THEN INSERT { ?z :saw ?v }""",
    "absence": """RULE R WHEN EVENT a = A(?x, ?y) NO EVENT b = B(?x, ?w) AFTER[0,3] a
        THEN INSERT { ?x :alone ?y }""",
    "hits": "RULE R ON C(?x, ?y) THEN INSERT { ?x :is ?y }",
    "tokens": """PATTERN P(?x) AS (A(?x, ?y) -> B(?x, ?y)) WITHIN 100
        RULE R ON P(?x) THEN INSERT { ?x :is :pair }""",
}

MODULES = (
    "rules/matching/", "kernel/tokens/token_table.py", "kernel/rowtable.py",
)  # fmt: skip


class World:
    """A graph with a program, and events of growing numbers."""

    def __init__(self, name):
        self.graph, self.time = LiveGraph(), 0
        self.many = 1200 if name == "tokens" else 4
        for n in range(8):
            self.graph.insert(iri(f"x{n}"), iri("knows"), iri(f"z{n}"))
        self.program = self.graph.run(Program.parse(PREFIX + EVENTS + PROGRAMS[name]))
        self.push()

    def push(self):
        """Events at some times, some of one triple and some of many."""
        stream, events = self.graph.stream(iri("in")), []
        for kind in "aab":
            self.time += 1
            y = iri(f"y{self.time % 2}")
            triples = [(iri(f"x{k}"), iri(kind), y) for k in range(self.many)]
            events += [([each], self.time) for each in triples]
            events.append(([*triples, (iri("z"), iri("c"), y)], self.time))
        stream.push_many(events)

    def state(self):
        quads = sorted(" ".join(map(str, quad[:3])) for quad in self.graph.quads())
        return quads, self.program.fired, self.program.retained


def check(name, error, most):
    """The same answers after a fault at each of some lines, whose number is returned."""
    clean = World(name)
    with LineFaults(0, MODULES) as counted:
        clean.push()
    clean.push()
    expected = clean.state()
    for at in places(counted.lines, most):
        world = World(name)
        with after_fault(at):
            try:
                with LineFaults(at, MODULES, error):
                    world.push()
            except error:
                pass  # the events were taken in, or come before the next ones
            world.push()
            assert world.state() == expected
    return counted.lines


if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        for error in (KeyboardInterrupt, MemoryError):
            print(name, error.__name__, check(name, error, 60), flush=True)
