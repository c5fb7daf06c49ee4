"""Answers on LUBM: the official ones of the standard queries, and those of paper 5's queries."""

import re
from itertools import combinations

import pytest
from support.blocks import load_blocks
from support.lubm_expected import (
    ANSWERS,
    STANDARD,
    TAUGHT_GRADUATES,
    TAUGHT_UNDERGRADUATES,
    standard_query,
)

from benchmarks.datasets.lubm import Lubm
from benchmarks.datasets.queries import LUBM_QUERIES, query_text
from benchmarks.harness import BenchmarkError
from graphtide.graph import LiveGraph

PATTERN = re.compile(r"^  (\S+) (\S+) (\S+) \.$", re.MULTILINE)


def rows_in(graph, text):
    watch = graph.watch(text)
    try:
        return watch.count()
    finally:
        watch.close()


@pytest.mark.parametrize("number", STANDARD)
def test_official_answers(number, lubm_store, lubm_graph):
    rows, _ = STANDARD[number]
    text = standard_query(number)
    assert sum(1 for _ in lubm_store.query(text)) == rows
    assert rows_in(lubm_graph, text) == rows


def test_the_official_answer_of_query_7_row_by_row(lubm_store):
    place = "http://www.Department0.University0.edu/"
    graduates, undergraduates = (
        {
            (f"{place}{kind}Student{student}", f"{place}{course_kind}{course}")
            for course, students in taught.items()
            for student in students
        }
        for taught, kind, course_kind in (
            (TAUGHT_GRADUATES, "Graduate", "GraduateCourse"),
            (TAUGHT_UNDERGRADUATES, "Undergraduate", "Course"),
        )
    )
    found = {(row["x"].value, row["y"].value) for row in lubm_store.query(standard_query(7))}
    assert found == graduates | undergraduates and len(found) == 67


@pytest.mark.parametrize("number", range(1, 8))
def test_answers_of_paper_5s_queries(number, lubm_store, lubm_graph):
    rows = ANSWERS[1][number - 1]
    text = query_text("lubm", f"Q{number}")
    assert sum(1 for _ in lubm_store.query(text)) == rows
    assert rows_in(lubm_graph, text) == rows


@pytest.mark.parametrize("universities", [5, pytest.param(10, marks=pytest.mark.slow)])
def test_answers_on_more_universities(universities):
    graph = LiveGraph()
    watches = [graph.watch(query_text("lubm", name)) for name in LUBM_QUERIES]
    load_blocks(graph, Lubm(universities).indexed_blocks())
    assert tuple(watch.count() for watch in watches) == ANSWERS[universities]


def patterns(name):
    """The patterns of a query that are not types, and how many types there are."""
    found = PATTERN.findall(query_text("lubm", name))
    edges = [(s, o) for s, p, o in found if p != "a"]
    return edges, len(found) - len(edges)


def test_every_line_of_a_query_is_looked_at():
    for name in LUBM_QUERIES:
        edges, types = patterns(name)
        assert len(edges) + types == query_text("lubm", name).count(" .\n")


@pytest.mark.parametrize(("name", "edges", "filters"), [("Q2", 1, 0), ("Q4", 4, 1), ("Q5", 1, 1)])
def test_stars(name, edges, filters):
    found, types = patterns(name)
    assert {s for s, _ in found} == {"?x"} and types == 1
    assert len(found) == len({o for _, o in found}) == edges
    assert query_text("lubm", name).count("FILTER") == filters


def test_the_path():
    edges, types = patterns("Q6")
    assert edges == [("?x", "?y"), ("?y", "?k")] and types == 2
    assert "FILTER (?k = <http://www.University0.edu>)" in query_text("lubm", "Q6")


@pytest.mark.parametrize("name", ["Q1", "Q3", "Q7"])
def test_triangles(name):
    edges, types = patterns(name)
    assert {frozenset(edge) for edge in edges} == set(
        map(frozenset, combinations(["?x", "?y", "?z"], 2))
    )
    assert types == 3 and "FILTER" not in query_text("lubm", name)


def test_an_unknown_query():
    with pytest.raises(BenchmarkError, match="unknown query 'Q8'"):
        query_text("lubm", "Q8")
