"""The harness itself: it must notice an engine that is wrong in any of the ways it checks."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.sampling import quick_sample

from graphtide import LiveGraph
from graphtide.engine.results import DeltaRow
from oracles.fuzz import FuzzFailure, check_case, main, script, shrunk
from oracles.transactions import transaction

QUERY = "SELECT ?x ?z { ?x <a:p> ?y . ?y <a:p> ?z }"
STREAM = [
    transaction(0, "+ <a:a> <a:p> <a:b>", "+ <a:b> <a:p> <a:c>"),
    transaction(0, "+ <a:b> <a:p> <a:c>"),
    transaction(1, "+ <a:e> <a:p> <a:b>", "+ <a:f> <a:p> <a:b>"),
    transaction(1, "- <a:a> <a:p> <a:b>"),
    transaction(4, "+ <a:a> <a:p> <a:b>", "- <a:b> <a:p> <a:c>", "+ <a:b> <a:p> <a:d>"),
]


class Forgetful(LiveGraph):
    """Never deletes one by one."""

    def delete(self, s, p, o, g=None, *, time=None):
        self.transaction(time=time).__exit__(None, None, None)


class Careless(LiveGraph):
    """Takes each change of a transaction for a transaction of its own."""

    @contextmanager
    def transaction(self, *, time=None):
        self.advance(self.clock if time is None else time)
        yield self


class Hasty(LiveGraph):
    """Loses the last change of every batch."""

    def apply(self, changes, **options):
        batches = (
            [batch.from_arrow(batch.to_arrow()[:-1]) for batch in changes]
            if not hasattr(changes, "to_arrow")
            else changes
        )
        super().apply(batches, **options)


class Wrapped(LiveGraph):
    """Gives out watches that lie in one respect."""

    lie = ""

    def watch(self, query, **options):
        watch = super().watch(query, **options)
        return Liar(watch, self.lie, late=len(self) > 0)


class Liar:
    def __init__(self, watch, lie, *, late):
        self._watch, self._lie, self._late = watch, lie, late

    def __getattr__(self, name):
        return getattr(self._watch, name)

    def delta(self):
        rows = list(self._watch.delta())
        if self._lie == "not net" and rows:
            row = rows[0]
            opposite = DeltaRow(row.time, row.tx, -row.diff, row.row)
            rows += [opposite, row]
        if self._lie == "strategy" and self._watch.strategy == "rete":
            rows = rows[1:]
        return rows

    def rows(self):
        rows = list(self._watch.rows())
        return rows[1:] if self._lie == "late" and self._late else rows

    def count(self):
        return self._watch.count() + (self._lie == "count")

    def on_appear(self, callback):
        if self._lie != "deaf":
            self._watch.on_appear(callback)


def wrapped(lie):
    class Graph(Wrapped):
        pass

    Graph.lie = lie
    return Graph


def test_the_engine_passes():
    assert check_case(QUERY, STREAM)


@pytest.mark.parametrize("make", [Forgetful, Careless, Hasty])
def test_a_graph_that_mistreats_changes_is_noticed(make):
    with pytest.raises(FuzzFailure):
        check_case(QUERY, STREAM, make_graph=make)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ("not net", "not consolidated"),
        ("strategy", "rete"),
        ("late", "registered late"),
        ("count", "count"),
        ("deaf", "callbacks"),
    ],
)
def test_a_watch_that_lies_is_noticed(lie, message):
    assert check_case(QUERY, STREAM, make_graph=wrapped("none"))
    with pytest.raises(FuzzFailure, match=message):
        check_case(QUERY, STREAM, make_graph=wrapped(lie))


def test_wrong_answers_are_noticed_even_when_all_ways_agree():
    class Blind(LiveGraph):
        def watch(self, query, **options):
            return super().watch(
                query.replace("?y <a:p> ?z", "?y <a:p> ?y BIND(?y AS ?z)"), **options
            )

    with pytest.raises(FuzzFailure, match="against pyoxigraph"):
        check_case(QUERY, STREAM, make_graph=Blind)


def test_respelled_numbers_are_judged_by_the_reference_evaluator():
    class Respelling(LiveGraph):
        def watch(self, query, **options):
            return super().watch(query.replace("?y }", "?n BIND(?n + 0 AS ?y) }"), **options)

    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    stream = [transaction(0, f'+ <a:a> <a:p> "01"^^{integer}'), transaction(0)]
    query = "SELECT ?y { ?x <a:p> ?y }"
    assert check_case(query, stream)
    with pytest.raises(FuzzFailure, match="against the reference evaluator"):
        check_case(query, stream, make_graph=Respelling)


def test_a_crash_is_a_failure():
    class Broken(LiveGraph):
        def apply(self, changes, **options):
            raise ZeroDivisionError

    with pytest.raises(FuzzFailure, match="ZeroDivisionError"):
        check_case(QUERY, STREAM, make_graph=Broken)


def test_answers_without_columns_are_checked():
    assert check_case("SELECT * { <a:a> <a:p> <a:b> }", STREAM)


def test_large_answers_are_not_checked():
    lines = [f"+ <a:{n}> <a:p> <a:{n}>" for n in range(13)]
    product = " . ".join(f"?a{n} <a:p> ?b{n}" for n in range(3))
    assert not check_case(f"SELECT * {{ {product} }}", [transaction(0, *lines)])


@pytest.mark.slow
@pytest.mark.parametrize("query", quick_sample(["SELECT * { ?s ?p '''it's''' }", QUERY], 2))
def test_the_message_is_a_runnable_script(query, tmp_path):
    path = tmp_path / "case.py"
    path.write_text(script("two lines\nof problem", query, STREAM), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_main_says_how_many_cases_agree(capfd):
    assert main(["--cases", "8", "--seed", "5", "--jobs", "2"]) == 0
    assert "8 cases agree" in capfd.readouterr().err


def test_a_failing_stream_is_shrunk(monkeypatch):
    monkeypatch.setitem(check_case.__kwdefaults__, "make_graph", Hasty)
    needless = [transaction(at, f"+ <a:{at}> <a:q> <a:b>") for at in range(6)]
    with pytest.raises(FuzzFailure) as found:
        check_case("SELECT ?x { ?x <a:p> ?y }", [*needless, transaction(9, "+ <a:a> <a:p> <a:b>")])
    small = shrunk(found.value).transactions
    assert [line for each in small for line in each.lines()] == ["+ <a:a> <a:p> <a:b>"]


@pytest.mark.slow
def test_main_prints_the_script_of_a_failure(capfd, monkeypatch):
    monkeypatch.setitem(check_case.__kwdefaults__, "make_graph", Careless)
    assert main(["--cases", "200", "--jobs", "1"]) == 1
    assert "check_case(QUERY, STREAM)" in capfd.readouterr().out
