"""A snapshot has what windows, rules and patterns hold: opened from it, all goes on as it was.

The reference is the same input on a graph in memory that is never stopped. Each case is stopped
after every one of its inputs; the store then has nothing to replay.
"""

from __future__ import annotations

import pytest

import graphtide as gt

pytestmark = pytest.mark.slow
X = "<ex:{}>".format


def opened_after(folder, case, stop):
    """The graph of a case that was stopped after some of its inputs, and given the others."""
    graph = gt.LiveGraph.open(folder)
    case.register(graph)
    for step in case.steps[:stop]:
        step(graph)
    assert graph.checkpoint()
    graph.close()
    graph = gt.LiveGraph.open(folder)
    journal = graph.store.store.journal
    assert journal.snapshots()[-1].number == journal.last
    for step in case.steps[stop:]:
        step(graph)
    return graph


class Case:
    """Queries and programs by their texts, and inputs as functions of a graph."""

    def __init__(self, *texts, steps, lateness=None, **settings):
        self.texts, self.steps, self.lateness, self.settings = texts, steps, lateness, settings

    def register(self, graph):
        if self.lateness:
            graph.stream(X("s"), lateness=self.lateness)
        for number, text in enumerate(self.texts):
            if "SELECT" in text and "RULE" not in text:
                graph.watch(text, name=f"q{number}", **self.settings)
            else:
                graph.run(gt.Program.parse(text), name=f"p{number}", **self.settings)


def outcome(graph):
    """All that can be seen of a graph; firings and results in order, the last ones last."""
    found = {"quads": sorted(map(str, graph.quads())), "clock": graph.clock}
    for query in graph.queries:
        found[query.name] = sorted(map(str, query.table(terms=True).to_pylist()))
        if query.windows is not None:
            found[f"{query.name} results"] = [
                (result.time, sorted(map(str, result))) for result in query.results()
            ]
    for program in graph.programs:
        found[f"{program.name} fired"] = program.fired
        found[f"{program.name} firings"] = [
            (f.rule, f.time, f.number, str(f.values), str(f.events)) for f in program.firings()
        ]
        found[f"{program.name} retained"] = program.retained
        for pattern in program.program.patterns:
            tokens = program.detector(pattern.name).tokens()
            found[f"{program.name} {pattern.name}"] = (
                program.matched(pattern.name),
                [(t.order, t.start, t.used) for t in tokens],
            )
    return found


def check(folder, case):
    memory = gt.LiveGraph()
    case.register(memory)
    for step in case.steps:
        step(memory)
    wanted = outcome(memory)
    for stop in range(len(case.steps) + 1):
        graph = opened_after(folder / str(stop), case, stop)
        found = outcome(graph)
        graph.close()
        for name, lines in wanted.items():
            own = found[name]
            if name.endswith((" results", " firings")):  # those from before are not retained
                lines = lines[len(lines) - len(own) :]  # noqa: PLW2901
            assert own == lines, (stop, name)


def push(stream, *triples, time, graph=None):
    rows = [tuple(map(X, triple.split())) for triple in triples]
    return lambda g: g.stream(X(stream)).push(rows, time=time, graph=graph and X(graph))


def publish(*triples, time):
    rows = [tuple(map(X, triple.split())) for triple in triples]
    return lambda g: g.publish(rows, time=time)


def insert(triple, time):
    return lambda g: g.insert(*map(X, triple.split()), time=time)


def delete(triple, time):
    return lambda g: g.delete(*map(X, triple.split()), time=time)


def advance(to):
    return lambda g: g.advance(to)


def windowed(out, size, body="?a <ex:p> ?b"):
    return (
        f"REGISTER {out} <ex:out> AS SELECT * FROM NAMED WINDOW <ex:w> ON <ex:s> [{size}] "
        f"WHERE {{ WINDOW <ex:w> {{ {body} }} OPTIONAL {{ ?a <ex:is> ?c }} }}"
    )


PUSHES = [
    push("s", "a p b", "a q b", time=1),
    push("s", "a p c", time=3),
    insert("a is red", 3),
    push("s", "a p b", "b p c", time=6),
    delete("a is red", 7),
    push("s", "c p a", time=9),
    advance(14),
    push("s", "c p a", time=15),
    advance(40),
]


@pytest.mark.parametrize("out", ["ISTREAM", "DSTREAM", "RSTREAM"])
@pytest.mark.parametrize("size", ["RANGE 5 STEP 2", "ELEMENTS 3 STEP 2"])
def test_windows(tmp_path, out, size):
    check(tmp_path, Case(windowed(out, size), steps=PUSHES))


@pytest.mark.parametrize("settings", [{"report": "change"}, {"reevaluate": True}])
def test_windows_that_report_otherwise(tmp_path, settings):
    texts = [windowed(out, "RANGE 5 STEP 2") for out in ("ISTREAM", "RSTREAM")]
    check(tmp_path, Case(*texts, steps=PUSHES, **settings))


def test_graphs_of_events_in_windows(tmp_path):
    steps = [
        push("s", "a p b", time=1, graph="g"),
        push("s", "a p b", time=2, graph="h"),
        push("s", "a p b", "c p d", time=3, graph="g"),
        push("s", "c p d", time=5),
        advance(9),
        push("s", "c p d", time=9, graph="h"),
        advance(20),
    ]
    text = windowed("RSTREAM", "RANGE 4 STEP 1", "GRAPH ?g { ?a <ex:p> ?b }")
    check(tmp_path, Case(text, steps=steps))


def test_late_events_and_those_that_wait(tmp_path):
    steps = [
        push("s", "a p b", time=5),
        push("s", "a p c", time=3),
        push("s", "a p d", time=9),
        push("s", "a p e", time=4),
        advance(30),
    ]
    program = """EVENT P(?x, ?y) AS { ?x <ex:p> ?y } EVENT Q(?x) AS { ?x <ex:q> ?y }
        RULE Tell ON P(?x, ?y) THEN EMIT <ex:s> { ?y <ex:q> ?x }; INSERT { ?y <ex:after> ?x }
        RULE Told ON Q(?x) THEN INSERT { ?x <ex:is> <ex:told> }"""
    text = windowed("ISTREAM", "RANGE 5 STEP 2")
    check(tmp_path, Case(program, text, steps=steps, lateness=4))


def test_a_window_that_another_query_had_to_itself(tmp_path):
    """A query that asks for what the first one's window has dropped has a window of its own."""
    first, second = windowed("RSTREAM", "RANGE 6 STEP 1"), "?a <ex:q> ?b"
    steps = [
        *PUSHES[:2],
        lambda g: g.watch(windowed("RSTREAM", "RANGE 6 STEP 1", second), name="late"),
        push("s", "a p b", "a q b", time=4),
        lambda g: next(q for q in g.queries if q.name == "q0").close(),
        push("s", "a q c", time=5),
        advance(20),
    ]
    check(tmp_path, Case(first, steps=steps))


RULES = """
EVENT A(?x) AS { ?x <ex:a> ?y }
EVENT B(?x) AS { ?x <ex:b> ?y }
EVENT C(?x) AS { ?x <ex:c> ?y }
RULE Both WHEN FACT { ?x <ex:is> ?c } EVENT a = A(?x) EVENT b = B(?x) AFTER[0, 9s] a
THEN INSERT { ?x <ex:both> ?c }
RULE None WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0, 4s] a THEN INSERT { ?x <ex:no> <ex:b> }
RULE Missing WHEN EVENT c = C(?x) NO EVENT b = B(?x) BEFORE[0, 4s] c
THEN INSERT { ?x <ex:c> <ex:d> }
"""
EVENTS = [
    insert("x is red", 1),
    publish("x a 1", time=2),
    insert("x is blue", 2),
    publish("y a 1", time=3),
    delete("x is red", 4),
    insert("x is red", 4),
    publish("x b 1", "x c 2", time=5),
    publish("x c 1", time=8),
    publish("x a 1", time=9),
    advance(12),
    publish("x b 1", time=12),
    publish("y c 1", time=13),
    advance(30),
]


def test_rules_with_facts_and_no_event(tmp_path):
    check(tmp_path, Case(RULES, steps=EVENTS))


@pytest.mark.parametrize("resolver", ["priority", "newest", "random"])
def test_activations(tmp_path, resolver):
    program = f"""{RULES}
        QUERY Red AS SELECT ?x {{ ?x <ex:is> <ex:red> }}
        EVENT Turned(?x) ON APPEAR OF Red(?x)
        RULE Paint ON Turned(?x) THEN INSERT {{ ?x <ex:was> <ex:painted> }}"""
    fire = [lambda g: g.programs[0].fire(), lambda g: g.programs[0].fire_all()]
    steps = [*EVENTS[:4], fire[0], *EVENTS[4:10], fire[0], fire[0], *EVENTS[10:], fire[1]]
    settings = {"firing": "manual", "resolver": resolver, "seed": 7}
    check(tmp_path, Case(program, steps=steps, **settings))


@pytest.mark.parametrize("context", ["", "CONTEXT IMMEDIATE", "CONTEXT STRICT PER ?x"])
def test_tokens_and_events_that_are_taken_back(tmp_path, context):
    program = f"""
        EVENT A(?x) AS {{ ?x <ex:a> ?y }} EVENT B(?x) AS {{ ?x <ex:b> ?y }}
        EVENT C(?x) AS {{ ?x <ex:c> ?y }}
        PATTERN Twice(?x) AS (A(?x) -> B(?x) -> C(?x)) WITHIN 9 {context}
        PATTERN Alone(?x) AS A(?x) -> NOT B(?x) WITHIN 3 {context}
        RULE Undo WHEN EVENT b = B(?x) EVENT c = C(?x) AFTER[0, 2s] b THEN RETRACT b
        RULE Found ON Twice(?x) THEN INSERT {{ ?x <ex:found> <ex:twice> }}
        RULE Lone ON Alone(?x) THEN INSERT {{ ?x <ex:found> <ex:alone> }}"""
    steps = [
        publish("x a 1", time=2),
        publish("y a 1", time=3),
        publish("x b 1", time=4),
        publish("x c 1", time=5),
        publish("y b 1", time=5),
        publish("x b 1", time=6),
        publish("y c 1", time=9),
        publish("x c 1", time=9),
        advance(20),
    ]
    check(tmp_path, Case(program, steps=steps))
