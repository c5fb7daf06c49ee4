"""Limits and allowances by themselves."""

from __future__ import annotations

import time

import pytest
from pyoxigraph import Literal

import graphtide as gt
from graphtide.errors import DataError, DataLimitError, GraphtideError, LimitError
from graphtide.limits import NAMES, Allowance, Limits, active, allowance
from graphtide.progress import PROGRESS


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_is_positive_or_none(name):
    assert getattr(Limits(**{name: None}), name) is None
    for value in (0, -1, float("nan")):
        with pytest.raises(GraphtideError, match=f"the limit {name}="):
            Limits(**{name: value})


@pytest.mark.parametrize("name", NAMES)
def test_an_error_says_which_limit_and_how_to_raise_it(name):
    error = Limits(**{name: 7}).error(name, "too much")
    assert (error.limit, error.value) == (name, 7)
    assert f"the limit {name} is 7" in str(error)
    assert f"Limits({name}=…)" in str(error)
    assert f"--limit {name}=…" in str(error)


def test_an_error_of_input_is_both():
    error = Limits().data_error("entity_bytes", "too much", source="a.rdf", line=3)
    assert isinstance(error, DataLimitError)
    assert isinstance(error, DataError)
    assert isinstance(error, LimitError)
    assert str(error).startswith("a.rdf:3: too much")


def test_the_counter_is_no_part_of_the_value():
    used = Limits(digits=5)
    used.no_value("digits", "too many")
    assert used == Limits(digits=5)
    assert hash(used) == hash(Limits(digits=5))
    assert used.exceeded == {"digits": 1}


def test_a_value_over_a_limit_is_logged_once(caplog):
    limits = Limits(digits=5)
    for _ in range(3):
        limits.no_value("digits", "a number has too many digits")
    assert [record.getMessage() for record in caplog.records] == [
        "a number has too many digits; such values are errors of their rows (Limits.digits=5)"
    ]
    assert limits.exceeded["digits"] == 3


def test_a_part_of_the_same_work_has_no_allowance_of_its_own():
    limits = Limits(query_bytes=100)
    with Allowance(limits, "query") as outer:
        outer.spend(60)
        with Allowance(limits, "query"):
            assert allowance() is outer
            with pytest.raises(LimitError):
                allowance().spend(60)
        with Allowance(limits, "flush") as other:
            assert allowance() is other
        assert allowance() is outer
    assert active() == Limits()


def test_outside_of_any_work_time_and_memory_are_not_bounded():
    allowance().spend(1 << 60)
    allowance().check_time()


def test_an_allowance_ends_with_an_error_too():
    before = allowance()
    with pytest.raises(ZeroDivisionError), Allowance(Limits(), "query"):
        raise ZeroDivisionError
    assert allowance() is before


def test_time_runs_out():
    with Allowance(Limits(flush_seconds=1e-9), "flush") as left:
        with pytest.raises(LimitError, match="the flush takes too long"):
            left.check_time()
        with pytest.raises(LimitError, match="flush_seconds"):
            left.allow(1)


def test_time_in_which_loops_are_compiled_does_not_count(monkeypatch):
    with Allowance(Limits(flush_seconds=1e-9), "flush") as left:
        monkeypatch.setattr(PROGRESS, "seconds", PROGRESS.seconds + 60)
        left.check_time()
        monkeypatch.undo()
        with pytest.raises(LimitError, match="the flush takes too long"):
            left.check_time()


def test_limits_are_public():
    assert gt.Limits is Limits
    assert gt.LiveGraph(limits=gt.Limits(digits=99)).limits.digits == 99


def test_texts_that_expressions_make_count_as_intermediate_results():
    graph = gt.LiveGraph(limits=Limits(query_bytes=50_000_000))
    for number in range(300):
        graph.insert(f"<ex:s{number}>", "<ex:p>", f'"{number}{"x" * 1000}"')
    doubled = " ".join(f"BIND(CONCAT(?v{n}, ?v{n}) AS ?v{n + 1})" for n in range(15))
    for query in (
        "SELECT (CONCAT(?a, ?b) AS ?c) { ?s <ex:p> ?a . ?t <ex:p> ?b }",
        f"SELECT ?v15 {{ <ex:s1> <ex:p> ?v0 {doubled} }}",
    ):
        with pytest.raises(LimitError) as raised:
            graph.query(query)
        assert raised.value.limit == "query_bytes"


def test_a_term_that_is_inserted_has_a_limit():
    graph = gt.LiveGraph(limits=Limits(literal_length=1000))
    long = '"' + "x" * 1001 + '"'
    for insert in (
        lambda: graph.insert("<ex:s>", "<ex:p>", long),
        lambda: graph.insert("<ex:s>", "<ex:p>", Literal("x" * 1001)),
        lambda: graph.insert("<ex:s>", "<ex:p>", "<ex:" + "x" * 1001 + ">"),
        lambda: graph.stream("<ex:in>").push([("<ex:s>", "<ex:p>", long)], time=1),
        lambda: graph.publish([("<ex:s>", "<ex:p>", long)], time=1),
        lambda: graph.apply(gt.ChangeBatch.of([(1, 0, 1, "<ex:s>", "<ex:p>", long, None)])),
        lambda: graph.update(f"INSERT DATA {{ <ex:s> <ex:p> {long} }}"),
    ):
        with pytest.raises(LimitError) as raised:
            insert()
        assert raised.value.limit == "literal_length"
    graph.insert("<ex:s>", "<ex:p>", '"' + "x" * 990 + '"')
    assert len(graph) == 1


def test_a_long_literal_takes_time_in_proportion():
    graph = gt.LiveGraph(limits=Limits(literal_length=None))
    graph.insert("<ex:s>", "<ex:p>", '"' + "x" * 50_000_000 + '"')
    begin = time.perf_counter()
    table = graph.query("SELECT (STRLEN(?o) AS ?n) { ?s ?p ?o }")
    assert table.to_pylist() == [{"n": 50_000_000}]
    assert time.perf_counter() - begin < 5
