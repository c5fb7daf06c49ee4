"""Terms are given back: nothing that can still be seen is lost, and what is held stays bounded.

Scenarios run with terms freed at every safe point and ids never reused, so that whoever forgot to
hold an id fails. Each is run again without one of the holders, and has to fail then.
"""

from __future__ import annotations

import gc
from threading import Thread

import numpy as np
import pytest
from engine import endless
from engine.reclaim_scenarios import PREFIX, SCENARIOS, iri, rows

from graphtide import LiveGraph
from graphtide.engine import reclaim
from graphtide.errors import GraphtideError, TermError
from graphtide.kernel import JIT
from graphtide.rdf import holders
from graphtide.rdf.changes import ChangeBatch


@pytest.mark.parametrize("quarantine", [True, False], ids=["quarantine", "reuse"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_freed_terms_are_missed_by_nobody(scenario, quarantine, monkeypatch):
    expected = scenario()
    monkeypatch.setattr(reclaim, "ALWAYS", True)
    monkeypatch.setattr(reclaim, "QUARANTINE", quarantine)
    assert scenario() == expected
    assert expected, "there is something to see"


@pytest.mark.parametrize(
    ("scenario", "holder"),
    [(scenario, holder) for scenario, held in SCENARIOS.items() for holder in held],
    ids=lambda part: part.__name__,
)
def test_each_holder_is_needed(scenario, holder, monkeypatch):
    expected = scenario()
    monkeypatch.setattr(reclaim, "ALWAYS", True)
    monkeypatch.setattr(reclaim, "QUARANTINE", True)
    monkeypatch.setattr(holder, "held_ids", lambda self: iter(()))
    try:
        found = scenario()
    except (GraphtideError, KeyError):
        return
    assert found != expected, "without this holder, an id that is needed was freed"


def test_the_constant_of_a_filter_is_held():
    graph = LiveGraph(store="none")
    query = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b FILTER (?b > 5) }")
    five = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    graph.terms.reclaim()
    assert graph.terms.lookup(five)
    query.close()
    del query
    gc.collect()
    graph.terms.reclaim()
    assert not graph.terms.lookup(five)


# --- memory ---


@pytest.mark.parametrize("part", endless.PARTS)
@pytest.mark.slow
def test_what_endless_events_leave_behind_is_bounded(part):
    events = 60_000 if JIT else 2000
    found = list(endless.feed(endless.make_graph(part), part, events))
    assert len(found) == -(-events // endless.BATCH)
    # A batch is interned before anything can be freed; then the dictionary may double.
    assert found[-1].terms < 2 * (2 * reclaim.LEAST_GROWTH + 2 * endless.BATCH)
    if part == "none":
        assert found[-1].terms < 3 * reclaim.LEAST_GROWTH + endless.PLACES + endless.BATCH


@pytest.mark.slow
@pytest.mark.parametrize("part", endless.PARTS)
def test_two_million_events_leave_no_more_behind_than_one_million(part):
    found = list(endless.feed(endless.make_graph(part), part, 2_000_000))
    middle = len(found) // 2
    for held in endless.Held._fields:
        first, second = (
            max(getattr(each, held) for each in half) for half in (found[:middle], found[middle:])
        )
        assert second <= 1.2 * first, held
    assert max(each.terms for each in found) < 400_000


@pytest.mark.slow
def test_fresh_ids_one_by_one_are_given_back():
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }", history=10)
    for n in range(3 * reclaim.LEAST_GROWTH):
        graph.insert(iri(f"fresh{n}"), iri("p"), iri("b"))
        graph.delete(iri(f"fresh{n}"), iri("p"), iri("b"))
        query.delta()
    assert len(graph.terms) <= reclaim.LEAST_GROWTH + 20
    assert len(graph.terms.known) <= 2 * len(graph.terms) + 10
    assert graph.terms.top <= reclaim.LEAST_GROWTH + 20, "ids are reused"


def test_unmatched_quads_are_not_interned():
    for store in ("none", "matched"):
        graph = LiveGraph(store=store)
        star = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }")
        known = len(graph.terms)
        graph.insert(iri("a"), iri("other"), '"x"')
        graph.apply(ChangeBatch.of([(0, 1, 1, iri("b"), iri("other"), '"y"', iri("g"))]))
        with graph.transaction() as tx:
            tx.insert(iri("c"), iri("other"), 7)
        stats = graph.stats()
        assert stats.dropped == 3 and stats.transactions == 3
        # The predicate of a batch is interned to be looked at.
        assert len(graph.terms) <= known + 1
        graph.insert(iri("a"), iri("p"), '"x"')
        assert star.count() == 1


def test_quads_that_match_by_any_spelling_are_not_dropped():
    graph = LiveGraph(store="none")
    query = graph.watch(PREFIX + 'SELECT ?a { ?a :p "x" . ?a a :C }')
    graph.insert(
        iri("a"), "<http://example.org/\\u0070>", '"x"^^<http://www.w3.org/2001/XMLSchema#string>'
    )
    type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rows_ = [
        (0, 1, 1, iri("a"), type_, "<http://example.org/\\u0043>", None),
        (0, 2, 1, iri("b"), type_, iri("D"), None),
        (0, 3, 1, iri("b"), "<http://example.org/\\u0070>", '"\\u0078"', None),
    ]
    graph.apply(ChangeBatch.of(rows_))
    assert rows(query.table(terms=True)) == ["{'a': '<http://example.org/a>'}"]
    assert not graph.terms.lookup(iri("D")) or graph.terms.lookup(iri("b"))


def test_unmatched_quads_are_checked_all_the_same():
    graph = LiveGraph(store="none")
    graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }")
    with pytest.raises(TermError):
        graph.insert(iri("a"), iri("other"), "no term")
    with pytest.raises(TermError, match="cannot be a subject"):
        graph.insert('"a"', iri("other"), 1)
    with pytest.raises(GraphtideError, match="row 1"):
        graph.apply(
            ChangeBatch.of(
                [
                    (0, 1, 1, iri("a"), iri("p"), '"x"', None),
                    (0, 1, 1, iri("a"), iri("q"), "x", None),
                ]
            )
        )


def test_rows_of_count_distinct_are_given_back():
    graph = LiveGraph(store="none")
    query = graph.watch(PREFIX + "SELECT (COUNT(DISTINCT *) AS ?n) { ?a :p ?b }", history=5)
    sizes = []
    for n in range(50):
        graph.insert(iri(f"a{n}"), iri("p"), iri("b"))
        graph.insert(iri(f"b{n}"), iri("p"), iri("b"))
        graph.delete(iri(f"a{n}"), iri("p"), iri("b"))
        graph.delete(iri(f"b{n}"), iri("p"), iri("b"))
        sizes.append(query.nbytes)
    assert query.table()["n"].to_pylist() == [0]
    assert sizes[-1] == sizes[0], "rows that are gone have no number"
    graph.insert(iri("x"), iri("p"), iri("b"))
    assert query.table()["n"].to_pylist() == [1]


# --- interrupts and threads ---


@pytest.mark.skipif(reclaim.ALWAYS, reason="the insert before the sweep frees the term")
def test_an_interrupted_sweep_has_not_happened(monkeypatch):
    graph = LiveGraph()
    graph.insert(iri("a"), iri("p"), '"x"')
    graph.delete(iri("a"), iri("p"), '"x"')
    graph.insert(iri("a"), iri("p"), '"y"')
    graph.stats()
    terms = graph.terms
    table, known = type(terms._table), terms.lookup('"x"')
    sweep = table.sweep

    def interrupted(self, live, *, reuse):
        sweep(self, live, reuse=reuse)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(table, "sweep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            terms.reclaim()
    assert (terms.text(known), terms.intern('"x"'), terms.generation) == ('"x"', known, 0)
    terms.reclaim()
    assert (terms.lookup('"x"'), terms.generation) == (0, 1)
    assert [str(part) for part in next(graph.quads())[:3]] == [iri("a"), iri("p"), '"y"']


def test_nothing_is_sliced_or_decoded_while_another_thread_frees_terms():
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }")
    graph.insert(iri("a"), iri("p"), 1)
    delta = query.delta()
    for look in (lambda: delta[:1], lambda: delta[0]):
        found = []
        thread = Thread(target=lambda look=look, found=found: found.append(look()))
        with graph.lock:
            thread.start()
            thread.join(0.05)
            assert not found
        thread.join()
        assert len(found) == 1


def test_nothing_is_freed_while_effects_or_events_wait(monkeypatch):
    monkeypatch.setattr(reclaim, "ALWAYS", True)
    graph = LiveGraph()
    runtime = graph._runtime
    graph.terms.intern(iri("passing"))
    runtime.schedule.cause(lambda: None)
    runtime.reclaim()
    assert graph.terms.lookup(iri("passing")), "an effect may have its id"
    runtime.schedule.perform(runtime.reclaim)
    assert graph.terms.lookup(iri("passing")), "and so may a cascade"
    with runtime.schedule, runtime.schedule.one_call:
        runtime.reclaim()
        assert graph.terms.lookup(iri("passing")), "and a call"
        runtime.reclaim(in_call=True)
    assert not graph.terms.lookup(iri("passing"))


# --- ids in the users' hands ---


@pytest.mark.skipif(reclaim.ALWAYS, reason="an id that was freed has another error there")
def test_encoded_ids_are_pinned_until_they_are_released():
    graph = LiveGraph()
    ids = graph.terms.encode_column([iri("a"), iri("p"), '"x"'])
    graph.terms.reclaim()
    s, p, o = (ids[n : n + 1] for n in range(3))
    graph.apply_ids(s, p, o)
    assert [str(part) for part in next(graph.quads())[:3]] == [iri("a"), iri("p"), '"x"']
    graph.apply_ids(s, p, o, diff=np.array([-1]))
    graph.terms.release(ids)
    graph.stats()
    graph.terms.reclaim()
    assert len(graph.terms) == 0
    with pytest.raises(TermError, match="no term has id"):
        graph.terms.decode(int(ids[0]))


def test_a_freed_id_is_refused(monkeypatch):
    monkeypatch.setattr(reclaim, "QUARANTINE", True)
    graph = LiveGraph()
    kept, freed = graph.terms.encode(iri("kept")), graph.terms.encode(iri("freed"))
    graph.terms.release(freed)
    graph.terms.reclaim()
    three = [np.array([kept]), np.array([kept]), np.array([freed])]
    with pytest.raises(TermError, match="was freed"):
        graph.apply_ids(*three)
    with pytest.raises(TermError, match="was freed"):
        graph.terms.decode_column(np.array([kept, freed]))
    with pytest.raises(TermError, match="was freed"):
        graph.terms.text(freed)


def test_a_term_that_comes_back_has_one_id():
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?a ?b { ?a :p ?b }", history=1)
    for n in range(4):
        graph.insert(iri("a"), iri("p"), '"x"')
        graph.insert(iri("a"), iri("p"), '"y"')
        graph.delete(iri("a"), iri("p"), '"x"')
        graph.delete(iri("a"), iri("p"), '"y"')
        graph.insert(iri(f"other{n}"), iri("q"), n)
        graph.stats()
        graph.terms.reclaim()
    graph.insert(iri("a"), iri("p"), '"x"')
    assert rows(query.table(terms=True)) == [str({"a": iri("a"), "b": '"x"'})]


def test_a_weak_list_of_holders_does_not_grow():
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?a { ?a :p ?b }")
    graph.insert(iri("a"), iri("p"), 1)
    before = len(graph.terms.holders)
    for _ in range(3 * holders.LEAST_PRUNED):
        assert query.delta()
    assert len(graph.terms.holders) == before
    assert len(graph.terms.holders._refs) <= 2 * holders.LEAST_PRUNED
