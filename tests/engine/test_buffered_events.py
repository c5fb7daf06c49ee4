"""Single events that wait until somebody looks: nobody can tell that they waited."""

from __future__ import annotations

import random
from threading import Thread

import pytest
from engine.injection import InjectedFault, after_fault, fault_at

from graphtide import LiveGraph, Program
from graphtide.errors import GraphtideError

PREFIX = "PREFIX : <http://example.org/>\n"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
JOIN = f"""{PREFIX}REGISTER ISTREAM :out AS SELECT ?a ?c
    FROM NAMED WINDOW :w ON :s [RANGE 6 STEP 2] WHERE {{ WINDOW :w {{ ?a :p ?b . ?b :q ?c }} }}"""
RULE = f"""{PREFIX}
EVENT A(?k) AS {{ ?k a :A }}
EVENT B(?k) AS {{ ?k a :B }}
RULE Pair WHEN FACT {{ ?k :on :yes }} EVENT a = A(?k) EVENT b = B(?k) AFTER[0,3] a
  THEN INSERT {{ ?k :paired :yes }}
"""
PATTERN = f"""{PREFIX}
EVENT A(?k) AS {{ ?k a :A }}
EVENT B(?k) AS {{ ?k a :B }}
PATTERN Both(?k) AS (A(?k) -> B(?k)) WITHIN 5s CONTEXT CHRONICLE
"""


def iri(name):
    return f"<http://example.org/{name}>"


def typed(key, type_):
    return [(iri(key), TYPE, iri(type_))]


def waits(graph):
    """Whether events wait in the buffer."""
    return graph._runtime.schedule.buffer.sink is not None


def windowed(look, seed, lateness):
    """The results of random events that are pushed one by one; `look` follows each push."""
    rng, graph = random.Random(seed), LiveGraph()
    stream = graph.stream(iri("s"), lateness=lateness)
    query = graph.watch(JOIN)
    time = 0
    for _ in range(60):
        time = max(0, time + rng.choice([-3, 0, 0, 1, 1, 2]))
        names = [f"n{rng.randrange(4)}" for _ in range(2)]
        stream.push([(iri(names[0]), iri(rng.choice("pqr")), iri(names[1]))], time=time)
        look(graph, query)
    graph.advance(time + 20)
    counts = stream.received, stream.pruned, stream.late_count, stream.watermark
    return [str(result) for result in query.results()], counts


@pytest.mark.parametrize("lateness", [0, 2])
def test_windows_have_the_same_results(lateness):
    for seed in range(8):
        apart = windowed(lambda _, query: query.results(), seed, lateness)
        assert windowed(lambda *_: None, seed, lateness) == apart
        assert windowed(lambda graph, _: graph.clock % 3 and len(graph), seed, lateness) == apart


def fed(look, seed, give):
    """What a rule has fired for random events that come one by one."""
    rng, graph = random.Random(seed), LiveGraph()
    program, time = graph.run(Program.parse(RULE)), 0
    for _ in range(50):
        time += rng.choice([0, 0, 1, 2])
        key = f"k{rng.randrange(3)}"
        if rng.random() < 0.2:
            change = rng.choice([graph.insert, graph.delete])
            change(iri(key), iri("on"), iri("yes"), time=time)
        else:
            give(graph, program, typed(key, rng.choice("AB")), time)
        look(program)
    fired = [(each.time, each.events, str(each.values)) for each in program.firings()]
    return fired, sorted(map(str, graph.quads())), program.fired, graph.clock


WAYS = {
    "publish": lambda graph, _, triples, time: graph.publish(triples, time=time),
    "assert": lambda _, program, triples, time: program.assert_event(triples, time=time),
    "push": lambda graph, _, triples, time: graph.stream(iri("s")).push(triples, time=time),
}


@pytest.mark.parametrize("way", WAYS)
def test_rules_fire_the_same(way):
    total = 0
    for seed in range(6):
        apart = fed(lambda program: program.fired, seed, WAYS[way])
        assert fed(lambda _: None, seed, WAYS[way]) == apart
        total += apart[2]
    assert total


LOOKS = {
    "clock": lambda graph, _: graph.clock == 4,
    "program clock": lambda _, program: program.clock == 4,
    "fired": lambda _, program: program.fired == 1,
    "firings": lambda _, program: [each.time for each in program.firings()] == [4],
    "retained": lambda _, program: program.retained >= 0,
    "graph": lambda graph, _: len(graph) == 2,
    "contains": lambda graph, _: (iri("k"), iri("paired"), iri("yes")) in graph,
    "query": lambda graph, _: len(graph.query(f"{PREFIX}SELECT ?k {{ ?k :paired ?y }}")) == 1,
    "stats": lambda graph, _: graph.stats().clock == 4,
    "received": lambda graph, _: graph.stream(iri("s")).received == 2,
    "why not": lambda _, program: "k" in str(program.why_not("Pair", k=iri("k"))),
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_look_sees_them(look):
    graph = LiveGraph()
    program = graph.run(Program.parse(RULE))
    graph.insert(iri("k"), iri("on"), iri("yes"))
    stream = graph.stream(iri("s"))
    stream.push(typed("k", "A"), time=3)
    stream.push(typed("k", "B"), time=4)
    assert waits(graph)
    assert LOOKS[look](graph, program)
    assert not waits(graph)


def test_a_list_of_firings_that_is_held_grows():
    graph = LiveGraph()
    program = graph.run(Program.parse(RULE))
    firings = program.firings()
    graph.insert(iri("k"), iri("on"), iri("yes"))
    for type_ in "AB":
        graph.publish(typed("k", type_), time=1)
    assert waits(graph)
    assert len(firings) == 1
    assert firings[0].time == 1


def test_a_detector_that_is_held_is_up_to_date():
    graph = LiveGraph()
    program = graph.run(Program.parse(PATTERN))
    program.assert_event(typed("k", "A"), time=1)
    detector = program.detector("Both")
    assert len(detector.tokens()) == 1
    program.assert_event(typed("j", "A"), time=2)
    assert len(detector.tokens()) == 2


def test_callbacks_and_functions_are_called_at_once():
    graph, seen = LiveGraph(), []
    stream, query = graph.stream(iri("s")), graph.watch(JOIN)
    stream.push([(iri("a"), iri("p"), iri("b"))], time=1)
    assert waits(graph)
    query.on_result(seen.append)
    assert not waits(graph)
    stream.push([(iri("b"), iri("q"), iri("c"))], time=1)
    stream.push([(iri("b"), iri("q"), iri("c"))], time=9)
    assert seen
    graph, called = LiveGraph(), []
    text = RULE.replace("INSERT { ?k :paired :yes }", "CALL note(?k)")
    graph.run(Program.parse(text), functions={"note": called.append})
    graph.insert(iri("k"), iri("on"), iri("yes"))
    for type_ in "AB":
        graph.publish(typed("k", type_), time=1)
    assert len(called) == 1


def test_a_program_that_reads_what_it_inserts_acts_at_once():
    graph = LiveGraph()
    graph.run(Program.parse(RULE.replace(":paired", ":on")))
    graph.publish(typed("k", "A"), time=1)
    assert not waits(graph)


def test_times_that_run_backwards_are_refused_at_once():
    graph = LiveGraph()
    program = graph.run(Program.parse(PATTERN))
    graph.publish(typed("k", "A"), time=5)
    for give in (graph.publish, program.assert_event):
        with pytest.raises(GraphtideError, match="backwards"):
            give(typed("k", "B"), time=4)
    graph.publish(typed("k", "B"))  # at the current time, which is that of the event before
    (match,) = program.matches("Both")
    assert (match.start, match.time) == (5, 5)


def test_terms_of_waiting_events_are_held():
    graph = LiveGraph()
    query = graph.watch(JOIN)
    stream = graph.stream(iri("s"))
    for number in range(20_000):
        stream.push([(iri(f"a{number}"), iri("p"), iri(f"b{number}"))], time=number // 100)
        stream.push([(iri(f"b{number}"), iri("q"), iri(f"c{number}"))], time=number // 100)
    graph.advance(300)
    assert sum(len(list(result)) for result in query.results()) == 20_000


def test_threads_share_the_buffer():
    graph = LiveGraph()
    program = graph.run(Program.parse(PATTERN))

    def work(name):
        for number in range(500):
            for type_ in "AB":
                graph.publish(typed(f"{name}{number}", type_))

    threads = [Thread(target=work, args=(name,)) for name in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert program.matched("Both") == 1000


def test_many_events_in_one_call():
    pairs = [(typed("k", "A"), 1), (typed("j", "A"), 1), (typed("k", "B"), 3), (typed("j", "B"), 9)]
    graph = LiveGraph()
    asserted = graph.run(Program.parse(PATTERN))
    asserted.assert_events(pairs)
    asserted.assert_events([])
    graph = LiveGraph()
    pushed = graph.run(Program.parse(PATTERN))
    graph.stream(iri("s")).push_many(pairs)
    for program in (asserted, pushed):
        assert [(m.start, m.time) for m in program.matches("Both")] == [(1, 3)]
        assert program.clock == 9
    with pytest.raises(GraphtideError, match="backwards"):
        asserted.assert_events([(typed("k", "A"), 12), (typed("k", "B"), 11)])
    assert asserted.clock == 9


def test_many_events_out_of_order_are_as_single_ones():
    late = LiveGraph().stream(iri("s"), lateness=1)
    late.push_many([(typed("k", "A"), time) for time in (5, 4, 2)] + [([], 9)])
    assert (late.late_count, late.watermark) == (1, 8)


@pytest.mark.parametrize("kind", ["window", "rule"])
def test_events_that_returned_are_not_lost(kind):
    """A fault while an answer is read leaves them in the buffer, or taken in: each once."""

    def waiting():
        graph = LiveGraph()
        stream = graph.stream(iri("s"))
        if kind == "window":
            query = graph.watch(JOIN)
            for time in range(9):
                stream.push([(iri(f"n{time % 3}"), iri("pq"[time % 2]), iri("n1"))], time=time)
            return graph, lambda: [str(each) for each in query.results()]
        program = graph.run(Program.parse(RULE))
        graph.insert(iri("k"), iri("on"), iri("yes"))
        for time in range(9):
            stream.push(typed("k", "AB"[time % 2]), time=time)
        return graph, lambda: [(each.number, each.time) for each in program.firings()]

    for _ in range(2):  # what is loaded or cached the first time is not called again
        graph, look = waiting()
        assert waits(graph)
        with fault_at(0) as counted:
            expected = look()
    assert expected
    faults = 0
    for number in range(1, counted.calls + 1):
        graph, look = waiting()
        try:
            with fault_at(number):
                look()
        except InjectedFault as fault:
            faults += 1
            with after_fault(fault):
                assert look() == expected
        assert graph.clock == (8 if kind == "rule" else graph.clock)
    assert faults > 10
