"""The generators: legal texts, meaningful streams, and every construct often enough to matter."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyoxigraph import Quad, Store

from graphtide.lang.sparql.parse import parse_query
from oracles.answers import oxigraph_answer
from oracles.generators import cases, change_streams, graphs, quads, queries
from oracles.runs import snapshots
from oracles.transactions import LITERALS, TWINS, apply_to_store, iri, transaction

CONSTRUCTS = {
    "OPTIONAL": r"OPTIONAL",
    "nested OPTIONAL": r"OPTIONAL \{[^}]*OPTIONAL",
    "OPTIONAL with FILTER": r"OPTIONAL \{[^}]*FILTER",
    "UNION": r"UNION",
    "MINUS": r"MINUS",
    "EXISTS": r"\(EXISTS",
    "NOT EXISTS": r"NOT EXISTS",
    "nested EXISTS": r"EXISTS \{[^}]*EXISTS",
    "EXISTS in an expression": r"(&& (NOT )?EXISTS|\|\||!\((NOT )?EXISTS)",
    "EXISTS with FILTER": r"EXISTS \{[^}]*FILTER",
    "BIND": r"BIND",
    "VALUES with UNDEF": r"UNDEF",
    "GRAPH by name": r"GRAPH :g",
    "GRAPH by variable": r"GRAPH \?g",
    "the graph variable in its own body": r"GRAPH \?g \{ \?g ",
    "nested group": r"[.}] \{ ",
    "DISTINCT": r"DISTINCT",
    "all columns": r"SELECT (DISTINCT )?\*",
    "expression in SELECT": r"SELECT .* AS \?n\d+\) WHERE",
    "blank node": r"_:n",
    "variable predicate": r"\?\w \?\w \?\w \.",
    "one variable twice in a pattern": r"(\?\w) :\w \1 \.",
    "regular expression": r"REGEX",
    "membership": r" IN \(",
    "IF": r"IF\(",
    "COALESCE": r"COALESCE",
    "BOUND": r"BOUND",
    "arithmetic": r" [-+*/] ",
    "cast": r"xsd:\w+\(",
    "GROUP BY": r"GROUP BY",
    "GROUP BY an expression": r"GROUP BY [^{]*\(COALESCE",
    "HAVING": r"HAVING",
    "COUNT(*)": r"COUNT\(\*\)",
    "DISTINCT in an aggregate": r"(COUNT|SUM|AVG)\(DISTINCT \?",
    **{name: rf"{name}\(" for name in ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")},
    "GROUP_CONCAT": r"GROUP_CONCAT",
    "sub-SELECT": r"\{ SELECT",
    "sub-SELECT with groups": r"\{ SELECT [^{]*(COUNT|SUM|MIN|MAX|AVG)\(",
    "sub-SELECT with a range": r"\{ SELECT [^}]*\}[^}{]*(LIMIT|OFFSET) \d",
    "ORDER BY": r"ORDER BY",
    "descending": r"DESC\(",
    "LIMIT": r"LIMIT \d",
    "OFFSET": r"OFFSET \d",
    "path +": r":\w\)*\+",
    "path *": r":\w\)*\*",
    "path ?": r":\w\)*\? ",
    "path sequence": r"[\w)]/",
    "path alternative": r"[\w)+*?]\|",
    "path inverse": r"\^[(:]",
    "negated set": r"!\(\^?:",
    "path from a constant": r":[abcd] [^ ]*[)+*?/|^][^ ]* \?",
    "path in GRAPH": r"GRAPH [^ ]+ \{[^}]*\+ \?",
    "ASK": r"\nASK",
    "CONSTRUCT": r"\nCONSTRUCT",
    "DESCRIBE": r"\nDESCRIBE",
    "FROM": r"FROM :",
    "FROM two graphs": r"FROM :g\d FROM :g",
    "FROM NAMED": r"FROM NAMED",
}


def sample(strategy, count):
    """That many examples, the same on every run; drawn ten at a time, which varies them more."""
    found = []
    for number in range(count // 10):

        @seed(number)
        @settings(
            max_examples=10,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def collect(example):
            found.append(example)

        collect()
    return found


@cache
def many_cases():
    """Drawn once in a process: a fixture is made again when tests of other modules come between."""
    return sample(cases(streams=1), 1000)


@pytest.fixture
def drawn_cases():
    return many_cases()


@pytest.mark.slow
def test_queries_are_legal_for_both_parsers(drawn_cases):
    for case in drawn_cases:
        Store().query(case.query)
        parse_query(case.query)


@pytest.mark.slow
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_construct_occurs(construct, drawn_cases):
    texts = {case.query for case in drawn_cases}
    assert sum(bool(re.search(CONSTRUCTS[construct], text)) for text in texts) >= 3


@pytest.mark.slow
def test_most_cases_have_answers_and_many_change_them(drawn_cases):
    outcomes = Counter()
    for case in drawn_cases:
        store = Store()
        answers = set()
        for each in case.streams[0]:
            apply_to_store(store, each.changes)
            answer = oxigraph_answer(case.query, store) or {}  # it may fail on triple terms
            rows = sorted(answer.items())
            answers.add(tuple(rows))
        outcomes["answered"] += answers != {()}
        outcomes["changed"] += len(answers) > 1
    assert outcomes["answered"] > len(drawn_cases) / 2
    assert outcomes["changed"] > len(drawn_cases) / 5  # Hypothesis draws from what is imported, too


@given(change_streams())
def test_times_never_fall(stream):
    times = [each.time for each in stream]
    assert times == sorted(times)


@pytest.mark.slow
def test_streams_hold_every_kind_of_change():
    kinds = Counter()
    for stream in sample(change_streams(), 100):
        present, gone = set(), set()
        for each in stream:
            kinds["equal times"] += len({other.time for other in stream}) < len(stream)
            keys = Counter(quad for _, quad in each.changes)
            kinds["one quad several times"] += any(count > 1 for count in keys.values())
            for diff, quad in each.changes:
                if diff > 0:
                    kinds["redundant insert"] += quad in present
                    kinds["re-insert"] += quad in gone
                    present.add(quad)
                else:
                    kinds["delete"] += quad in present
                    kinds["delete of an absent quad"] += quad not in present
                    present.discard(quad)
                    gone.add(quad)
    names = ("redundant insert", "re-insert", "delete", "delete of an absent quad")
    assert all(kinds[name] >= 20 for name in (*names, "one quad several times", "equal times"))


@given(graphs(min_size=2))
def test_a_graph_has_no_quad_twice(graph):
    assert len(graph) == len(set(graph)) >= 2


@given(change_streams())
def test_snapshots_are_what_a_store_holds(stream):
    store = Store()
    for each, quads_then in zip(stream, snapshots(stream), strict=True):
        apply_to_store(store, each.changes)
        assert frozenset(store) == quads_then


def test_pooled_literals_survive_the_oracle_and_twins_do_not():
    for literal in LITERALS:
        assert _through_store(literal) == literal
    for twin in TWINS:
        assert _through_store(twin) != twin


def _through_store(literal):
    store = Store()
    store.add(Quad(iri("a"), iri("p"), literal))
    (quad,) = store
    return quad.object


def test_twins_are_drawn_only_when_asked_for():
    assert not {quad.object for quad in sample(quads(), 300)} & set(TWINS)
    assert {quad.object for quad in sample(quads(twins=True), 300)} & set(TWINS)


def test_queries_draws_the_texts():
    assert all(text.startswith("PREFIX") for text in sample(queries(), 20))


@given(change_streams(twins=True))
def test_lines_are_read_back(stream):
    for each in stream:
        assert transaction(each.time, *each.lines()) == each
