"""RDF Patch: transactions, times, rejected rows with their position, and reading piece by piece."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch, concat_batches
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.patch import PatchReader

SAMPLE = """H id <urn:x:1> .
PA ex: <http://example.org/> .   # a comment
H time 17 .
TX .
A ex:a ex:p "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
D <http://example.org/a> ex:p _:b ex:g .
TC .
TX .
H time 20 .
H tx 9 .
A ex:a ex:p "x"@EN .
TC .
TX .
A ex:a ex:p "dropped" .
TA .

TX .
A <http://example.org/c> <http://example.org/p> <http://example.org/d> .
TC .
"""
P = "<http://example.org/p>"
A = "<http://example.org/a>"


def rows(batches):
    table = concat_batches(batches).to_arrow().to_pydict()
    return list(zip(*table.values(), strict=True))


def read(text, **options):
    return rows(read_changes(io.BytesIO(text.encode()), format="rdfp", **options))


def test_a_sample():
    assert read(SAMPLE) == [
        (17, 0, 1, A, P, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', None),
        (17, 0, -1, A, P, "_:b", "<http://example.org/g>"),
        (20, 9, 1, A, P, '"x"@en', None),
        (20, 11, 1, "<http://example.org/c>", P, "<http://example.org/d>", None),
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40)))
def test_pieces_of_any_size_give_the_same(sizes):
    reader, found, at = PatchReader("log"), [], 0
    data = SAMPLE.encode()
    for size in [*sizes, len(data)]:
        found += reader.feed(data[at : at + size])
        at += size
    found += reader.finish()
    assert rows(found) == read(SAMPLE)
    assert reader.headers == {"id": "urn:x:1"}


def test_an_open_transaction_is_held_back():
    reader = PatchReader("log")
    assert reader.feed("TX .\nA <ex:a> <ex:p> <ex:b> .\n") == []
    assert reader.feed("A <ex:a> <ex:p> <ex:c> .\n") == []
    assert rows(reader.feed("A <ex:a> <ex:p> <ex:d> .\nTC .\nTX .\n")) == [
        (0, 0, 1, "<ex:a>", "<ex:p>", f"<ex:{name}>", None) for name in "bcd"
    ]


def test_an_aborted_transaction_of_many_pieces_is_dropped():
    reader = PatchReader("log")
    reader.feed("TX .\nA <ex:a> <ex:p> <ex:b> .\n")
    assert reader.feed("A <ex:a> <ex:p> <ex:c> .\nTA .\n") == []
    assert reader.finish() == []


def test_changes_outside_transactions_are_one_per_run():
    change = "A <ex:a> <ex:p> <ex:b> .\n"
    text = (
        change + "PA x: <ex:> .\n" + change + "H note 1 .\n" + change + "TX .\n" + change + "TC .\n"
    )
    assert [row[:2] for row in read(text + change)] == [(0, 0), (0, 0), (0, 1), (0, 2), (0, 3)]
    reader = PatchReader("log")
    assert reader.feed(change) == []
    assert len(rows(reader.flush())) == 1
    assert reader.flush() == []


def test_empty_transactions_take_a_number():
    assert read("TX .\nTC .\nTX .\nA <ex:a> <ex:p> <ex:b> .\nTC .\n")[0][:2] == (0, 1)


def test_spellings_of_prefixes_and_terms():
    text = """PA "q" "http://example.org/" .
PA : <http://default.org/> .
PA xsd: <http://www.w3.org/2001/XMLSchema#> .
TX .
A q:a.b q:p\\,x "1"^^xsd:integer.
A :a :p <_:b1> .
TC .
"""
    assert [row[3:6] for row in read(text)] == [
        (
            "<http://example.org/a.b>",
            "<http://example.org/p,x>",
            '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        ),
        ("<http://default.org/a>", "<http://default.org/p>", "_:b1"),
    ]


BROKEN = [
    ("X <ex:a> .", 1, "unknown row 'X'"),
    ("  AA <ex:a> .", 3, "unknown row 'AA'"),
    ("<ex:a> <ex:p> <ex:b> .", 1, "unknown row '<ex:a>'"),
    ("A <ex:a> <ex:p> <ex:b>", 23, "does not end with"),
    ("A <ex:a> <ex:p> <ex:b> # .", 24, "does not end with"),
    ("A <ex:a> <ex:p> .", 17, "2 values where the row is 'A s p o [g] .'"),
    ("A <ex:a> <ex:p> <ex:b> <ex:g> <ex:h> .", 31, "5 values"),
    ("A <ex:a> <ex:p> <ex:b> . more", 26, "text after the end"),
    ('A "x" <ex:p> <ex:b> .', 3, "a subject is"),
    ("A <ex:a> _:p <ex:b> .", 10, "a predicate is an IRI"),
    ('D <ex:a> <ex:p> <ex:b> "g" .', 24, "a graph name is"),
    ("A <a b> <ex:p> <ex:b> .", 3, "no spaces"),
    ("A <ex:a> <ex:p> <ex:b .", 17, "closing '>' is missing"),
    ('A <ex:a> <ex:p> "x .', 17, "closing quote is missing"),
    ('A <ex:a> <ex:p> "x"@toolonglanguage .', 17, "not an RDF term"),
    ('A <ex:a> <ex:p> "x"^^no:t .', 22, "unknown prefix 'no:'"),
    ("A no:a <ex:p> <ex:b> .", 3, "unknown prefix 'no:'"),
    ("A <relative> <ex:p> <ex:b> .", 3, "No scheme found"),
    ("A <ex:a> a <ex:b> .", 10, "'a' is not a term"),
    ("A <ex:a> <ex:p> 'x' .", 17, "is not a term"),
    ("TX .", 1, "the transaction of line 1 is still open"),
    ("TX now .", 4, "1 values where the row is 'TX .'"),
    ("H time noon .", 8, "'noon' is not a whole number"),
    ("H time 99999999999999999999 .", 8, "does not fit into 64 bits"),
    ("H time 5 .", 3, "must come before the transaction's first change"),
    ("H time .", 8, "1 values"),
    ("PA <ex:> <ex:> .", 4, "is not a prefix"),
    ("PA ex: ex:a .", 8, "must be an <iri>"),
    ("PD a:b .", 4, "is not a prefix"),
]


@pytest.mark.parametrize(("line", "column", "reason"), BROKEN)
def test_each_invalid_line_has_its_position_and_reason(line, column, reason):
    text = f"TX .\nA <ex:a> <ex:p> <ex:1> .\n{line}\nA <ex:a> <ex:p> <ex:2> .\nTC .\n"
    with pytest.raises(DataError) as error:
        read(text)
    assert (error.value.source, error.value.line, error.value.column) == ("<stream>", 3, column)
    assert reason in error.value.message
    rejected = []
    # The rest of the transaction counts.
    assert [row[5] for row in read(text, on_error="skip", rejected=rejected)] == [
        "<ex:1>",
        "<ex:2>",
    ]
    (found,) = rejected
    assert (found.line, found.column, found.text) == (3, column, line)
    assert reason in found.reason


@pytest.mark.parametrize("code", ["TC", "TA"])
def test_no_transaction_to_end(code):
    with pytest.raises(DataError, match="<stream>:1:1: no transaction is open"):
        read(f"{code} .\n")


def test_a_transaction_without_an_end_is_not_applied():
    text = "TX .\nA <ex:a> <ex:p> <ex:1> .\nTC .\nTX .\nA <ex:a> <ex:p> <ex:2> .\n"
    with pytest.raises(DataError, match=r"<stream>:4:1: .* never committed"):
        read(text)
    rejected = []
    assert [row[5] for row in read(text, on_error="skip", rejected=rejected)] == ["<ex:1>"]
    assert [(line.line, line.column) for line in rejected] == [(4, 1)]


def test_a_number_that_was_used_is_refused():
    one = "A <ex:a> <ex:p> <ex:1> .\nTC .\n"
    text = f"TX .\nH time 5 .\nH tx 3 .\n{one}TX .\nH tx 3 .\n{one}"
    with pytest.raises(
        DataError, match=r"<stream>:6:1: transaction \(time 5, tx 3\) does not come"
    ):
        read(text)
    rejected = []
    assert len(read(text + f"TX .\n{one}", on_error="skip", rejected=rejected)) == 2
    assert len(rejected) == 1


def test_bytes_that_are_no_text():
    rejected = []
    data = io.BytesIO(b"TX .\nA <ex:a> <ex:p> <ex:\xff> .\nA <ex:a> <ex:p> <ex:2> .\nTC .\n")
    found = rows(read_changes(data, format="rdfp", on_error="skip", rejected=rejected))
    assert [row[5] for row in found] == ["<ex:2>"]
    assert [line.line for line in rejected] == [2]


TERMS = st.sampled_from(["<ex:a>", "<ex:é>", "_:b", '"x"', '"a\\nb\\"c"@en', '"1"^^<ex:t>'])
CHANGES = st.lists(
    st.tuples(
        st.sampled_from([1, -1]),
        st.sampled_from(["<ex:a>", "_:b"]),
        st.just("<ex:p>"),
        TERMS,
        st.sampled_from([None, "<ex:g>", "_:g"]),
    ),
    min_size=1,
    max_size=4,
)
KEYS = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 5)), unique=True).map(sorted)


@settings(max_examples=200, deadline=None)
@given(KEYS, st.data())
@pytest.mark.parametrize("name", ["rdfp", "parquet", "arrow", "arrows"])
@pytest.mark.slow
def test_what_is_written_is_read_again(name, keys, data):
    batches = [ChangeBatch.of([(*key, *change) for change in data.draw(CHANGES)]) for key in keys]
    cut = data.draw(st.integers(0, sum(map(len, batches))))
    whole = concat_batches(batches)
    parts = [whole.slice(0, cut), whole.slice(cut, len(whole))]
    for written in (batches, parts):
        target = io.BytesIO()
        write_changes(written, target, format=name)
        again = read_changes(io.BytesIO(target.getvalue()), format=name)
        assert concat_batches(again) == whole


def test_transactions_before_a_broken_line_come_out_before_the_error():
    reader = PatchReader("log.rdfp")
    good = "TX .\nA <ex:a> <ex:p> <ex:b> .\nTC .\n"
    batches = reader.feed(good + "TX .\nA <ex:a> <ex:p .\nTC .\n" + good)
    assert [len(batch) for batch in batches] == [1]
    for go_on in (lambda: reader.feed(good), reader.finish):
        with pytest.raises(DataError, match=r"^log\.rdfp:5:") as caught:
            go_on()
        assert caught.value.line == 5


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("rdfp", b'A <ex:a> <ex:p> "y" .\n', b'A <ex:a> <ex:p> "x\xff" .\n'),
        ("nt", b'<ex:a> <ex:p> "y" .\n', b'<ex:a> <ex:p> "x\xff" .\n'),
        ("nq", b'<ex:a> <ex:p> "y" .\n', b'<ex:a> <ex:p> "x\xff" .\n'),
        ("updates", b'<3, ins, (<ex:a>, <ex:p>, "y")>\n', b'<3, ins, (<ex:a>, <ex:p>, "\xff")>\n'),
    ],
)
def test_a_line_that_is_no_utf8_is_refused(form, good, bad):
    rejected = []
    batches = read_changes(
        io.BytesIO(good + bad + good), format=form, on_error="skip", rejected=rejected
    )
    assert [o for batch in batches for o in batch.o.to_pylist()] == ['"y"', '"y"']
    assert [row.line for row in rejected] == [2]
    with pytest.raises(DataError):
        list(read_changes(io.BytesIO(bad), format=form))
