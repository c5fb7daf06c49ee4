"""The three ways to evaluate a windowed query find the same matches, and those that there are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from pyoxigraph import RdfFormat, Store

from benchmarks.datasets.queries import LUBM_QUERIES
from benchmarks.harness import BenchmarkError
from benchmarks.windows import engines
from benchmarks.windows.benchmark import WindowsTask
from benchmarks.windows.engines import (
    _blocks,
    check_matches,
    incremental,
    one_by_one,
    pyoxigraph,
    reevaluation,
    slices,
)

TUMBLING = WindowsTask("table1", "lubm", "Q2", 4_000, 4_000, "incremental", min_triples=0)
SLIDING = WindowsTask("figure7", "seas", "Q1", 500, 1, "incremental", min_triples=0)


@cache
def first_block(data):
    return next(_blocks(replace(TUMBLING, data=data), 1))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few evaluations, and streams of one block that is made once."""
    monkeypatch.setattr(engines, "_blocks", lambda task, _: iter([first_block(task.data)]))
    monkeypatch.setattr(engines, "MAX_EVALUATIONS", 4)
    monkeypatch.setattr(engines, "MAX_EVENTS", 6)
    monkeypatch.setattr(engines, "MAX_SINGLE_TRIPLES", 50)


def answer(task, end):
    """The answer over the window's triples, from scratch; a tick is a triple."""
    last = (end - 1) // task.event * task.event
    begin = (last - task.window) // task.slide * task.slide
    store = Store()
    for each in slices(task, 0, end, 1_000):
        store.bulk_load(each.part(each.times >= begin).lines(), format=RdfFormat.N_TRIPLES)
    return sum(1 for _ in store.query(task.plain))


@pytest.mark.slow
@pytest.mark.parametrize("query", LUBM_QUERIES)
def test_all_ways_on_tumbling_windows(query):
    task = replace(TUMBLING, query=query)
    found = incremental(task)
    assert (found.triples, found.matches) == (10_000, answer(task, 10_000))
    for way in (reevaluation, pyoxigraph, one_by_one):
        figures = way(task)
        assert figures.matches == answer(task, task.before + figures.triples)


@pytest.mark.parametrize("event", [1, 20])
@pytest.mark.parametrize("query", ["Q1", "Q2"])
def test_all_ways_on_sliding_windows(query, event):
    task = replace(SLIDING, query=query, event=event)
    assert incremental(task).matches == answer(task, task.before)
    for way in (reevaluation, one_by_one):
        figures = way(task)
        assert figures.matches == answer(task, task.before + figures.triples)


def test_the_peer_lets_old_triples_go():
    task = replace(SLIDING, window=5_000)
    figures = pyoxigraph(task)
    assert figures.triples == 4_000
    assert figures.matches == answer(task, 11_500) == 500


@pytest.mark.parametrize("window", [100, 500])
def test_the_peer_gets_batches_that_are_longer_than_the_window(window):
    task = replace(SLIDING, window=window)
    figures = pyoxigraph(task)
    assert figures.matches == answer(task, task.before + figures.triples) == window // 10


def test_a_wrong_number_of_matches_is_reported():
    with pytest.raises(BenchmarkError, match="7 matches, but incremental evaluation finds 50"):
        check_matches(SLIDING, 1_000, 7)


def test_the_share_that_is_pruned():
    """Of the ten predicates of an observation, the query names six."""
    assert incremental(SLIDING).pruned == pytest.approx(0.4)
