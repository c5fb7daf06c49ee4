"""Triple terms and base directions: texts, the dictionary, and every format, against pyoxigraph."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from pyoxigraph import (
    BaseDirection,
    BlankNode,
    Literal,
    NamedNode,
    QueryResultsFormat,
    Triple,
    parse_query_results,
)

from graphtide import LiveGraph
from graphtide.errors import DataError, TermError
from graphtide.rdf import kinds
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.results import ResultRows, json_term, rows_text, term_of_json
from graphtide.rdf.kernels.table import KernelTermTable
from graphtide.rdf.term_tables import PlainTermTable, text_column
from graphtide.rdf.terms import (
    TripleTerm,
    canonical_of,
    from_pyoxigraph,
    parse_term,
    to_pyoxigraph,
    typed_value,
)

A, P = NamedNode("http://e/a"), NamedNode("http://e/p")
MARKED = Literal('a ) >> " \\ )>>', language="en", direction=BaseDirection.RTL)
TERMS = [
    TripleTerm(A, P, A),
    TripleTerm(BlankNode("b"), P, Literal(1)),
    TripleTerm(A, P, Literal("x", language="en-gb")),
    TripleTerm(A, P, MARKED),
    TripleTerm(A, P, TripleTerm(BlankNode("b"), P, TripleTerm(A, P, Literal("y")))),
]


@pytest.mark.parametrize("term", TERMS, ids=range(len(TERMS)))
def test_one_term_has_one_text(term):
    text = str(term)
    assert parse_term(text) == term
    assert canonical_of(to_pyoxigraph(term)) == text
    assert from_pyoxigraph(to_pyoxigraph(term)) == term
    assert isinstance(to_pyoxigraph(term), Triple)
    assert typed_value(text) == (kinds.TRIPLE, 0.0)


def test_spellings_are_one_term():
    terms = TermDictionary()
    ids = [
        terms.intern(spelling)
        for spelling in (
            '<<( <http://e/a> <http://e/p> "x"@EN--ltr )>>',
            '<<(<http://e/a>\t<http://e/p>"\\u0078"@en--ltr)>>',
            TripleTerm(A, P, Literal("x", language="en", direction=BaseDirection.LTR)),
            Triple(A, P, Literal("x", language="en", direction=BaseDirection.LTR)),
        )
    ]
    assert len(set(ids)) == 1
    assert terms.kinds[ids[0]] == kinds.TRIPLE
    assert terms.decode(ids[0]).object.direction == BaseDirection.LTR


@pytest.mark.parametrize("table", [KernelTermTable, PlainTermTable])
def test_columns_have_them(table):
    texts = [str(term) for term in TERMS] * 2 + ["<<( <http://e/a> )>>", "<<(>>"]
    column = text_column(pa.array(texts))
    ids, bad = table().encode(column)
    assert len(set(ids.tolist())) == len(TERMS) + 1
    assert [row for row, _ in bad] == [len(TERMS) * 2, len(TERMS) * 2 + 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<<( <http://e/a> <http://e/p> )>>", "a subject, a predicate and an object"),
        ('<<( "x" <http://e/p> <http://e/a> )>>', "a subject is an IRI or a blank node"),
        ("<<( <http://e/a> _:p <http://e/a> )>>", "a predicate is an IRI"),
        ("<<( <<( <a:a> <a:a> <a:a> )>> <http://e/p> <http://e/a> )>>", "a subject is"),
        ("<<( <http://e/a> <http://e/p> <http://e/a> )>> .", "nothing may follow"),
        ("<< <http://e/a> <http://e/p> <http://e/a> >>", "a triple term is <<("),
        ("<<( <http://e/a> <http://e/p> " * 60, "nested more than 50 levels"),
    ],
)
def test_what_is_no_triple_term_is_refused(text, reason):
    with pytest.raises(TermError, match=reason.replace("(", r"\(")):
        parse_term(text)


@pytest.mark.parametrize("suffix", ["rdfp", "updates", "parquet", "arrow", "nt", "nq"])
def test_change_logs_have_them(tmp_path, suffix):
    rows = [(0, 0, 1, str(A), str(P), str(term), None) for term in TERMS]
    if suffix == "updates":
        rows = [(0, tx, *row[2:]) for tx, row in enumerate(rows)]
    file = tmp_path / f"log.{suffix}"
    write_changes([ChangeBatch.of(rows)], file)
    read = [text for batch in read_changes(file) for text in batch.o.to_pylist()]
    assert read == [str(term) for term in TERMS]


@pytest.mark.parametrize("suffix", ["ttl", "trig"])
def test_documents_have_reifiers_and_annotations(tmp_path, suffix):
    text = """VERSION "1.2" PREFIX : <http://e/>
        :a :p :b ~ :r {| :since 2 |} . << :x :p "y"@ar--rtl >> :said :z ."""
    file = tmp_path / f"data.{suffix}"
    file.write_text(text, encoding="utf-8")
    graph = LiveGraph()
    graph.apply(file)
    asked = "PREFIX : <http://e/> SELECT ?o ?n { :a :p ?o ~ :r {| :since ?n |} }"
    assert graph.query(asked, terms=True).to_pylist() == [
        {"o": "<http://e/b>", "n": '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'}
    ]
    asked = "PREFIX : <http://e/> SELECT (LANGDIR(?y) AS ?way) { << :x :p ?y >> :said :z }"
    assert graph.query(asked, terms=True).to_pylist() == [{"way": '"rtl"'}]


@pytest.mark.parametrize("place", range(4))
def test_they_are_objects_only(place):
    term = TERMS[0]
    for spelling in (term, str(term), to_pyoxigraph(term)):
        quad = [A, P, A, A]
        quad[place] = spelling
        if place == 2:
            LiveGraph().insert(*quad)
        else:
            with pytest.raises(TermError):
                LiveGraph().insert(*quad)
    row = [0, 0, 1, str(A), str(P), str(A), str(A)]
    row[3 + place] = str(term)
    if place != 2:
        with pytest.raises(DataError):
            ChangeBatch.of([tuple(row)])


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("json", QueryResultsFormat.JSON),
        ("xml", QueryResultsFormat.XML),
        ("tsv", QueryResultsFormat.TSV),
    ],
)
def test_results_are_read_by_pyoxigraph(name, form):
    terms = [*TERMS, MARKED]
    text = rows_text(ResultRows(("x",), [(term,) for term in terms]), name)
    found = [from_pyoxigraph(row["x"]) for row in parse_query_results(text, format=form)]
    assert found == terms


def test_json_is_read_back():
    for term in (*TERMS, MARKED, A, BlankNode("b"), Literal(2)):
        assert term_of_json(json_term(term)) == term
    with pytest.raises(ValueError, match="its type must be"):
        term_of_json({"type": "triple", "value": "x"})


def test_turtle_is_written_and_read_back():
    file = io.BytesIO()
    batch = ChangeBatch.of([(0, 0, 1, str(A), str(P), str(term), None) for term in TERMS])
    write_changes([batch], file, format="ttl")
    read = read_changes(io.BytesIO(file.getvalue()), format="ttl")
    found = {text for batch in read for text in batch.o.to_pylist()}
    assert len(found) == len(TERMS)


def test_freed_ids_are_reused():
    terms = TermDictionary()
    ids = np.array([terms.intern(term) for term in TERMS], np.int32)
    terms.reclaim()
    assert len(terms) == 0
    assert set(terms.encode_column([str(term) for term in TERMS]).tolist()) <= set(ids.tolist())
