"""The three ways to evaluate a windowed query find the same matches, and those that there are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from pyoxigraph import RdfFormat, Store

from graphtide.bench.windows import events, ours
from graphtide.bench.windows.cell import Cell
from graphtide.bench.windows.events import _blocks, pieces
from graphtide.bench.windows.ours import check_matches, incremental, one_by_one, reevaluation
from graphtide.bench.windows.peer import peer
from graphtide.datasets.queries import LUBM_QUERIES
from graphtide.errors import GraphtideError

TUMBLING = Cell("table1", "lubm", "Q2", 4_000, 4_000, "incremental", least=0)
SLIDING = Cell("figure7", "seas", "Q1", 500, 1, "incremental", least=0)


@cache
def first_block(data):
    return next(_blocks(replace(TUMBLING, data=data), 1))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few evaluations, and streams of one block that is made once."""
    monkeypatch.setattr(events, "_blocks", lambda cell, _: iter([first_block(cell.data)]))
    for name in ("graphtide.bench.windows.ours", "graphtide.bench.windows.peer"):
        monkeypatch.setattr(f"{name}.MOST_EVALUATIONS", 4)
    monkeypatch.setattr(ours, "FEW", 50)


def answer(cell, end):
    """The answer over the window's triples, from scratch; a tick is a triple."""
    last = (end - 1) // cell.event * cell.event
    begin = (last - cell.window) // cell.slide * cell.slide
    store = Store()
    for piece in pieces(cell, 0, end, 1_000):
        store.bulk_load(piece.only(piece.times >= begin).lines(), format=RdfFormat.N_TRIPLES)
    return sum(1 for _ in store.query(cell.plain))


@pytest.mark.parametrize("query", LUBM_QUERIES)
def test_all_ways_on_tumbling_windows(query):
    cell = replace(TUMBLING, query=query)
    found = incremental(cell)
    assert (found.triples, found.matches) == (10_000, answer(cell, 10_000))
    for way in (reevaluation, peer, one_by_one):
        figures = way(cell)
        assert figures.matches == answer(cell, cell.before + figures.triples)


@pytest.mark.parametrize("event", [1, 20])
@pytest.mark.parametrize("query", ["Q1", "Q2"])
def test_all_ways_on_sliding_windows(query, event):
    cell = replace(SLIDING, query=query, event=event)
    assert incremental(cell).matches == answer(cell, cell.before)
    for way in (reevaluation, one_by_one):
        figures = way(cell)
        assert figures.matches == answer(cell, cell.before + figures.triples)


def test_the_peer_lets_old_triples_go():
    cell = replace(SLIDING, window=5_000)
    figures = peer(cell)
    assert figures.triples == 4_000
    assert figures.matches == answer(cell, 11_500) == 500


def test_a_wrong_number_of_matches_is_told():
    with pytest.raises(GraphtideError, match="7 matches, but incremental evaluation finds 50"):
        check_matches(SLIDING, 1_000, 7)


def test_the_share_that_is_pruned():
    """Of the ten predicates of an observation, the query names six."""
    assert incremental(SLIDING).pruned == pytest.approx(0.4)
