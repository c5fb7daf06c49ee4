"""TermDictionary against pyoxigraph's equality, and kernels against their twins."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode

from graphtide.errors import DataError, TermError
from graphtide.rdf import kinds
from graphtide.rdf.dictionary import CACHED_TERMS, TermDictionary
from graphtide.rdf.kernels.table import KernelTermTable
from graphtide.rdf.term_tables import PlainTermTable, string_array, text_column

XSD = "http://www.w3.org/2001/XMLSchema#"
TYPES = [
    "integer",
    "decimal",
    "double",
    "boolean",
    "dateTime",
    "int",
    "long",
    "byte",
    "nonNegativeInteger",
    "unsignedByte",
    "negativeInteger",
    "positiveInteger",
    "short",
    "float",
    "date",
    "string",
    "token",
]


def iris() -> st.SearchStrategy[NamedNode]:
    path = st.text("abcXYZ019-._~é漢/?=&;:@+", max_size=12)
    schemes = st.sampled_from(["http://example.org/", "urn:x:", "https://h:80/", "a:"])
    fragment = st.sampled_from(["", "#", "#f", "#/?"])
    made = st.builds(lambda a, b, c: a + b + c, schemes, path, fragment)

    def named(text: str) -> NamedNode | None:
        try:
            return NamedNode(text)
        except ValueError:
            return None

    return made.map(named).filter(lambda iri: iri is not None)


def numerals() -> st.SearchStrategy[str]:
    return st.one_of(
        st.integers(-(10**19), 10**19).map(str),
        st.integers(-300, 300).map(str),
        st.from_regex(
            r"[+-]?0{0,3}[0-9]{0,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
        ),
        st.sampled_from(
            ["INF", "-INF", "+INF", "NaN", "true", "false", "1", "0", "TRUE", " 1", ""]
        ),
    )


def datetimes() -> st.SearchStrategy[str]:
    proper = st.datetimes().map(lambda moment: moment.isoformat())
    zones = st.sampled_from(["", "Z", "+01:00", "-14:00", "+14:01", "+14:00", "-13:59", "+1:00"])
    odd = st.sampled_from(
        [
            "2000-01-01T24:00:00",
            "2000-01-01T24:00:00.000",
            "2000-01-01T24:00:01",
            "1900-02-29T00:00:00",
            "2000-02-29T00:00:00",
            "2023-04-31T00:00:00",
            "2000-01-01T00:00:60",
            "2000-01-01T00:00:00.1234567",
            "2000-01-01T00:00:00.1234560",
            "2000-01-01T00:00:00.",
            "0000-01-01T00:00:00",
            "12000-01-01T00:00:00",
            "-0001-01-01T00:00:00",
            "2000-13-01T00:00:00",
            "2000-00-10T00:00:00",
            "2000-01-01 00:00:00",
            "2255-06-05T23:47:34.740991",
            "2255-06-05T23:47:34.740992",
            "1684-07-28T00:12:25.259008",
            "1684-07-28T00:12:25.259009",
        ]
    )
    return st.builds(str.__add__, st.one_of(proper, odd), zones)


def literals() -> st.SearchStrategy[Literal]:
    values = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    values = st.one_of(values, st.text('a"\\\n\r\t\b\f\x7f\x00 ^@<', max_size=8))
    tags = st.sampled_from(["en", "EN", "en-GB", "gsw", "zh-Hant-TW", "de-1996", "x-y"])
    types = st.sampled_from([NamedNode(XSD + name) for name in TYPES] + [NamedNode("ex:t")])
    return st.one_of(
        values.map(Literal),
        st.builds(lambda v, t: Literal(v, language=t), values, tags),
        st.builds(
            lambda v, d: Literal(v, language="en", direction=d),
            values,
            st.sampled_from([BaseDirection.LTR, BaseDirection.RTL]),
        ),
        st.builds(lambda v, t: Literal(v, datatype=t), st.one_of(values, numerals()), types),
        datetimes().map(lambda v: Literal(v, datatype=NamedNode(XSD + "dateTime"))),
    )


def terms() -> st.SearchStrategy[NamedNode | BlankNode | Literal]:
    labels = st.from_regex(r"[A-Za-z0-9_é][A-Za-z0-9_.é-]{0,6}[A-Za-z0-9_-]", fullmatch=True)
    return st.one_of(iris(), labels.map(BlankNode), literals())


def escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08X}"


@settings(max_examples=300, deadline=None)
@given(st.lists(terms(), max_size=20))
def test_ids_are_equal_just_when_terms_are(many):
    dictionary = TermDictionary()
    column = dictionary.encode_column([str(term) for term in many])
    single = [dictionary.encode(term) for term in many]
    assert column.tolist() == single
    assert len(dictionary) == len(set(many))
    for left, left_id in zip(many, single, strict=True):
        assert dictionary.decode(left_id) == left
        assert dictionary.text(left_id) == str(left)
        assert dictionary.lookup(str(left)) == left_id
        for right, right_id in zip(many, single, strict=True):
            assert (left == right) == (left_id == right_id)
    assert dictionary.decode_column(column).to_pylist() == [str(term) for term in many]


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_escaped_spellings_are_the_same_term(value):
    text = '"' + "".join(map(escaped, value)) + '"'
    dictionary = TermDictionary()
    plain = dictionary.encode(Literal(value))
    assert dictionary.encode(text) == plain
    assert dictionary.encode(f"{text}^^<{XSD}string>") == plain
    assert dictionary.encode_column([text, f"{text}^^<{XSD}string>"]).tolist() == [plain, plain]


@settings(max_examples=300, deadline=None)
@given(st.lists(terms(), max_size=20), st.integers(0, 20))
def test_kernel_table_equals_its_twin(many, known):
    texts = [str(term) for term in many]
    kernel, plain = KernelTermTable(), PlainTermTable()
    for text in texts[:known]:
        assert kernel.add(text) == plain.add(text)
    column = text_column(pa.array(texts, pa.string()))
    kernel_ids, kernel_bad = kernel.encode(column)
    plain_ids, plain_bad = plain.encode(column)
    assert kernel_bad == plain_bad == []
    # Ids may differ, since odd texts are added apart: compare what they stand for.
    assert kernel.count == plain.count
    assert kernel.texts(kernel_ids).equals(plain.texts(plain_ids))
    assert (kernel.kinds[kernel_ids] == plain.kinds[plain_ids]).all()
    np.testing.assert_array_equal(kernel.numbers[kernel_ids], plain.numbers[plain_ids])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text('<>"_:^@\\ abu0041.-#/é\n', max_size=10), max_size=20))
def test_kernel_table_and_twin_refuse_the_same_texts(texts):
    column = text_column(pa.array(texts, pa.string()))
    (kernel_ids, kernel_bad), (plain_ids, plain_bad) = (
        table.encode(column) for table in (KernelTermTable(), PlainTermTable())
    )
    assert kernel_bad == plain_bad
    assert ((kernel_ids == 0) == (plain_ids == 0)).all()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a:", "a:/", "a://", "a:b/", "http://h", "http://h/p/", "http://h#"]),
            st.text("ab/#:%4 é[\\", max_size=6),
            st.sampled_from([">", ">", ">", ""]),
        ),
        max_size=20,
    )
)
def test_iris_that_begin_alike_are_checked_as_if_alone(parts):
    texts = [f"<{start}{rest}{end}" for start, rest, end in parts]
    kernel, twin = KernelTermTable(), PlainTermTable()
    ids, bad = kernel.encode(text_column(pa.array(texts, pa.string())))
    good = []
    for row, text in enumerate(texts):
        _, wrong = PlainTermTable().encode(text_column(pa.array([text])))
        assert [reason for at, reason in bad if at == row] == [reason for _, reason in wrong]
        good += [] if wrong else [row]
    found, _ = twin.encode(text_column(pa.array([texts[row] for row in good], pa.string())))
    assert [kernel.text(ids[row]) for row in good] == [twin.text(term) for term in found]
    assert [kernel.kinds[ids[row]] for row in good] == [kinds.IRI] * len(good)


@pytest.mark.parametrize("size", [*range(40), 63, 64, 65])
def test_texts_that_differ_in_one_byte_are_two_terms(size):
    plain = "x" * size
    others = [plain[:at] + "y" + plain[at + 1 :] for at in range(size)]
    texts = [f'"{text}"' for text in [plain, plain + "x", *others]]
    table = KernelTermTable()
    ids, _ = table.encode(text_column(pa.array([*texts, *texts])))
    assert ids.tolist() == [*range(1, len(texts) + 1)] * 2
    assert [table.text(term) for term in ids[: len(texts)]] == texts
    assert [table.find(text) for text in texts] == ids[: len(texts)].tolist()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            terms().map(str),
            st.text('<>"_:^@\\ abu0041.-#/é\n', max_size=10),
            st.sampled_from(['"a"@EN', '"\\u0061"', "_:b", '"\ud800"', "<ex:\ud800>"]),
        ),
        max_size=20,
    )
)
def test_single_texts_in_any_spelling_are_as_in_the_twin(texts):
    def results(table):
        for text in texts:
            try:
                yield table.add_text(text)
            except TermError as error:
                yield error.message

    kernel, twin = KernelTermTable(), PlainTermTable()
    assert list(results(kernel)) == list(results(twin))
    assert kernel.top == twin.top
    for term in range(1, twin.top + 1):
        assert kernel.text(term) == twin.text(term)
        assert kernel.kinds[term] == twin.kinds[term]
        assert kernel.numbers[term] == twin.numbers[term] or kernel.kinds[term] == kinds.DOUBLE


def test_single_texts_outgrow_the_table():
    table = KernelTermTable()
    texts = [f'"{number}"' for number in range(5000)]
    assert [table.add_text(text) for text in texts] == list(range(1, 5001))
    assert [table.find(text) for text in texts] == list(range(1, 5001))


@settings(max_examples=300, deadline=None)
@given(st.lists(numerals(), min_size=1, max_size=10), st.sampled_from(TYPES[:13]))
def test_numbers_are_what_python_reads(values, name):
    texts = [f'"{value}"^^<{XSD}{name}>' for value in values]
    dictionary = TermDictionary()
    for value, term in zip(values, dictionary.encode_column(texts).tolist(), strict=True):
        kind, number = dictionary.kinds[term], dictionary.numbers[term]
        if kind == kinds.EXACT:
            assert float(Decimal(value)) == number
            assert len(Decimal(value).normalize().as_tuple().digits) <= 15
        elif kind == kinds.DOUBLE:
            np.testing.assert_equal(float(value), float(number))
        elif kind == kinds.BOOLEAN:
            assert {"true": 1, "1": 1, "false": 0, "0": 0}[value] == number


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("<http://example.org/>", kinds.IRI, 0),
        ("_:b0", kinds.BLANK, 0),
        ('"x"', kinds.STRING, 0),
        ('""', kinds.STRING, 0),
        ('"x"@en', kinds.LANG, 0),
        ('"x"@zh-hant-tw', kinds.LANG, 0),
        ('"x"@en--ltr', kinds.OTHER, 0),
        (f'"007"^^<{XSD}integer>', kinds.EXACT, 7),
        (f'"-0"^^<{XSD}integer>', kinds.EXACT, 0),
        (f'"999999999999999"^^<{XSD}integer>', kinds.EXACT, 999999999999999),
        (f'"1000000000000001"^^<{XSD}integer>', kinds.OTHER, 0),
        (f'"1000000000000000"^^<{XSD}integer>', kinds.EXACT, 1e15),
        (f'"1.0"^^<{XSD}integer>', kinds.OTHER, 0),
        (f'"127"^^<{XSD}byte>', kinds.EXACT, 127),
        (f'"128"^^<{XSD}byte>', kinds.OTHER, 0),
        (f'"-129"^^<{XSD}byte>', kinds.OTHER, 0),
        (f'"-1"^^<{XSD}nonNegativeInteger>', kinds.OTHER, 0),
        (f'"0"^^<{XSD}positiveInteger>', kinds.OTHER, 0),
        (f'"2147483648"^^<{XSD}int>', kinds.OTHER, 0),
        (f'"9223372036854775807"^^<{XSD}long>', kinds.OTHER, 0),
        (f'"9000000000000000000"^^<{XSD}long>', kinds.EXACT, 9e18),
        (f'"10000000000000000000"^^<{XSD}long>', kinds.OTHER, 0),
        (f'".50"^^<{XSD}decimal>', kinds.EXACT, 0.5),
        (f'"0.1"^^<{XSD}decimal>', kinds.EXACT, 0.1),
        (f'"1e3"^^<{XSD}decimal>', kinds.OTHER, 0),
        (f'"."^^<{XSD}decimal>', kinds.OTHER, 0),
        (f'"1e3"^^<{XSD}double>', kinds.DOUBLE, 1000),
        (f'"1e400"^^<{XSD}double>', kinds.DOUBLE, float("inf")),
        (f'"-INF"^^<{XSD}double>', kinds.DOUBLE, float("-inf")),
        (f'"NaN"^^<{XSD}double>', kinds.DOUBLE, float("nan")),
        (f'"infinity"^^<{XSD}double>', kinds.OTHER, 0),
        (f'"1"^^<{XSD}float>', kinds.OTHER, 0),
        (f'"true"^^<{XSD}boolean>', kinds.BOOLEAN, 1),
        (f'"0"^^<{XSD}boolean>', kinds.BOOLEAN, 0),
        (f'"True"^^<{XSD}boolean>', kinds.OTHER, 0),
        (f'"1970-01-01T00:00:01Z"^^<{XSD}dateTime>', kinds.DATETIME, 1e6),
        (f'"1970-01-01T01:00:00+01:00"^^<{XSD}dateTime>', kinds.DATETIME, 0),
        (f'"1969-12-31T23:59:59.5"^^<{XSD}dateTime>', kinds.LOCAL_DATETIME, -500_000),
        (f'"1970-01-01T24:00:00Z"^^<{XSD}dateTime>', kinds.DATETIME, 86_400e6),
        (f'"2400-01-01T00:00:00Z"^^<{XSD}dateTime>', kinds.OTHER, 0),
        (f'"2000-01-01"^^<{XSD}date>', kinds.OTHER, 0),
        ('"x"^^<http://example.org/t>', kinds.OTHER, 0),
    ],
)
@pytest.mark.parametrize("table", [KernelTermTable, PlainTermTable])
def test_typed_side_columns(table, text, kind, number):
    made = table()
    ids, bad = made.encode(text_column(pa.array([text])))
    assert bad == []
    assert made.kinds[ids[0]] == kind
    np.testing.assert_equal(made.numbers[ids[0]], number)
    assert made.text(int(ids[0])) == text


def test_lexical_forms_stay_apart():
    ids = TermDictionary().encode_column([f'"{v}"^^<{XSD}integer>' for v in ("1", "01", "+1", "1")])
    assert ids.tolist() == [1, 2, 3, 1]


BAD = [
    "",
    " ",
    "x",
    "<ex:a",
    "<a b>",
    "<ex:a b>",
    "<relative>",
    "<ex:a> <ex:b>",
    "<ex:%zz>",
    "<http://h:x/>",
    "<ex:a\\>",
    "<ex:\\n>",
    "<ex:{a}>",
    "<< <ex:a> <ex:b> <ex:c> >>",
    '<<( "a" <ex:b> <ex:c> )>>',
    "_:",
    "_:a b",
    "_:a.",
    "_:-a",
    "_x",
    '"',
    '"abc',
    '"abc\\"',
    '"a"x',
    '"a" .',
    '"a"@',
    '"a"@en_gb',
    '"a"@toolonglanguage',
    '"a"@en--up',
    '"a"^^',
    '"a"^^<>',
    '"a"^^<t>',
    '"a"^<ex:t>',
    '"a"^^xsd:int',
    '"\\x"',
    '"\\u12"',
    '"\\ud800"',
    '"\\U00110000"',
    '"a\nb"',
    '"a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
    "'a'",
]


@pytest.mark.parametrize("text", BAD)
def test_bad_texts_are_refused(text):
    dictionary = TermDictionary()
    with pytest.raises(TermError, match="not an RDF term"):
        dictionary.encode(text)
    with pytest.raises(DataError, match=r"^row 2: not an RDF term"):
        dictionary.encode_column(['"a"', "<ex:a>", text])
    ids, bad = dictionary.intern_rows([text, "<ex:a>", text])
    assert ids[0] == ids[2] == 0 and ids[1] > 0
    assert [row for row, _ in bad] == [0, 2]
    assert dictionary.intern_rows([text, "<ex:a>"])[0].tolist() == [0, ids[1]]


def test_every_kind_of_column_gives_the_same_ids():
    texts = ["<ex:a>", None, '"é"@fr', "<ex:a>", "_:b"]
    plain = pa.array(texts)
    dictionary = TermDictionary()
    wanted = [1, 0, 2, 1, 3]
    padded = pa.array(["<ex:skipped>", *texts, "x"]).slice(1, 5)
    columns = [
        texts,
        plain,
        padded,
        plain.cast(pa.large_string()),
        plain.dictionary_encode(),
        pa.chunked_array([plain[:2], plain[2:]]),
        pa.chunked_array([plain.dictionary_encode()]),
        np.array(texts, dtype=object),
    ]
    for column in columns:
        assert dictionary.encode_column(column).tolist() == wanted
    assert dictionary.encode_column(np.array(["<ex:a>", "_:b"])).tolist() == [1, 3]
    assert len(dictionary) == 3


def test_empty_columns():
    dictionary = TermDictionary()
    for column in ([], pa.array([], pa.string()), pa.chunked_array([], pa.string())):
        assert dictionary.encode_column(column).tolist() == []
    assert dictionary.encode_column(pa.nulls(2)).tolist() == [0, 0]
    assert dictionary.decode_column([]).to_pylist() == []


def test_columns_that_hold_no_strings():
    with pytest.raises(DataError, match="must hold strings, not int64"):
        TermDictionary().encode_column(pa.array([1, 2]))
    with pytest.raises(DataError, match="must hold strings"):
        TermDictionary().encode_column([1, 2])


def test_bad_values_of_a_dictionary_column_name_their_rows():
    column = pa.array(["<ex:a>", "junk", "<ex:a>", "junk"]).dictionary_encode()
    _, bad = TermDictionary().intern_rows(column)
    assert [row for row, _ in bad] == [1, 3]


def test_unknown_ids_and_values_are_refused():
    dictionary = TermDictionary()
    dictionary.encode('"a"')
    for term in (0, 2, -1):
        with pytest.raises(TermError, match="ids run from 1 to 1"):
            dictionary.text(term)
    with pytest.raises(TermError, match="ids run from 1 to 1"):
        dictionary.decode_column([0, 7])
    with pytest.raises(TermError, match="not an RDF term"):
        dictionary.encode(12)
    untagged = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
    with pytest.raises(TermError, match="language tag"):
        dictionary.encode(Literal("a", datatype=untagged))


def test_growth_keeps_every_term():
    texts = [f"<http://example.org/{index}>" for index in range(50_000)]
    dictionary = TermDictionary()
    ids = np.concatenate(
        [dictionary.encode_column(texts[at : at + 777]) for at in range(0, 50_000, 777)]
    )
    assert ids.tolist() == list(range(1, 50_001))
    assert dictionary.decode_column(ids[::-1]).to_pylist() == texts[::-1]
    assert dictionary.kinds.size > 50_000 and dictionary.numbers.size > 50_000
    assert dictionary.nbytes > sum(map(len, texts))
    assert '"a"' not in dictionary and texts[-1] in dictionary


def test_a_column_that_outgrows_the_table_is_as_in_the_twin():
    odd = ['"caf\\u00e9"', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "<a b>", None]
    odd.append(f'"{"9" * 20}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    texts = [
        odd[n % 5] if n % 7 == 0 else f"<http://example.org/{n * n % 9973}>" for n in range(9000)
    ]
    column = text_column(pa.array(texts, pa.string()).slice(3))
    found = []
    for table in (KernelTermTable(), PlainTermTable()):
        for _ in range(2):
            ids, bad = table.encode(column)
        found.append((table.texts(ids).to_pylist(), bad, table.kinds[ids].tolist(), table.count))
        found[-1] += (table.numbers[ids].tolist(),)
    assert found[0] == found[1]


def test_caches_start_afresh_when_full(monkeypatch):
    monkeypatch.setattr("graphtide.rdf.dictionary.CACHED_TERMS", 10)
    assert CACHED_TERMS > 10
    dictionary = TermDictionary()
    ids = [dictionary.encode(f"_:b{index}") for index in range(35)]
    assert ids == [dictionary.encode(f"_:b{index}") for index in range(35)]
    assert [str(dictionary.decode(term)) for term in ids] == [f"_:b{index}" for index in range(35)]
    assert len(dictionary.known) <= 10 and len(dictionary._terms) <= 10


@given(st.lists(terms(), max_size=40), st.sampled_from([1, 3, 7, 1000]))
def test_single_terms_keep_their_ids_when_they_reach_the_table(some, look_every):
    dictionary = TermDictionary()
    ids = []
    for number, term in enumerate(some):
        ids.append(dictionary.encode(term))
        if number % look_every == 0:
            assert dictionary.decode(ids[-1]) == term
    assert [dictionary.decode(i) for i in ids] == some
    assert dictionary.encode_column([str(term) for term in some]).tolist() == ids
    assert [dictionary.encode(str(term)) for term in some] == ids
    apart = TermDictionary()
    apart.encode_column([str(term) for term in some])
    for term, found in zip(some, ids, strict=True):
        other = apart.lookup(term)
        assert dictionary.kinds[found] == apart.kinds[other]
        assert dictionary.numbers[found] == apart.numbers[other]


def test_pandas_is_not_imported_by_changes_answers_and_plans():
    """Arrow imports it when it makes an array of a list; one call in many would wait for it."""
    script = (
        "import sys, graphtide\n"
        "graph = graphtide.LiveGraph()\n"
        "query = graph.watch('SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }')\n"
        "for n in range(200):\n"
        "    graph.insert(f'<ex:{n}>', '<ex:p>', '<ex:b>')\n"
        "graph.terms.encode_column(['<ex:x>', '<ex:y>'])\n"
        "assert not query.replan() and query.count() == 0\n"
        "print([name for name in sys.modules if name == 'pandas'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)))
def test_arrays_of_texts_are_those_of_arrow(texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "pandas", raising=False)
        assert string_array(texts).equals(pa.array(texts, pa.string()))
