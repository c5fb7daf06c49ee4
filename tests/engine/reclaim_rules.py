"""What must stay right when terms are freed, of rules and patterns; see `reclaim_scenarios`."""

from __future__ import annotations

from engine.small_graph import iri

from graphtide import LiveGraph, Program
from graphtide.patterns import history
from graphtide.rdf.changes import ChangeBatch
from graphtide.rules import agenda, detection, firing
from graphtide.rules.matching import absence, memory

PREFIX = "PREFIX : <http://example.org/>\n"
STREAM = "<http://example.org/s>"
SEEN = PREFIX + "EVENT Seen(?a, ?b) AS { ?a :seen ?b }\nEVENT Left(?a) AS { ?a :left ?b }\n"


def touch(graph):
    """Come by a safe point, with terms in between that nobody needs."""
    for n in range(3):
        graph.insert(iri(f"passing{n}"), iri("nothing"), n)
        graph.delete(iri(f"passing{n}"), iri("nothing"), n)
    graph.stats()


def seen(graph, name, time, *, predicate="seen", value=None):
    graph.publish([(iri(name), iri(predicate), f'"{value or name} was here"')], time=time)


def started(text, **options):
    graph = LiveGraph()
    return graph, graph.run(Program.parse(SEEN + text), **options)


def event_of_a_rule():
    text = "RULE Gone WHEN EVENT a = Seen(?a, ?b) EVENT b = Left(?a) AFTER[1,9] a"
    graph, program = started(f"{text} THEN INSERT {{ ?a :gone ?b }}")
    seen(graph, "ann", 3)
    touch(graph)
    seen(graph, "ann", 5, predicate="left")
    touch(graph)
    return [f.why() for f in program.firings()], sorted(str(q[2]) for q in graph.quads())


def firings_of_a_batch():
    graph, program = started("RULE R ON Seen(?a, ?b) THEN INSERT { :x :y :z }")
    log = [(n, n, 1, iri(f"e{n}"), iri("seen"), f'"{n}"', STREAM) for n in range(5)]
    graph.stream(STREAM)
    graph.apply(ChangeBatch.of(log))
    touch(graph)
    return [f.why() for f in program.firings()]


def firings_while_they_are_read():
    graph, program = started("RULE R ON Seen(?a, ?b) THEN INSERT { :x :y :z }")
    for n in range(4):
        seen(graph, f"e{n}", n)
        assert len(graph)  # a look, so that each event is a batch of its own
    found = []
    for each in program.firings():
        found.append(each.why())
        touch(graph)
    return found


def match_without_its_forbidden_event(where=""):
    text = "RULE Stays WHEN EVENT a = Seen(?a, ?b) NO EVENT b = Left(?a) AFTER[1,9] a"
    graph, program = started(f"{text} {where} THEN INSERT {{ ?a :stays ?b }}")
    seen(graph, "ann", 3)
    seen(graph, "bob", 4)
    touch(graph)
    seen(graph, "bob", 6, predicate="left")
    graph.advance(30)
    touch(graph)
    return [f.why() for f in program.firings()], sorted(str(q[2]) for q in graph.quads())


def forbidden_event_before_its_match(where=""):
    text = "RULE New WHEN EVENT a = Seen(?a, ?b) NO EVENT b = Left(?a) BEFORE[1,9] a"
    graph, program = started(f"{text} {where} THEN INSERT {{ ?a :new ?b }}")
    seen(graph, "ann", 3, predicate="left")
    touch(graph)
    seen(graph, "ann", 5)
    seen(graph, "bob", 6)
    graph.advance(30)
    return [f.why() for f in program.firings()]


def match_whose_forbidden_event_is_filtered():
    return match_without_its_forbidden_event("WHERE (b AFTER[-99,99] a OR FILTER (?a = ?b))")


def filtered_event_before_its_match():
    return forbidden_event_before_its_match("WHERE (b AFTER[-99,99] a OR FILTER (?a = ?b))")


def facts_and_events():
    text = "RULE R WHEN FACT { ?b :of ?c } EVENT a = Seen(?a, ?b)"
    graph, program = started(f"{text} THEN INSERT {{ ?a :found ?c }}")
    graph.insert("_:here", iri("of"), '"c"')
    graph.publish([(iri("x"), iri("seen"), "_:here")], time=1)
    touch(graph)
    graph.publish([(iri("y"), iri("seen"), "_:here")], time=2)
    return [f.why() for f in program.firings()]


def waiting_activations():
    rule = "RULE R ON DISAPPEAR OF Q THEN INSERT { ?a :was ?b }"
    graph, program = started(f"QUERY Q AS SELECT ?a ?b {{ ?a :p ?b }}\n{rule}", firing="manual")
    for name in ("a", "b"):
        graph.insert(iri(name), iri("p"), f'"{name}"')
        graph.delete(iri(name), iri("p"), f'"{name}"')
    touch(graph)
    program.fire_all()
    touch(graph)
    return sorted(str(part) for quad in graph.quads() for part in quad)


def tokens_of_a_pattern(pattern="(Seen(?a, ?b) -> Left(?a)) WITHIN 9s"):
    graph, program = started(f"PATTERN Gone(?a, ?b) AS {pattern}")
    seen(graph, "ann", 3)
    touch(graph)
    seen(graph, "ann", 5, predicate="left")
    touch(graph)
    return [(str(m.values), m.start, m.time) for m in program.matches("Gone")]


def event_that_is_taken_back():
    """The token that had used it comes back, with a value that only the pattern's input has."""
    text = """
    EVENT Back(?b) AS { ?e :back ?b }
    EVENT Undo(?a) AS { ?a :undo ?b }
    PATTERN Trip(?a) AS (Seen(?a, ?b) -> Left(?a) -> Back(?b)) WITHIN 90s
    RULE R WHEN EVENT l = Left(?a) EVENT u = Undo(?a) AFTER[1,90] l THEN RETRACT l
    """
    graph, program = started(text)
    seen(graph, "ann", 3, value="paris")
    seen(graph, "ann", 4, predicate="left")
    seen(graph, "e", 5, predicate="back", value="paris")
    touch(graph)
    seen(graph, "ann", 6, predicate="undo")
    touch(graph)
    seen(graph, "ann", 7, predicate="left")
    seen(graph, "e", 8, predicate="back", value="paris")
    return [(str(m.values), m.start, m.time) for m in program.matches("Trip")]


def forbidden_event_that_nobody_has_read():
    """Its own value is needed until the conflict set has read it; its memory has expired then."""
    text = """
    EVENT Ring(?a, ?n) AS { ?a :ring ?n }
    RULE R WHEN EVENT a = Seen(?a, ?b) NO EVENT n = Ring(?a, ?n) AFTER[0,5] a
      THEN INSERT { ?a :quiet ?b }
    """
    graph, program = started(text, firing="manual")
    seen(graph, "ann", 1)
    seen(graph, "bob", 1)
    graph.advance(7)
    waiting = [str(each.values) for each in program.activations()]
    seen(graph, "ann", 8, predicate="ring", value="at nine")
    graph.advance(90)
    return waiting, [str(each.values) for each in program.activations()]


def tokens_of_the_general_detector():
    """A composite NOT is not run by the kernel."""
    return tokens_of_a_pattern("(Seen(?a, ?b) -> NOT (Left(?c) -> Left(?c)) -> Left(?a)) WITHIN 9s")


RULES = {
    event_of_a_rule: [memory.RuleMemory],
    firings_of_a_batch: [agenda.Agenda],
    firings_while_they_are_read: [firing.PendingFirings],
    match_without_its_forbidden_event: [absence.Absence],
    forbidden_event_before_its_match: [absence.Absence],
    match_whose_forbidden_event_is_filtered: [absence.Absence],
    filtered_event_before_its_match: [absence.Absence],
    facts_and_events: [],
    waiting_activations: [],
    tokens_of_a_pattern: [detection.PatternRunner],
    tokens_of_the_general_detector: [detection.PatternRunner],
    event_that_is_taken_back: [history.TokenHistory],
    forbidden_event_that_nobody_has_read: [absence.Absence],
}
