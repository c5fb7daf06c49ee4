"""Numbers of transactions do not depend on which windows there are."""

from __future__ import annotations

import pytest

from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program

WINDOW = """PREFIX : <http://e/>
REGISTER RSTREAM :o AS SELECT ?x ?y FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 2]
WHERE { WINDOW :w { ?x :a ?y } ?x :p ?z }"""
PLAIN = "SELECT ?x ?z { ?x <http://e/p> ?z }"
RULE = """PREFIX : <http://e/>
EVENT A(?x) AS { ?x :a ?y }
RULE R ON A(?x) THEN INSERT { ?x :p :fired }"""


def fill(graph):
    """Events at 1, 4, 7 and 10, each followed by an insert, and closes in between."""
    stream = graph.stream("<http://e/s>")
    for time in (1, 4, 7, 10):
        stream.push([(f"<http://e/x{time}>", "<http://e/a>", "<http://e/y>")], time=time)
        graph.insert(f"<http://e/x{time}>", "<http://e/p>", f'"{time}"')
    graph.advance(20)


def numbers(query):
    return [(delta.seq, delta.tx, delta.time) for delta in query.deltas()]


@pytest.mark.parametrize("program", [False, True])
@pytest.mark.parametrize("windows", [0, 1, 2])
def test_closes_of_windows_take_no_numbers(windows, program):
    graph = LiveGraph()
    plain = graph.watch(PLAIN)
    for number in range(windows):
        graph.watch(WINDOW, name=f"window{number}")
    if program:
        graph.run(Program.parse(RULE))
    fill(graph)
    times = [1, 1, 4, 4, 7, 7, 10, 10] if program else [1, 4, 7, 10]
    assert numbers(plain) == [(at, at, time) for at, time in enumerate(times)]
    assert graph.transactions == len(times)
    assert [delta.seq for delta in plain.since(1)] == list(range(2, len(times)))


def test_numbers_of_a_store_do_not_depend_on_windows_either(tmp_path):
    found = []
    for windows in (0, 1):
        folder = tmp_path / str(windows)
        graph = LiveGraph.open(folder)
        graph.watch(PLAIN, name="plain")
        for _ in range(windows):
            graph.watch(WINDOW, name="window")
        fill(graph)
        graph.store.checkpoint()
        graph.insert("<http://e/x4>", "<http://e/p>", '"after"', time=23)
        graph.store.close()
        graph = LiveGraph.open(folder)
        (plain,) = (query for query in graph.queries if query.name == "plain")
        graph.insert("<http://e/x7>", "<http://e/p>", '"again"', time=25)
        cursor = [(delta.seq, delta.time, len(delta)) for delta in plain.cursor("reader")]
        quads = [len(graph.at(tx=number)) for number in range(graph.transactions + 1)]
        explained = [str(row.why()) for delta in plain.since(-1) for row in delta]
        found.append((numbers(plain), cursor, quads, explained))
        graph.store.close()
    assert found[0] == found[1]
    assert [seq for seq, _, _ in found[1][1]] == [0, 1, 2, 3, 4, 5]
    assert found[1][2] == [0, 1, 2, 3, 4, 5, 6]
