"""What must stay right when terms are freed: a scenario for each kind of holder.

A scenario is a function that gives what can be seen at its end; `SCENARIOS` has the holders without
which it goes wrong.
"""

from __future__ import annotations

from contextlib import suppress

from engine.reclaim_rules import PREFIX, RULES, SEEN, STREAM, started, touch
from engine.small_graph import iri

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
from graphtide.rdf import holders
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.kinds import XSD
from graphtide.streams import query as window_query
from graphtide.streams import stream


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


def rows_of(result):
    return sorted(str(row) for row in result)


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

    def note(a, b, *, graph):
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
    functions_that_use_the_graph: [],
    triples_that_use_the_graph: [],
} | RULES
if JIT:  # the twins of the kernels do not recover
    SCENARIOS[graph_after_an_error] = [QuadStore]
    SCENARIOS[matched_quads_after_an_error] = [QuadStore]
