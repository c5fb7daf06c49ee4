"""Reading and writing each RDF format equals pyoxigraph's own reading."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse, serialize

from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.lines import quad_texts
from graphtide.rdf.formats.read import read_quads, write_quads

RDF_FORMATS = {
    "nt": RdfFormat.N_TRIPLES,
    "nq": RdfFormat.N_QUADS,
    "ttl": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "rdf": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
}
NODES = st.one_of(
    st.sampled_from("abc").map(lambda name: NamedNode(f"http://example.org/{name}")),
    st.sampled_from("xyz").map(BlankNode),
    st.just(NamedNode("http://example.org/é")),
)
# XML cannot hold control characters, nor keep a carriage return as it is.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))
LITERALS = st.one_of(
    TEXTS.map(Literal),
    st.builds(lambda v: Literal(v, language="en-GB"), TEXTS),
    st.integers().map(Literal),
    st.sampled_from(['a"b', "a\\b", "a\nb\tc"]).map(Literal),
)
QUADS = st.builds(
    Quad,
    NODES,
    st.sampled_from(["http://example.org/p", "http://example.org/q"]).map(NamedNode),
    st.one_of(NODES, LITERALS),
    st.one_of(st.none(), st.just(NamedNode("http://example.org/g"))),
)


def rows(batches):
    found = []
    for batch in batches:
        assert set(zip(batch.time.tolist(), batch.tx.tolist(), strict=True)) <= {(0, 0)}
        assert set(batch.diff.tolist()) <= {1}
        columns = (batch.s, batch.p, batch.o, batch.g)
        found += zip(*(column.to_pylist() for column in columns), strict=True)
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(QUADS, max_size=8))
@pytest.mark.parametrize("name", RDF_FORMATS)
def test_reading_and_writing_equal_pyoxigraph(name, quads):
    rdf = RDF_FORMATS[name]
    if not rdf.supports_datasets:
        quads = [Quad(quad.subject, quad.predicate, quad.object) for quad in quads]
    items = quads if rdf.supports_datasets else [quad.triple for quad in quads]
    data = serialize(items, format=rdf)
    wanted = {quad_texts(quad) for quad in parse(data, format=rdf)}
    assert set(rows(read_quads(io.BytesIO(data), format=name))) == wanted

    texts = list(map(quad_texts, quads))
    batch = ChangeBatch.of([(0, 0, 1, *quad) for quad in texts])
    target = io.BytesIO()
    write_quads(batch, target, format=name)
    again = {quad_texts(quad) for quad in parse(target.getvalue(), format=rdf)}
    if name in {"rdf", "jsonld"}:  # these may rename blank nodes
        again, texts = ({q for q in s if "_:" not in "".join(q[:3])} for s in (again, set(texts)))
    assert again == set(texts)


@settings(max_examples=200, deadline=None)
@given(st.lists(QUADS, max_size=6), st.data())
def test_odd_spellings_of_lines(quads, data):
    gap = st.sampled_from([" ", "\t", "  ", ""])
    ending = st.sampled_from(["\n", "\r\n", "\n\n", "\r", " # note\n", "\n# note\n"])
    text = ""
    for quad in quads:
        spaces = [data.draw(gap) for _ in range(6)]
        terms = [part for part in quad_texts(quad) if part is not None]
        if data.draw(st.booleans()):
            terms[2] = terms[2].replace("a", "\\u0061") if terms[2][0] != "_" else terms[2]
        # A blank node label ends only at a space.
        parts = [
            gap + term + (" " if term[0] == "_" else "")
            for gap, term in zip(spaces, terms, strict=False)
        ]
        text += "".join(parts) + spaces[-1] + "." + data.draw(ending)
    wanted = [quad_texts(quad) for quad in parse(text, format=RdfFormat.N_QUADS)]
    assert rows(read_quads(io.BytesIO(text.encode()), format="nq")) == wanted


LINES = b"""<ex:a> <ex:p> <ex:b> .
<ex:a> <ex:p> "x"@EN .
<ex:a> <ex:p> <bad iri> .
"x" <ex:p> <ex:b> .

<ex:a> _:p <ex:b> .
<ex:a> <ex:p> "x
<ex:a> <ex:p> <ex:%zz> .
<ex:a> <ex:p> <ex:c>
<ex:a> <ex:p> <ex:c> . junk
<ex:a> <ex:p> <<( <ex:a> <ex:p> <ex:c> )>> .
<ex:a> <ex:p> "\xff" .
<ex:a> <ex:p> <ex:d> .
"""


def test_broken_lines_are_collected_with_their_place():
    rejected = []
    found = rows(read_quads(io.BytesIO(LINES), format="nt", on_error="skip", rejected=rejected))
    triple = "<<( <ex:a> <ex:p> <ex:c> )>>"
    assert [row[2] for row in found] == ["<ex:b>", '"x"@en', triple, "<ex:d>"]
    assert [(line.line, line.column) for line in rejected] == [
        (3, 15),
        (4, 1),
        (6, 8),
        (7, 15),
        (8, 15),
        (9, 21),
        (10, 24),
        (12, 16),
    ]
    assert rejected[0].text == "<ex:a> <ex:p> <bad iri> ."
    assert rejected[0].file == "<stream>"
    assert "Invalid IRI code point ' '" in rejected[0].reason


def test_the_first_broken_line_raises(tmp_path):
    path = tmp_path / "data.nt"
    path.write_bytes(LINES)
    with pytest.raises(DataError) as error:
        list(read_changes(path))
    assert (error.value.source, error.value.line, error.value.column) == (str(path), 3, 15)
    assert str(error.value).startswith(f"{path}:3:15: ")


def test_broken_turtle():
    data = b"<ex:a> <ex:p> <ex:b> .\n<ex:a> junk <ex:b> .\n<ex:a> <ex:p> <ex:c> ."
    rejected = []
    found = rows(read_quads(io.BytesIO(data), format="ttl", on_error="skip", rejected=rejected))
    assert [row[2] for row in found] == ["<ex:b>", "<ex:c>"]
    assert [(line.line, line.column, line.reason) for line in rejected] == [
        (2, 8, "junk is not a valid predicate")
    ]
    with pytest.raises(DataError, match="<stream>:2:8: junk is not"):
        list(read_quads(io.BytesIO(data), format="ttl"))


@pytest.mark.parametrize("name", ["rdf", "jsonld"])
def test_broken_documents_end_there(name):
    rejected = []
    data = io.BytesIO(b"<?xml version='1.0'?><a" if name == "rdf" else b'{"@id": x}')
    assert list(read_quads(data, format=name, on_error="skip", rejected=rejected)) == []
    assert len(rejected) == 1


def test_many_lines_make_many_batches_of_one_transaction(monkeypatch):
    monkeypatch.setattr("graphtide.rdf.formats.lines.BLOCK_BYTES", 200)
    lines = [f"<ex:a> <ex:p> <ex:{index}> ." for index in range(100)]
    lines[50] = "broken"
    rejected = []
    data = io.BytesIO("\n".join(lines).encode())
    batches = list(read_quads(data, format="nt", on_error="skip", rejected=rejected))
    assert len(batches) > 5
    assert [row[2] for row in rows(batches)] == [f"<ex:{i}>" for i in range(100) if i != 50]
    assert [line.line for line in rejected] == [51]


@pytest.mark.parametrize("suffix", [*RDF_FORMATS, "rdfp", "parquet", "arrow", "arrows", "feather"])
@pytest.mark.parametrize("packed", [False, True])
def test_files_by_suffix(tmp_path, suffix, packed):
    path = tmp_path / f"data.{suffix}{'.gz' if packed else ''}"
    batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"é"', None)])
    write_changes(batch, path)
    assert path.read_bytes()[:2] == b"\x1f\x8b" or not packed
    assert list(read_changes(path)) == [batch]
    assert list(read_changes(str(path))) == [batch]


@pytest.mark.parametrize("suffix", [*RDF_FORMATS, "rdfp", "parquet", "arrow", "arrows"])
def test_empty_files_hold_no_changes(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    path.touch()
    assert list(read_changes(path)) == []
    with gzip.open(tmp_path / f"data.{suffix}.gz", "wb"):
        pass
    assert list(read_changes(tmp_path / f"data.{suffix}.gz")) == []


@pytest.mark.parametrize("suffix", [*RDF_FORMATS, "rdfp", "parquet", "arrow", "arrows"])
def test_files_that_cannot_be_read(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    with pytest.raises(DataError, match="there is no such file"):
        list(read_changes(path))
    path.mkdir()
    with pytest.raises(DataError, match="is a directory"):
        list(read_changes(path))
    other = tmp_path / f"binary.{suffix}"
    other.write_bytes(b"\x00\x01\x02" * 100)
    with pytest.raises(DataError, match=r"binary file|not an? (Parquet|Arrow) file"):
        list(read_changes(other))
    packed = tmp_path / f"half.{suffix}.gz"
    packed.write_bytes(gzip.compress(b"<ex:a> <ex:p> <ex:b> .\n" * 100)[:-20])
    with pytest.raises(DataError):
        list(read_changes(packed))


def test_unknown_formats_list_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"'\.csv'(.|\n)*\.nt \.nq \.ttl"):
        list(read_changes(tmp_path / "a.csv"))
    with pytest.raises(DataError, match="unknown format 'n4'"):
        list(read_changes(tmp_path / "a.csv", format="n4"))
    with pytest.raises(DataError, match="holds changes: use read_changes"):
        list(read_quads(tmp_path / "a.rdfp"))
    with pytest.raises(DataError, match="holds changes: use write_changes"):
        write_quads([], tmp_path / "a.rdfp")


def test_what_a_format_cannot_hold():
    gone = ChangeBatch.of([(0, 0, -1, "<ex:a>", "<ex:p>", '"x"', None)])
    with pytest.raises(DataError, match="deletes cannot be written"):
        write_changes(gone, io.BytesIO(), format="nt")
    named = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', "<ex:g>")])
    with pytest.raises(DataError, match="ttl cannot hold named graphs"):
        write_changes(named, io.BytesIO(), format="ttl")
    numeric = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<http://example.org/1>", '"x"', None)])
    with pytest.raises(DataError, match="RDF/XML cannot write the predicate"):
        write_changes(numeric, io.BytesIO(), format="rdf")
    with pytest.raises(DataError, match="cannot be written"):
        write_changes(named, "/no/such/folder/a.nq")


def test_text_files_are_refused():
    with pytest.raises(DataError, match="binary mode"):
        list(read_changes(io.StringIO("<ex:a> <ex:p> <ex:b> ."), format="nt"))


def test_tables_are_read_too():
    batch = ChangeBatch.of([(7, 3, -1, "<ex:a>", "<ex:p>", '"x"', "<ex:g>")])
    assert list(read_changes(batch.to_arrow())) == [batch]


def test_invalid_rows_of_a_table_are_rejected():
    table = pa.table(
        {
            "time": [1, 1, 1, None, 1, 1],
            "tx": [0] * 6,
            "diff": [1, 2, 1, 1, 1, 1],
            "s": ["<ex:a>", "<ex:a>", '"x"', "<ex:a>", "<ex:a>", "<ex:b>"],
            "p": ["<ex:p>"] * 6,
            "o": ['"x"', '"x"', '"x"', '"x"', "<a b>", '"x"'],
        }
    )
    rejected = []
    (batch,) = read_changes(table, on_error="skip", rejected=rejected)
    assert batch.s.to_pylist() == ["<ex:a>", "<ex:b>"]
    assert [(line.line, line.column) for line in rejected] == [(1, 3), (2, 4), (3, 1), (4, 6)]
    with pytest.raises(DataError, match="<table>: column time has no value in 1 rows"):
        list(read_changes(table))


@pytest.mark.parametrize("name", ["parquet", "arrow", "arrows"])
def test_columnar_logs_are_read_in_pieces(tmp_path, name):
    path = tmp_path / f"log.{name}"
    one = [ChangeBatch.of([(t, t, 1, "<ex:a>", "<ex:p>", f'"{t}"', None)]) for t in range(5)]
    write_changes(one, path)
    found = [row for batch in read_changes(path) for row in batch.time.tolist()]
    assert found == list(range(5))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["nt", "nq", "ttl", "trig", "jsonld", "rdf", "rdfp"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path, name, packed):
    plain, marked = io.BytesIO(), tmp_path / (f"x.{name}.gz" if packed else f"x.{name}")
    write_changes(
        ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p#q>", "<ex:b>", None)]), plain, format=name
    )
    data = b"\xef\xbb\xbf" + plain.getvalue()
    marked.write_bytes(gzip.compress(data) if packed else data)
    for source in (marked, io.BytesIO(data)):
        (batch,) = read_changes(source, format=name)
        assert batch.s.to_pylist() == ["<ex:a>"]


def test_a_byte_order_mark_alone_holds_no_changes():
    assert sum(map(len, read_changes(io.BytesIO(b"\xef\xbb\xbf"), format="ttl"))) == 0
    assert sum(map(len, read_changes(io.BytesIO(b"\xef\xbb\xbf"), format="nt"))) == 0


def test_an_invalid_line_is_raised_or_skipped(tmp_path):
    (tmp_path / "log.nt").write_text("<ex:a> <ex:p> <ex:b> .\nno\n<ex:a> <ex:p> <ex:c> .\n")
    for raising in ({}, {"on_error": "raise"}):
        with pytest.raises(DataError, match=r"log\.nt:2:"):
            list(read_changes(tmp_path / "log.nt", **raising))
    rejected = []
    batches = list(read_changes(tmp_path / "log.nt", on_error="skip", rejected=rejected))
    assert sum(map(len, batches)) == 2 and [row.line for row in rejected] == [2]
