"""A fault anywhere while rules and patterns handle input: each input happens wholly or not at all.

Each test fails at some calls of functions of the package, or at every one, makes one more call, and
compares all that can be seen with a run without a fault.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from engine.injection import InjectedFault, after_fault, fault_at, places
from engine.small_graph import PREFIX, commit, insert, quad

from graphtide import LiveGraph, Program
from graphtide.errors import GraphtideError

EVENTS = """
EVENT Met(?a) AS { ?a :meets ?b }
EVENT Left(?a) AS { ?a :leaves ?b }
EVENT Rang(?a, ?b) AS { ?a :rings ?b }
"""

JOIN = """
RULE Twice WHEN EVENT m = Met(?a) EVENT l = Left(?a) AFTER[0,5] m
  THEN INSERT { ?a :is :gone }
RULE Noted ON Met(?a) THEN INSERT { ?a :is :seen }
"""

FACTS = """
RULE Knows WHEN FACT { ?a :knows ?b } EVENT m = Met(?a) THEN INSERT { ?b :likes ?a }
RULE Liked WHEN FACT { ?b :likes ?a } EVENT m = Met(?a) EVENT l = Left(?a)
  THEN DELETE { ?b :likes ?a }; INSERT { ?a :knows ?a }
"""

WAITING = """
RULE Stayed WHEN EVENT m = Met(?a) NO EVENT l = Left(?a) AFTER[0,3] m
  THEN INSERT { ?a :is :here }
"""

PATTERNS = """
PATTERN Pair(?a) AS (Met(?a) -> Left(?a)) WITHIN 9
PATTERN Silent(?a) AS Met(?a) -> NOT Left(?a) WITHIN 3
RULE Paired ON Pair(?a) THEN INSERT { ?a :is :paired }
RULE Quiet ON Silent(?a) THEN INSERT { ?a :is :silent }
"""

CASCADE = """
EVENT Liked(?a, ?b) AS { ?a :likes ?b }
QUERY Friends AS SELECT ?a ?b { ?a :likes ?b . ?b :knows ?a }
EVENT Befriended(?a, ?b) ON APPEAR OF Friends(?a, ?b)
RULE One ON Met(?a) THEN INSERT { ?a :likes :b }
RULE Two ON Befriended(?a, ?b) THEN EMIT :out { ?a :likes ?b }; INSERT { ?b :is :friend }
RULE Three ON Liked(?a, ?b) THEN INSERT { ?a :likes :c }
RULE Four WHEN EVENT x = Liked(?a, ?b) EVENT m = Met(?a) THEN EMIT :out { ?a :leaves ?b }
RULE Five ON Left(?a) THEN DELETE { ?a :likes :c }
"""

RETRACT = """
PATTERN Both(?a) AS (Met(?a) -> Left(?a)) WITHIN 9
RULE Forget WHEN EVENT r = Rang(?a, ?b) EVENT m = Met(?a)
  THEN RETRACT m; INSERT { ?a :is :forgotten }
RULE Pairs WHEN EVENT m = Met(?a) EVENT l = Left(?a) THEN INSERT { ?a :is :gone }
RULE Whole ON Both(?a) THEN INSERT { ?a :is :whole }
"""

AGENDA = """
QUERY Likes AS SELECT ?a ?b { ?a :likes ?b }
EVENT Liking(?a, ?b) ON APPEAR OF Likes(?a, ?b)
RULE Low PRIORITY 1 ON Met(?a) THEN INSERT { ?a :likes :b }
RULE High PRIORITY 5 WHEN FACT { ?a :knows ?c } EVENT m = Met(?a) THEN INSERT { ?a :likes ?c }
RULE Shown PRIORITY 3 ON Liking(?a, ?b) THEN INSERT { ?b :is :liked }
RULE Here PRIORITY 2 WHEN EVENT m = Met(?a) NO EVENT l = Left(?a) AFTER[0,2] m
  THEN INSERT { ?a :is :here }
"""

CALL = """
RULE Tell ON Met(?a) THEN CALL tell(?a); INSERT { ?a :is :told }
RULE Fail ON Met(?a) THEN CALL fail(?a); INSERT { ?a :is :failed }
RULE Later WHEN FACT { ?a :is :told } EVENT l = Left(?a) THEN CALL tell(?a)
"""

WINDOW = """REGISTER RSTREAM :seen AS SELECT ?a ?c
    FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 2] WHERE { WINDOW :w { ?a :meets ?b } ?b :knows ?c }"""

EMITTED = """REGISTER ISTREAM :outs AS SELECT ?a
    FROM NAMED WINDOW :w ON :out [RANGE 4 STEP 2] WHERE { WINDOW :w { ?a :likes ?b } }"""


@cache
def parsed(text):
    """A program, which many graphs run."""
    return Program.parse(PREFIX + EVENTS + text)


class World:
    """A graph with programs, a query with a callback, perhaps windows, and what they have done."""

    def __init__(self, texts, *, windows=(), **options):
        self.graph = LiveGraph()
        self.calls, self.heard = [], []
        functions = {"tell": self.tell, "fail": self.fail}
        used = [{k: f for k, f in functions.items() if f"CALL {k}" in text} for text in texts]
        self.programs = [
            self.graph.run(parsed(text), functions=own, **options)
            for text, own in zip(texts, used, strict=True)
        ]
        self.query = self.graph.watch(PREFIX + "SELECT ?a ?b { ?a :is ?b }")
        self.query.on_delta(lambda delta: self.heard.append((delta.time, lines(delta))))
        self.windows = [self.graph.watch(PREFIX + text) for text in windows]
        insert(self.graph, "a knows b", "b knows a", "c likes a", time=1)
        self.graph.publish([quad("a meets c")], time=2)
        self.push((3, "c meets a"), (3, "c rings b"))

    def tell(self, who):
        self.calls.append(str(who))

    def fail(self, who):
        self.calls.append(f"fail {who}")
        if "b" in str(who)[-2:]:
            raise ValueError("no")

    @property
    def stream(self):
        return self.graph.stream(quad("s")[0])

    def push(self, *rows):
        for time, text in rows:
            self.stream.push([quad(text)], time=time)

    def push_ids(self, *rows):
        encode = self.graph.terms.encode
        ids = [[*map(encode, quad(text)), 0] for _, text in rows]
        self.stream.push_ids(np.array([time for time, _ in rows]), np.array(ids, np.int32))

    def publish(self, text, time):
        self.graph.publish([quad(text)], time=time)

    def state(self):
        """All that can be seen, in order."""
        graph, stats = self.graph, self.graph.stats()
        return {
            "quads": sorted(" ".join(map(str, each[:3])) for each in graph.quads()),
            "clock": graph.clock,
            "counts": (stats.transactions, stats.inserted, stats.deleted, stats.redundant),
            "programs": [program_state(each) for each in self.programs],
            "deltas": [(d.time, d.seq, lines(d)) for d in self.query.deltas()],
            "answer": sorted(map(str, self.query.table(terms=True).to_pylist())),
            "calls": list(self.calls),
            "heard": list(self.heard),
            "results": [[str(result) for result in each.results()] for each in self.windows],
            "received": (self.stream.received, self.stream.late_count, self.stream.watermark),
        }


def lines(delta):
    return sorted(f"{row.diff} {row.row} {row.tx}" for row in delta)


def program_state(program):
    declared = program.program
    activations = ()
    if program._engine.conflicts is not None:
        activations = [(a.rule, a.state, a.number, str(a.values)) for a in program.activations()]
    return {
        "firings": [(f.rule, f.time, f.number, str(f.values), f.events) for f in program.firings()],
        "fired": program.fired,
        "retained": program.retained,
        "matches": [[str(m) for m in program.matches(p.name)] for p in declared.patterns],
        "queries": {
            name: [(d.time, lines(d)) for d in query.deltas()]
            for name, query in program.queries.items()
        },
        "activations": activations,
    }


def finish(world):
    """One more call; then more of the same, which shows what is remembered."""
    problems = []

    def attempt(call, *given, **more):
        try:
            call(*given, **more)
        except GraphtideError as problem:  # the first error of rules
            problems.append(str(problem))

    attempt(world.graph.advance, 9)
    first = world.state()
    attempt(world.publish, "a leaves b", 10)
    attempt(world.publish, "b rings a", 10)
    attempt(world.push, (11, "b leaves a"), (11, "c leaves b"))
    attempt(world.publish, "d meets c", 12)
    attempt(commit, world.graph, "+ d likes a", "- a likes b", time=13)
    attempt(world.graph.advance, 30)
    return first, world.state(), [text for text in problems if "InjectedFault" not in text]


BATCH = [(4, "b meets a"), (4, "a leaves c"), (5, "b leaves c"), (6, "a meets b"), (8, "b rings a")]

SCENARIOS = {
    "an event": ([JOIN], {}, lambda w: w.publish("a leaves c", 4)),
    "a pushed event": ([JOIN], {}, lambda w: w.push((4, "a leaves c"))),
    "joins of a batch": ([JOIN], {}, lambda w: w.push_ids(*BATCH)),
    "facts": ([FACTS], {}, lambda w: w.publish("a leaves c", 4)),
    "facts of a batch": ([FACTS], {}, lambda w: w.push_ids(*BATCH)),
    "facts that change": (
        [FACTS], {}, lambda w: commit(w.graph, "- a knows b", "+ c knows a", time=4)
    ),
    "waiting": ([WAITING], {}, lambda w: w.publish("a leaves c", 4)),
    "the end of a wait": ([WAITING], {}, lambda w: w.graph.advance(8)),
    "waiting in a batch": ([WAITING], {}, lambda w: w.push_ids(*BATCH)),
    "a pattern": ([PATTERNS], {}, lambda w: w.publish("a leaves c", 4)),
    "timers": ([PATTERNS], {}, lambda w: w.graph.advance(8)),
    "patterns of a batch": ([PATTERNS], {}, lambda w: w.push_ids(*BATCH)),
    "a cascade": ([CASCADE], {}, lambda w: w.publish("b meets c", 4)),
    "a cascade of a transaction": (
        [CASCADE], {}, lambda w: commit(w.graph, "+ b likes a", "+ a likes b", time=4)
    ),
    "a cascade of a batch": ([CASCADE], {}, lambda w: w.push_ids(*BATCH)),
    "retraction": ([RETRACT], {}, lambda w: w.publish("a rings b", 4)),
    "retraction in a batch": ([RETRACT], {}, lambda w: w.push_ids(*BATCH)),
    "an agenda": ([AGENDA], {"firing": "agenda"}, lambda w: w.publish("b meets c", 4)),
    "an agenda of a batch": ([AGENDA], {"firing": "agenda"}, lambda w: w.push_ids(*BATCH)),
    "an agenda at random": (
        [AGENDA], {"firing": "agenda", "resolver": "random"}, lambda w: w.push_ids(*BATCH)
    ),
    "fired by hand": ([AGENDA], {"firing": "manual"}, lambda w: w.programs[0].fire()),
    "a call": ([CALL], {"on_error": "skip"}, lambda w: w.publish("d meets c", 4)),
    "calls of a batch": ([CALL], {"on_error": "skip"}, lambda w: w.push_ids(*BATCH)),
    "two programs": ([CASCADE, PATTERNS], {}, lambda w: w.publish("b meets c", 4)),
    "two programs and a batch": ([CASCADE, FACTS], {}, lambda w: w.push_ids(*BATCH)),
    "windows beside rules": (
        [JOIN], {"windows": (WINDOW,)}, lambda w: w.push((7, "b meets a"))
    ),
    "windows that close": ([FACTS], {"windows": (WINDOW,)}, lambda w: w.graph.advance(8)),
    "windows of what is emitted": (
        [CASCADE], {"windows": (WINDOW, EMITTED)}, lambda w: w.push_ids(*BATCH)
    ),
    "an update": (
        [CASCADE], {},
        lambda w: w.graph.update(PREFIX + "INSERT { ?b :likes ?a } WHERE { ?a :knows ?b }", time=4),
    ),
}  # fmt: skip
"""Programs, options, and a call that is interrupted."""


def check(name, most):
    """The call has happened wholly or not at all; and, from one place on, wholly."""
    texts, options, step = SCENARIOS[name]

    def started():
        return World(texts, **options)

    without, through = started(), started()
    nothing = finish(without)
    step(started())
    with fault_at(0) as counted:
        step(through)
    whole = finish(through)
    assert counted.calls > 10
    happened = False
    for number in places(counted.calls, most):
        world = started()
        with pytest.raises(InjectedFault) as raised, fault_at(number):
            step(world)
        with after_fault(raised.value):
            ended = finish(world)
            if ended != whole:
                assert not happened, differences(ended, whole)
                assert ended == nothing, differences(ended, whole)
            elif whole != nothing:
                happened = True
    assert happened or whole == nothing


def differences(ended, whole):
    """What differs, for a message."""
    found = []
    for place, (one, two) in enumerate(zip(ended, whole, strict=True)):
        if isinstance(one, dict):
            found += [
                f"{place} {key}: {one[key]} not {two[key]}" for key in one if one[key] != two[key]
            ]
        elif one != two:
            found.append(f"{place}: {one} not {two}")
    return "; ".join(found)


@pytest.mark.parametrize("name", SCENARIOS)
def test_input_happens_wholly_or_not_at_all(name):
    check(name, 24)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_input_happens_wholly_or_not_at_all_at_every_call(name):
    check(name, None)
