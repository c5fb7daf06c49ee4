"""Answers in every results format, read back by pyoxigraph, and errors."""

from __future__ import annotations

import pytest
from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryResultsFormat,
    RdfFormat,
    parse,
    parse_query_results,
)

DATA = """@prefix : <http://example.org/> .
:a :name "Ann"@en ; :age 41 ; :note "a, \\"b\\"\\tc\\nd & <e>" .
:b :name "Bob" ; :knows [ :name "Cat" ] .
"""
ROWS = """PREFIX : <http://example.org/>
SELECT ?s ?name ?note ?friend {
  ?s :name ?name OPTIONAL { ?s :note ?note } OPTIONAL { ?s :knows ?friend } FILTER isIRI(?s) }
ORDER BY ?s
"""
NAMES = ("s", "name", "note", "friend")


@pytest.fixture
def people(files):
    for name, text in {
        "people.ttl": DATA,
        "rows.rq": ROWS,
        "ask.rq": "ASK { ?s <http://example.org/age> 41 }",
        "count.rq": "SELECT (COUNT(*) AS ?n) (STR(NOW()) != '' AS ?clock) { ?s ?p ?o }",
        "construct.rq": "CONSTRUCT { ?s <ex:p> _:x } { ?s <http://example.org/age> ?o }",
        "describe.rq": "DESCRIBE <http://example.org/b>",
        "none.rq": "SELECT ?s { ?s <ex:none> ?o }",
    }.items():
        files.joinpath(name).write_text(text)
    return files


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("json", QueryResultsFormat.JSON),
        ("xml", QueryResultsFormat.XML),
        ("tsv", QueryResultsFormat.TSV),
    ],
)
def test_rows_are_read_back(people, run, name, form):
    ran = run("query", "rows.rq", "--data", "people.ttl", "--format", name)
    assert ran.code == 0
    found = parse_query_results(ran.out.encode(), format=form)
    assert tuple(v.value for v in found.variables) == NAMES
    a, b = ([row[name] for name in NAMES] for row in found)
    ex = "http://example.org/"
    note = Literal('a, "b"\tc\nd & <e>')
    assert a == [NamedNode(f"{ex}a"), Literal("Ann", language="en"), note, None]
    assert b[:3] == [NamedNode(f"{ex}b"), Literal("Bob"), None]
    assert isinstance(b[3], BlankNode)


def test_csv(people, run):
    ran = run("query", "rows.rq", "--data", "people.ttl", "--format", "csv")
    first, second = ran.out.split("\r\n", 1)
    assert first == "s,name,note,friend"
    assert second.startswith('http://example.org/a,Ann,"a, ""b""\tc\nd & <e>",\r\n')


def test_a_table_is_the_default(people, run):
    ran = run("query", "count.rq", "--data", "people.ttl")
    assert ran.lines == ["?n  ?clock", "─" * 2 + "  " + "─" * 6, "6   true"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", '{"head":{"vars":[]},"results":{"bindings":[{}]}}'),
        ("csv", "\r\n\r\n"),
        ("tsv", "\n\n"),
    ],
)
def test_a_row_without_values(people, run, form, text):
    people.joinpath("fact.rq").write_text("SELECT * { <ex:a> <ex:p> <ex:b> }")
    people.joinpath("fact.ttl").write_text("<ex:a> <ex:p> <ex:b> .")
    out = run("query", "fact.rq", "--data", "fact.ttl", "--format", form).out
    assert ("".join(out.split()) if form == "json" else out) == text


def test_a_table_without_rows(people, run):
    assert run("query", "none.rq", "--data", "people.ttl").lines == ["?s", "──"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("table", "true\n"),
        ("csv", "true\n"),
        ("json", '{"head": {}, "boolean": true}\n'),
    ],
)
def test_ask(people, run, form, text):
    assert run("query", "ask.rq", "--data", "people.ttl", "--format", form).out == text


def test_ask_as_xml(people, run):
    out = run("query", "ask.rq", "--format", "xml").out
    assert not parse_query_results(out.encode(), format=QueryResultsFormat.XML)


def test_triples(people, run):
    plain = run("query", "describe.rq", "--data", "people.ttl")
    turtle = run("query", "describe.rq", "--data", "people.ttl", "--format", "ttl")
    read = [
        {(q.subject, q.predicate) for q in parse(ran.out.encode(), form)}
        for ran, form in ((plain, RdfFormat.N_TRIPLES), (turtle, RdfFormat.TURTLE))
    ]
    assert len(read[0]) == len(plain.lines) == 3  # :b has two triples, its blank node one
    assert {p.value[19:] for _, p in read[0]} == {p.value[19:] for _, p in read[1]}


def test_construct(people, run):
    out = run("query", "construct.rq", "--data", "people.ttl").out
    assert out.startswith("<http://example.org/a> <ex:p> _:")


def test_changes_are_data_too(files, run):
    ran = run("query", "route.rq", "--data", "rail.ttl", "--data", "log.rdfp")
    assert ran.lines == ["?route  ?sensor", "──────  ───────"]  # required by the end of the log


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("rows.rq", "--format", "nt"), 'invalid --format "nt": this query returns rows'),
        (
            ("construct.rq", "--format", "json"),
            'invalid --format "json": this query returns triples',
        ),
        (("syntax.rq",), "syntax.rq:1:25: "),
        (("prefix.rq",), "prefix.rq:1:22: the prefix 'foaf:' is not declared"),
        (("nope.rq",), "nope.rq: there is no such file"),
        (("rows.rq", "--data", "route.rq"), "is a query"),
        (("rows.rq", "--data", "nope.nt"), "there is no such file"),
        (("rows.rq", "--format", "yaml"), 'invalid --format "yaml": choose from table, csv'),
    ],
)
def test_mistakes(people, run, tokens, message):
    ran = run("query", *tokens)
    assert ran.code == 2
    assert message in ran.err + ran.out


@pytest.fixture
def requests(people):
    for name, text in {
        "age.ru": "PREFIX : <http://example.org/> "
        "DELETE { ?s :age ?a } INSERT { GRAPH :old { ?s :age ?a } } WHERE { ?s :age ?a }",
        "load.ru": "LOAD <people.ttl> INTO GRAPH <ex:g>",
        "absolute.ru": "LOAD <file:people.ttl> INTO GRAPH <ex:g>",
        "wrong.ru": "INSERT DATA { ?s ?p ?o }",
    }.items():
        people.joinpath(name).write_text(text)
    return people


def test_update(requests, run):
    ran = run("update", "age.ru", "--data", "people.ttl")
    assert ran.code == 0
    assert ran.err == "2 changes, 6 quads now\n"
    forty_one = '"41"^^<http://www.w3.org/2001/XMLSchema#integer>'
    aged = f"<http://example.org/a> <http://example.org/age> {forty_one}"
    assert f"{aged} <http://example.org/old> ." in ran.lines
    assert f"{aged} ." not in ran.lines


def test_update_to_a_file(requests, run):
    assert run("update", "age.ru", "--data", "people.ttl", "--out", "new.trig").code == 0
    assert len(list(parse(path=requests / "new.trig"))) == 6
    assert len(list(parse(path=requests / "people.ttl"))) == 6


def test_update_that_loads(requests, run):
    refused = run("update", "absolute.ru")
    assert refused.code == 2
    assert "is not allowed here" in refused.err
    ran = run("update", "absolute.ru", "--load-from", ".")
    assert (ran.code, len(ran.lines)) == (0, 6)


def test_mistakes_in_an_update(requests, run):
    wrong = run("update", "wrong.ru")
    assert wrong.code == 2
    assert "wrong.ru:1:13: " in wrong.err
    changes = run("update", "age.ru", "--out", "new.rdfp")
    assert changes.code == 2
    assert "new.rdfp: the result is a graph, not a change log" in changes.err
