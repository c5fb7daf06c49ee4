"""A graph that is opened again is the graph that was: quads, clock, queries, numbers."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

import graphtide as gt

KNOWS = "<ex:knows>"
PAIRS = "SELECT ?a ?c { ?a <ex:knows> ?b . ?b <ex:knows> ?c }"
MODES = ("transaction", "batch", "none")


def look(graph):
    """All that can be seen of a graph."""
    return {
        "quads": sorted(map(str, graph.quads())),
        "clock": graph.clock,
        "transactions": graph.stats().transactions,
        "queries": {
            query.name: (query.text, sorted(map(str, query.table(terms=True).to_pylist())))
            for query in graph.queries
        },
    }


def fill(graph):
    graph.watch(PAIRS, name="pairs")
    graph.insert("<ex:a>", KNOWS, "<ex:b>", time=3)
    with graph.transaction(time=4) as tx:
        tx.insert("<ex:b>", KNOWS, "<ex:c>")
        tx.insert("<ex:b>", KNOWS, '"x"@en')
    with graph.transaction():
        pass
    graph.update("DELETE { ?s ?p ?o } INSERT { GRAPH <ex:g> { ?s ?p ?o } } WHERE { ?s ?p 'x'@en }")
    graph.watch("ASK { ?s <ex:knows> ?o }", strategy="rete")
    graph.apply(
        gt.ChangeBatch.of([(9, n, 1, f"<ex:{n}>", KNOWS, "<ex:a>", None) for n in range(5)])
    )
    graph.delete("<ex:3>", KNOWS, "<ex:a>")
    graph.advance(20)


@pytest.mark.parametrize("durability", MODES)
def test_a_graph_comes_back_as_it_was(tmp_path, durability):
    memory = gt.LiveGraph()
    fill(memory)
    with gt.LiveGraph.open(tmp_path, durability=durability) as graph:
        fill(graph)
        assert look(graph) == look(memory)
    with gt.LiveGraph.open(tmp_path) as graph:
        assert look(graph) == look(memory)


@pytest.mark.parametrize("durability", MODES)
def test_without_a_snapshot_the_journal_leads_to_the_same_graph(tmp_path, durability):
    memory = gt.LiveGraph()
    fill(memory)
    with gt.LiveGraph.open(tmp_path, durability=durability) as graph:
        fill(graph)
    for path in tmp_path.glob("snapshot-*.packed"):
        path.unlink()
    with gt.LiveGraph.open(tmp_path) as graph:
        assert look(graph) == look(memory)
        assert [str(delta) for delta in graph.queries[0].deltas()] == [
            str(delta) for delta in memory.queries[0].deltas()
        ]
        assert [delta.seq for delta in graph.queries[0].deltas()] == [
            delta.seq for delta in memory.queries[0].deltas()
        ]


def test_a_graph_goes_on_after_it_was_opened_again(tmp_path):
    memory = gt.LiveGraph()
    memory.watch(PAIRS, name="pairs")
    for round_ in range(5):
        with gt.LiveGraph.open(tmp_path) as graph:
            if not round_:
                graph.watch(PAIRS, name="pairs")
            for each in (graph, memory):
                each.insert(f"<ex:{round_}>", KNOWS, f"<ex:{round_ + 1}>", time=10 * round_)
                each.delete("<ex:1>", KNOWS, "<ex:2>", time=10 * round_ + 5)
            if round_ == 2:
                graph.checkpoint()
            assert look(graph) == look(memory)
            assert str(graph.queries[0].delta()) == str(memory.queries[0].delta())


def test_a_query_that_was_closed_does_not_come_back(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.watch(PAIRS, name="gone").close()
        graph.watch(PAIRS, name="pairs", history=7)
    with gt.LiveGraph.open(tmp_path) as graph:
        assert [query.name for query in graph.queries] == ["pairs"]


def test_a_second_writer_is_refused(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        with pytest.raises(gt.GraphtideError, match="open in another process"):
            gt.LiveGraph.open(tmp_path)
        graph.insert("<ex:a>", KNOWS, "<ex:b>")
        graph.flush()
        reader = gt.LiveGraph.open(tmp_path, read_only=True)
        assert len(reader) == 1
        with pytest.raises(gt.GraphtideError, match="read-only"):
            reader.insert("<ex:a>", KNOWS, "<ex:c>")
        graph.insert("<ex:b>", KNOWS, "<ex:c>")
        graph.flush()
        assert len(reader) == 1
        assert reader.follow()
        assert not reader.follow()
        assert look(reader) == look(graph)
        reader.close()


def test_options_are_those_of_the_store(tmp_path):
    with gt.LiveGraph.open(tmp_path, strict=True, tick_ms=10) as graph:
        graph.insert("<ex:a>", KNOWS, "<ex:b>")
        with pytest.raises(gt.GraphtideError, match="present"):
            graph.insert("<ex:a>", KNOWS, "<ex:b>")
    with pytest.raises(gt.GraphtideError, match="other options: tick_ms"):
        gt.LiveGraph.open(tmp_path, tick_ms=20)
    with gt.LiveGraph.open(tmp_path) as graph, pytest.raises(gt.GraphtideError, match="absent"):
        graph.delete("<ex:a>", KNOWS, "<ex:c>")


def test_a_closed_graph_cannot_be_changed(tmp_path):
    graph = gt.LiveGraph.open(tmp_path)
    graph.close()
    graph.close()
    with pytest.raises(gt.GraphtideError, match="closed"):
        graph.insert("<ex:a>", KNOWS, "<ex:b>")
    assert len(graph) == 0


def test_changes_of_callbacks_are_recorded(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        query = graph.watch("SELECT ?a { ?a <ex:knows> ?b }")
        query.on_appear(lambda row: graph.insert(row.row["a"], "<ex:is>", "<ex:known>"))
        for name in "abc":
            graph.insert(f"<ex:{name}>", KNOWS, "<ex:x>")
        now = look(graph)
        assert len(graph) == 6
    for path in tmp_path.glob("snapshot-*.packed"):
        path.unlink()
    with gt.LiveGraph.open(tmp_path) as graph:
        assert look(graph) == now


def test_a_memory_graph_has_no_store():
    with gt.LiveGraph() as graph, pytest.raises(gt.GraphtideError, match="in memory only"):
        graph.checkpoint()


SECOND_WRITER = """
import sys
import graphtide as gt
try:
    gt.LiveGraph.open(sys.argv[1]).close()
except gt.GraphtideError as error:
    print(error.message)
else:
    print("opened")
"""


@pytest.mark.parametrize("durability", MODES)
def test_a_copy_of_the_files_in_this_process_does_not_let_another_writer_in(tmp_path, durability):
    """A POSIX lock ends when the process closes any handle of the file."""
    store = tmp_path / "store"

    def second():
        command = [sys.executable, "-c", SECOND_WRITER, str(store)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    with gt.LiveGraph.open(store, durability=durability) as graph:
        graph.insert("<ex:a>", KNOWS, "<ex:b>", time=1)
        shutil.copytree(store, tmp_path / "copy")
        assert second() == f"{store} is open in another process, or was opened twice"
        graph.insert("<ex:b>", KNOWS, "<ex:c>", time=2)
    assert second() == "opened"
    with gt.LiveGraph.open(store, read_only=True) as graph:
        assert graph.stats().quads == 2


def test_a_durable_graph_has_the_options_of_the_constructor(tmp_path):
    options = {
        "default_graph": "union", "limits": gt.Limits(digits=77), "services": ["http://e/sparql"],
        "store": "all", "window_alignment": "w3c", "window_origin": 3,
    }  # fmt: skip
    windowed = (
        "REGISTER RSTREAM <ex:o> AS SELECT ?x FROM NAMED WINDOW <ex:w> ON <ex:s> "
        "[RANGE 10 STEP 10] WHERE { WINDOW <ex:w> { ?x <ex:p> ?y } }"
    )

    def seen(graph):
        named, results = graph.watch("SELECT ?x { ?x <ex:q> ?y }"), graph.watch(windowed)
        graph.insert("<ex:a>", "<ex:q>", "<ex:b>", "<ex:g>", time=1)
        graph.insert("<ex:a>", "<ex:r>", "<ex:b>", time=1)
        stream = graph.stream("<ex:s>")
        for time in (3, 4, 13, 14):
            stream.push([(f"<ex:{time}>", "<ex:p>", "<ex:b>")], time=time)
        graph.advance(40)
        assert graph.limits.digits == 77 and graph.services.settings.named() == ["http://e/sparql"]
        times = [(each.time, len(each)) for each in results.results()]
        return named.count(), graph.stats().quads, times

    with gt.LiveGraph(**options) as graph:
        expected = seen(graph)
        assert expected[:2] == (1, 2)
    with gt.LiveGraph.open(tmp_path / "store", **options) as graph:
        assert seen(graph) == expected
