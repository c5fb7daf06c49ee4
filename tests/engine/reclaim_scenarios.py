"""What must stay right when terms are freed: a scenario for each kind of holder.

A scenario is a function that gives what can be seen at its end; `SCENARIOS` has the holders without
which it goes wrong.
"""

from __future__ import annotations

from contextlib import suppress

from graphtide import LiveGraph, Program
from graphtide.engine import ingest, results, transaction, watch
from graphtide.engine.dataflow import (
    aggregates,
    counted,
    counting,
    ranges,
    sums,
    top_numbers,
    top_rows,
)
from graphtide.kernel import JIT, Instances, JoinKernel, QuadStore, ReachKernel, SemiJoinKernel
from graphtide.patterns import history
from graphtide.rdf import holders
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.kinds import XSD
from graphtide.rules import agenda, detection, firing
from graphtide.rules.matching import absence, memory, plain_absence
from graphtide.streams import query as window_query
from graphtide.streams import stream

PREFIX = "PREFIX : <http://example.org/>\n"
STREAM = "<http://example.org/s>"


def iri(name):
    return f"<http://example.org/{name}>"


def touch(graph):
    """Come by a safe point, with terms in between that nobody needs."""
    for n in range(3):
        graph.insert(iri(f"passing{n}"), iri("nothing"), n)
        graph.delete(iri(f"passing{n}"), iri("nothing"), n)
    graph.stats()


def rows(table):
    return sorted(str(row) for row in table.to_pylist())


# --- scenarios: a function each, which gives what can be seen at its end ---


def stored_quads():
    graph = LiveGraph()
    graph.insert(iri("a"), iri("p"), '"x"')
    touch(graph)
    return sorted(str(part) for quad in graph.quads() for part in quad)


def constants_of_a_query():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?a { ?a :p :wanted }")
    touch(graph)
    graph.insert(iri("a"), iri("p"), iri("wanted"))
    return rows(found.table(terms=True))


def answer_without_quads():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }")
    graph.insert(iri("a"), iri("p"), 1)
    touch(graph)
    return rows(found.table(terms=True))


def history_of_a_closed_query():
    graph = LiveGraph()
    found = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }")
    graph.insert(iri("a"), iri("p"), 1)
    graph.delete(iri("a"), iri("p"), 1)
    touch(graph)
    found.close()
    touch(graph)
    return [str(row) for row in found.rows()]


def half_of_a_decomposed_join():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?a ?c { ?a :p ?b . ?b :q ?c }")
    graph.insert(iri("a"), iri("p"), iri("b"))
    touch(graph)
    graph.insert(iri("b"), iri("q"), iri("c"))
    return rows(found.table(terms=True))


def counts_of_a_join():
    graph = LiveGraph(store="none")
    counted = "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c } GROUP BY ?a"
    found = graph.watch(PREFIX + counted, strategy="counting")
    graph.insert(iri("a"), iri("p"), iri("b"))
    touch(graph)
    graph.insert(iri("b"), iri("q"), iri("c"))
    return rows(found.table(terms=True))


def exact_sums_of_a_join():
    graph = LiveGraph(store="none")
    summed = "SELECT ?a (SUM(?v) AS ?n) { ?a :p ?b . ?b :q ?v } GROUP BY ?a"
    found = graph.watch(PREFIX + summed, strategy="counting")
    graph.insert(iri("b"), iri("q"), f'"0.5"^^<{XSD}decimal>')
    touch(graph)
    graph.insert(iri("a"), iri("p"), iri("b"))
    return rows(found.table(terms=True))


def row_above_its_bound():
    graph = LiveGraph(store="none")
    inner = "{ SELECT (COUNT(?x) AS ?m) { ?y :q ?x } }"
    found = graph.watch(PREFIX + f"SELECT ?a {{ ?a :p ?v {inner} FILTER (?v < ?m) }}")
    graph.insert(iri("a"), iri("p"), 1)
    touch(graph)
    graph.insert(iri("b"), iri("q"), 7)
    graph.insert(iri("b"), iri("q"), 8)
    return rows(found.table(terms=True))


def left_side_of_a_join():
    graph = LiveGraph(store="none")
    inner = "{ SELECT ?b (COUNT(?c) AS ?n) { ?b :q ?c } GROUP BY ?b }"
    found = graph.watch(PREFIX + f"SELECT ?a ?n {{ ?a :p ?b {inner} }}")
    graph.insert(iri("a"), iri("p"), iri("b"))
    touch(graph)
    graph.insert(iri("b"), iri("q"), iri("c"))
    return rows(found.table(terms=True))


def blocked_row_of_an_antijoin():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?a ?b { ?a :p ?b MINUS { ?a :q ?c } }")
    graph.insert(iri("a"), iri("q"), 1)
    graph.insert(iri("a"), iri("p"), '"blocked"')
    touch(graph)
    graph.delete(iri("a"), iri("q"), 1)
    return rows(found.table(terms=True))


def constant_of_a_filter():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b FILTER (?b > 5) }")
    touch(graph)
    graph.insert(iri("a"), iri("p"), 7)
    graph.insert(iri("b"), iri("p"), 4)
    return rows(found.table(terms=True))


def second_least_value():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT (MIN(?b) AS ?least) { ?a :p ?b }")
    graph.insert(iri("a"), iri("p"), 3)
    graph.insert(iri("a"), iri("p"), 5)
    touch(graph)
    graph.delete(iri("a"), iri("p"), 3)
    return rows(found.table(terms=True))


def key_of_a_group():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b } GROUP BY ?a HAVING (COUNT(?b) > 1)")
    graph.insert(iri("a"), iri("p"), 3)
    touch(graph)
    graph.insert(iri("a"), iri("p"), 5)
    return rows(found.table(terms=True))


def next_row_of_a_range():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?b { ?a :p ?b } ORDER BY ?b LIMIT 1")
    graph.insert(iri("a"), iri("p"), 3)
    graph.insert(iri("a"), iri("p"), 5)
    touch(graph)
    graph.delete(iri("a"), iri("p"), 3)
    return rows(found.table(terms=True))


def edge_beyond_a_path():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?b { :start :p+ ?b }")
    graph.insert(iri("b"), iri("p"), iri("c"))
    touch(graph)
    graph.insert(iri("start"), iri("p"), iri("b"))
    return rows(found.table(terms=True))


def computed_values():
    graph = LiveGraph(store="none")
    found = graph.watch(PREFIX + "SELECT ?c { ?a :p ?b BIND (STR(?b) AS ?c) }")
    for _ in range(2):  # the memo of the second round must not give the id of the first
        graph.insert(iri("a"), iri("p"), iri("b"))
        touch(graph)
        graph.delete(iri("a"), iri("p"), iri("b"))
        touch(graph)
    return [str(row) for row in found.rows()]


def changes_that_wait():
    graph = LiveGraph()
    graph.insert(iri("a"), iri("p"), '"waits"')
    graph.advance(5)  # a safe point before the buffer is flushed
    return sorted(str(part) for quad in graph.quads() for part in quad)


def open_transaction():
    graph = LiveGraph()
    with graph.transaction() as tx:
        tx.insert(iri("a"), iri("p"), '"x"')
        touch(graph)
    return sorted(str(part) for quad in graph.quads() for part in quad)


def delta_in_the_users_hands():
    graph = LiveGraph()
    found = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }", history=1)
    graph.insert(iri("a"), iri("p"), 1)
    delta = found.delta()
    graph.delete(iri("a"), iri("p"), 1)
    for n in range(3):
        graph.insert(iri("b"), iri("p"), n)
        graph.delete(iri("b"), iri("p"), n)
    touch(graph)
    return str(delta), [str(part) for part in delta.added()]


def quads_one_by_one():
    graph = LiveGraph()
    for n in range(3):
        graph.insert(iri(f"a{n}"), iri("p"), f'"{n}"')
    found = []
    for s, p, o, _ in graph.quads():
        found.append((str(s), str(p), str(o)))
        graph.delete(s, p, o)
        graph.update(PREFIX + "DELETE WHERE { ?a :p ?b }")
        touch(graph)
    return sorted(found)


def event_that_waits_for_earlier_ones():
    graph = LiveGraph()
    events = graph.stream(STREAM, lateness=5)
    found = graph.watch(PREFIX + WINDOW)
    events.push([(iri("a"), iri("p"), '"x"')], time=3)
    touch(graph)
    graph.advance(30)
    return [rows_of(result) for result in found.results()]


def result_in_the_users_hands():
    graph = LiveGraph()
    found = graph.watch(PREFIX + WINDOW, history=1)
    graph.stream(STREAM).push([(iri("a"), iri("p"), '"x"')], time=3)
    graph.advance(12)
    result = found.last_result()
    graph.stream(STREAM).push([(iri("b"), iri("p"), '"y"')], time=40)
    graph.advance(80)
    touch(graph)
    return rows_of(result)


def results_of_windows():
    graph = LiveGraph()
    found = graph.watch(PREFIX + WINDOW)
    graph.stream(STREAM).push([(iri("a"), iri("p"), '"x"')], time=3)
    graph.advance(40)
    touch(graph)
    return [rows_of(result) for result in found.results()]


def graphs_of_events():
    graph = LiveGraph()
    text = WINDOW.replace("{ ?a :p ?b }", "{ GRAPH ?g { ?a :p ?b } }").replace("?a ?b", "?g ?b")
    found = graph.watch(PREFIX + text)
    graph.stream(STREAM).push([(iri("a"), iri("p"), '"x"')], time=3, graph=iri("g"))
    graph.advance(11)
    touch(graph)
    graph.advance(40)
    return [rows_of(result) for result in found.results()]


def steps_of_a_log():
    graph = LiveGraph()
    found = graph.watch(PREFIX + "SELECT ?b { ?a :p ?b }")
    graph.stream(STREAM)
    into = [STREAM, None, STREAM, None]
    batch = ChangeBatch.of(
        [(n, 0, 1, iri(f"a{n}"), iri("p"), f'"{n}"', g) for n, g in enumerate(into)]
    )
    for _ in graph.feed().steps([batch]):
        touch(graph)
    return rows(found.table(terms=True))


WINDOW = """REGISTER RSTREAM :out AS SELECT ?a ?b FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?a :p ?b } }"""

SEEN = PREFIX + "EVENT Seen(?a, ?b) AS { ?a :seen ?b }\nEVENT Left(?a) AS { ?a :left ?b }\n"


def rows_of(result):
    return sorted(str(row) for row in result)


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


def graph_after_an_error(store="all"):
    """Store and plans are made anew from the quads: these hold the ids from then on."""
    graph = LiveGraph(store=store)
    found = graph.watch(PREFIX + "SELECT ?a ?c { ?a :p ?b . ?b :q ?c }")
    graph.insert(iri("a"), iri("p"), iri("b"))
    graph.stats()
    queries = graph._runtime.queries
    queries.react = lambda *_: 1 // 0
    with suppress(ZeroDivisionError):  # without a holder, nothing may match, and nothing is raised
        graph.insert(iri("b"), iri("q"), '"lost"')
        graph.stats()
    del queries.react
    touch(graph)
    later = graph.watch(PREFIX + "SELECT ?a { ?a :r :x }") if store == "all" else None
    graph.insert(iri("b"), iri("q"), '"c"')
    graph.insert(iri("b"), iri("r"), iri("x"))
    return rows(found.table(terms=True)), rows(later.table(terms=True)) if later else []


def matched_quads_after_an_error():
    return graph_after_an_error("matched")


def functions_that_use_the_graph():
    """A callback in the middle of an operation is no safe point: its caller still has ids."""
    graph, called = LiveGraph(), []

    def note(a, b):
        called.append((str(a), str(b)))
        touch(graph)

    program = graph.run(
        Program.parse(
            SEEN + "RULE R ON Seen(?a, ?b) THEN CALL note(?a, ?b); INSERT { ?a :was ?b }"
        ),
        functions={"note": note},
    )
    found = graph.watch(PREFIX + WINDOW.replace(":p", ":seen"))
    found.on_result(lambda _: touch(graph))
    answers = graph.watch(PREFIX + "SELECT ?a ?b { ?a :was ?b }")
    answers.on_delta(lambda _: touch(graph))
    log = [(n, n, 1, iri(f"e{n}"), iri("seen"), f'"{n}"', STREAM) for n in range(15)]
    graph.stream(STREAM)
    graph.apply(ChangeBatch.of(log))
    graph.advance(40)
    return (
        called,
        [f.why() for f in program.firings()],
        [rows_of(result) for result in found.results()],
        rows(answers.table(terms=True)),
    )


def triples_that_use_the_graph():
    graph, program = started("RULE R ON Seen(?a, ?b) THEN INSERT { ?a :was ?b }")

    def triples():
        for n in range(3):
            touch(graph)
            yield iri("a"), iri("seen"), f'"{n}"'

    graph.publish(triples(), time=3)
    return sorted(f.why() for f in program.firings())


def tokens_of_the_general_detector():
    """A composite NOT is not run by the kernel."""
    return tokens_of_a_pattern("(Seen(?a, ?b) -> NOT (Left(?c) -> Left(?c)) -> Left(?a)) WITHIN 9s")


SCENARIOS = {
    stored_quads: [QuadStore],
    constants_of_a_query: [QuadStore],
    answer_without_quads: [watch.Query],
    history_of_a_closed_query: [watch.Query],
    half_of_a_decomposed_join: [Instances],
    counts_of_a_join: [counted.KernelCounts if JIT else counting.CountedGroups],
    exact_sums_of_a_join: [counting.CountedGroups],
    row_above_its_bound: [ranges.RangeRows],
    left_side_of_a_join: [JoinKernel],
    blocked_row_of_an_antijoin: [SemiJoinKernel],
    constant_of_a_filter: [],
    second_least_value: [sums.SummedGroups if JIT else aggregates.GroupRows],
    key_of_a_group: [sums.SummedGroups if JIT else aggregates.GroupRows],
    next_row_of_a_range: [top_numbers.TopNumbers if JIT else top_rows.TopRows],
    edge_beyond_a_path: [ReachKernel],
    computed_values: [],
    changes_that_wait: [ingest.WriteBuffer],
    open_transaction: [transaction.Transaction],
    delta_in_the_users_hands: [results.Delta],
    quads_one_by_one: [holders.HeldIds],
    event_that_waits_for_earlier_ones: [stream.Stream],
    result_in_the_users_hands: [results.WindowResult],
    results_of_windows: [window_query.QueryWindows],
    graphs_of_events: [],
    steps_of_a_log: [holders.HeldIds],
    event_of_a_rule: [memory.RuleMemory],
    firings_of_a_batch: [agenda.Agenda],
    firings_while_they_are_read: [firing.PendingFirings],
    match_without_its_forbidden_event: [absence.Absence],
    forbidden_event_before_its_match: [absence.Absence],
    match_whose_forbidden_event_is_filtered: [plain_absence.PendingMatches],
    filtered_event_before_its_match: [memory.EventMemory],
    facts_and_events: [],
    waiting_activations: [],
    tokens_of_a_pattern: [detection.PatternRunner],
    tokens_of_the_general_detector: [detection.PatternRunner],
    event_that_is_taken_back: [history.TokenHistory],
    forbidden_event_that_nobody_has_read: [absence.Absence],
    functions_that_use_the_graph: [],
    triples_that_use_the_graph: [],
}
if JIT:  # the twins of the kernels do not recover
    SCENARIOS[graph_after_an_error] = [QuadStore]
    SCENARIOS[matched_quads_after_an_error] = [QuadStore]
