"""Journals whose checksums are right and whose inputs are not: `verify` says what opening says."""

from __future__ import annotations

import pytest

import graphtide as gt
from graphtide.cli.main import main
from graphtide.durable import chunks
from graphtide.durable.entries import make_entry
from graphtide.durable.journal import Journal
from graphtide.durable.verify import verify
from graphtide.lang.sparql.parse import parse_standing
from graphtide.rdf.dictionary import TermDictionary

KNOWS = "<ex:knows>"
WINDOW = """REGISTER RSTREAM <ex:out> AS SELECT ?a
    FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 4 STEP 2] WHERE { WINDOW <ex:w> { ?a <ex:at> ?b } }"""


@pytest.fixture
def store(tmp_path):
    """A journal of five rows: a query and four inserts."""
    folder = tmp_path / "store"
    with gt.LiveGraph.open(folder, durability="transaction") as graph:
        graph.watch(f"SELECT ?a {{ ?a {KNOWS} ?b }}", name="known")
        for number in range(4):
            graph.insert(f"<ex:{number}>", KNOWS, "<ex:x>")
    return folder


def append(folder, tx, *entries):
    """Append a row, with its checksum, as a process with a defect would."""
    journal = Journal(folder, writes=True)
    journal.append([(tx, 0, 0.0, chunks.encoded(entries, TermDictionary().table()))], [])
    journal.close()


def test_a_row_that_came_after_other_transactions(store, capsys):
    append(store, 5, make_entry("clock", 9))
    with pytest.raises(gt.GraphtideError, match="row 6 of the journal came after 5") as raised:
        gt.LiveGraph.open(store)
    report = verify(store, gt.LiveGraph)
    assert report.problems == [raised.value.message]
    assert report.good == 5
    assert main(["store", "verify", str(store)]) == 1
    assert "good up to row 5" in capsys.readouterr().out
    assert main(["store", "compact", str(store), "--cut"]) == 0
    with gt.LiveGraph.open(store) as graph:
        assert len(graph) == graph.queries[0].count() == 4
    assert not verify(store, gt.LiveGraph).problems


def test_an_input_that_does_not_fit(store):
    query = parse_standing("SELECT ?a { ?a ?p ?b }")
    append(store, 4, make_entry("watch", "known", query, {}))
    with pytest.raises(gt.GraphtideError, match="already registered") as raised:
        gt.LiveGraph.open(store)
    assert verify(store, gt.LiveGraph).problems == [raised.value.message]


@pytest.mark.parametrize(
    "entry",
    [
        make_entry("unwatch", "known"),
        make_entry("stop", "program-1"),
        make_entry("fire", "program-1", 3),
    ],
)
def test_what_ends_twice_has_ended(store, entry):
    """Stores that an earlier version has left with the same end twice can be opened."""
    append(store, 4, entry, entry)
    with gt.LiveGraph.open(store) as graph:
        assert len(graph) == 4
        assert len(graph.queries) == (entry.kind != "unwatch")
    assert not verify(store, gt.LiveGraph).problems


def test_a_query_that_was_refused_leaves_no_window(tmp_path):
    """A window without readers would close, and its closes would count as transactions."""
    with gt.LiveGraph.open(tmp_path / "store") as graph:
        graph.watch(f"SELECT ?a {{ ?a {KNOWS} ?b }}", name="known")
        graph.stream("<ex:s>")
        with pytest.raises(gt.GraphtideError, match="already registered"):
            graph.watch(WINDOW, name="known")
        for time in (1, 5, 9):
            graph.stream("<ex:s>").push([("<ex:v>", "<ex:at>", "<ex:w>")], time=time)
            graph.insert(f"<ex:{time}>", KNOWS, "<ex:x>")
        graph.flush()
        graph.store.backup(tmp_path / "copy")
        assert not verify(tmp_path / "copy", gt.LiveGraph).problems
        with gt.LiveGraph.open(tmp_path / "copy") as again:
            assert again.transactions == graph.transactions
