"""Files that would need more memory than they look like."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import time

import pyarrow as pa
import pytest

from graphtide.errors import DataError, DataLimitError
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch, RejectedRows
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.guards import EntityCount
from graphtide.rdf.formats.lines import LONG_LINE, LineBuffer
from graphtide.rdf.formats.patch import PatchReader
from graphtide.rdf.formats.read import read_quads

HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
NESTED = '<!ENTITY a0 "xxxxxxxxxx">' + "".join(
    f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
)


def rdf_xml(text, entities="", attribute="http://e/a"):
    body = f'<rdf:Description rdf:about="{attribute}"><e:p>{text}</e:p></rdf:Description>'
    return f"<!DOCTYPE rdf:RDF [{entities}]>\n{HEAD}{body}</rdf:RDF>".encode()


def objects(content, name, **options):
    found = read_changes(io.BytesIO(content), format=name, **options)
    return [text for batch in found for text in batch.o.to_pylist()]


# --- entities ---


def test_entities_work():
    entities = '<!ENTITY a "x"><!ENTITY b "&a;&a;">'
    assert objects(rdf_xml("&b;&amp;&a;", entities), "rdf") == ['"xx&x"']


def test_nested_entities_are_counted_and_not_expanded():
    """10 bytes, nine times tenfold: 10 GB out of less than a kilobyte."""
    content = rdf_xml("&a9;", NESTED)
    assert len(content) < 1000
    with pytest.raises(DataLimitError, match="entities expand to more than 16,777,216 bytes"):
        objects(content, "rdf")


@pytest.mark.parametrize("part", ["text", "attribute"])
def test_one_entity_many_times(part):
    content = rdf_xml(**{"text": "x", part: "&a;" * 1000}, entities=f'<!ENTITY a "{"x" * 20_000}">')
    with pytest.raises(DataLimitError) as raised:
        objects(content, "rdf")
    assert raised.value.limit == "entity_bytes"


@pytest.mark.parametrize(
    "entities",
    [
        '<!ENTITYa "{}">',
        '<!ENTITY % a "{}">',
        '<!ENTITY\n\u00a0a\n\u00a0"{}" >',
        '<!-- <!ENTITY a "{}"> -->',
    ],
)
def test_lax_declarations_count_where_the_parser_accepts_them(entities):
    short = objects(rdf_xml("&a;&a;", entities.format("x" * 10)), "rdf")
    assert short == [f'"{"x" * 20}"']
    with pytest.raises(DataLimitError):
        objects(
            rdf_xml("&a;" * 50, entities.format("x" * 1000)),
            "rdf",
            limits=Limits(entity_bytes=50_000),
        )


def test_the_count_does_not_depend_on_how_the_text_is_cut():
    content = rdf_xml(
        "&c; &bé; &a;&c; &none; a & b",
        '<!ENTITY a "0123"><!ENTITY  bé "&a;&a;é"> <!ENTITY % c "&bé;&bé;&amp;">',
    )

    def total(cuts):
        count = EntityCount(RejectedRows("a.rdf"))
        for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
            count.take(content[start:end])
        return count.total

    # The names and sizes of a, bé, c; then c, bé, a, c in the text.
    sizes = {"a": 4, "bé": 3 + 3 + 1 + 8}
    sizes["c"] = len("&bé;&bé;&amp;") + 2 * sizes["bé"]
    expected = sum(sizes.values()) + 4 + 2 * sizes["c"] + sizes["bé"] + sizes["a"]
    cuts = [random.Random(seed).sample(range(len(content)), 9) for seed in range(300)]
    assert {total(sorted(cut)) for cut in [[], *cuts]} == {expected}
    assert total(range(len(content))) == expected


# --- packed files ---


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["a.nt", "a.rdfp", "a.ttl"])
def test_a_packed_file(tmp_path, suffix, name):
    path = tmp_path / (name + suffix)
    line = b"A <ex:a> <ex:p> <ex:b> .\n" if name == "a.rdfp" else b"<ex:a> <ex:p> <ex:b> .\n"
    packed = PACKERS[suffix](line * 10_000)
    path.write_bytes(packed)
    assert sum(map(len, read_changes(path))) == 10_000
    with pytest.raises(DataLimitError, match=f"{path.name}: unpacks to more than 100,000 bytes"):
        list(read_changes(path, limits=Limits(unpacked_bytes=100_000)))
    for damaged in (packed[:-9], b"nothing that was packed"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=f"{path.name}: cannot be read"):
            list(read_changes(path))


@pytest.mark.parametrize("suffix", [".bz2", ".zst"])
def test_files_are_packed_as_gz_only(tmp_path, suffix):
    with pytest.raises(DataError, match="cannot be written packed like this") as caught:
        write_changes(ChangeBatch.of([]), tmp_path / f"a.rdfp{suffix}")
    assert caught.value.hint == f"omit {suffix}, or pack it as .gz"
    assert not list(tmp_path.iterdir())


LIMITS = Limits(literal_length=100_000)
LONG = b"x" * 300_000
FILES = {
    "nt": (b'<ex:a> <ex:p> <ex:b> .\n\n<ex:a> <ex:p> "%s" .\n<ex:a> <ex:p> <ex:c> .\n', 3),
    "nq": (b'<ex:a> <ex:p> <ex:b> .\n\n<ex:a> <ex:p> "%s" <ex:g> .\n<ex:a> <ex:p> <ex:c> .', 3),
    "rdfp": (b'A <ex:a> <ex:p> <ex:b> .\nTX .\nA <ex:a> <ex:p> "%s" .\nTC .\n', 3),
    "updates": (b'<1, ins, (<ex:a>, <ex:p>, <ex:b>)>\n<2, ins, (<ex:a>, <ex:p>, "%s")>\n', 2),
    "ttl": (b'<ex:a> <ex:p> <ex:b> .\n\n<ex:a> <ex:p> "%s" .\n', 3),
    "trig": (b'<ex:a> <ex:p> <ex:b> .\n\n<ex:a> <ex:p> """%s""" .\n', 3),
    "rdf": (rdf_xml("%s"), 2),
    "jsonld": (b'{"@id": "ex:a",\n\n"ex:p": "%s"}', 3),
}


@pytest.mark.parametrize("name", FILES)
def test_a_literal_that_is_too_long_is_an_error_with_its_line(name, tmp_path):
    content, line = FILES[name]
    path = tmp_path / f"data.{name}.gz"
    with gzip.open(path, "wb") as file:
        file.write(content % LONG)
    with pytest.raises(DataLimitError) as raised:
        list(read_changes(path, limits=LIMITS))
    assert (raised.value.limit, raised.value.line) == ("literal_length", line)
    assert str(path) in str(raised.value)
    assert len(str(raised.value)) < 500
    assert sum(map(len, read_changes(path))) > 0  # the default limit is larger


@pytest.mark.parametrize("name", ["nt", "nq", "rdfp", "updates"])
@pytest.mark.parametrize("block", [1000, 1 << 22])
def test_readers_of_lines_go_on_after_one_that_is_too_long(name, block, monkeypatch):
    monkeypatch.setattr("graphtide.rdf.formats.lines.BLOCK_BYTES", block)
    monkeypatch.setattr("graphtide.rdf.formats.patch.BLOCK_BYTES", block)
    content, line = FILES[name]
    rejected = []
    found = objects(content % LONG, name, on_error="skip", rejected=rejected, limits=LIMITS)
    assert found == ["<ex:b>", "<ex:c>"][: len(found)]
    assert len(found) == (2 if name in ("nt", "nq") else 1)
    assert [row.line for row in rejected] == [line]
    assert "a line of more than 100,000 bytes" in rejected[0].reason
    assert "--limit literal_length=…" in rejected[0].reason


@pytest.mark.parametrize("name", ["parquet", "arrow", "arrows"])
def test_tables_have_terms_that_are_too_long(name):
    texts = ["<ex:b>", f'"{LONG.decode()}"', "<ex:c>"]
    batch = ChangeBatch.of([(0, n, 1, "<ex:a>", "<ex:p>", o, None) for n, o in enumerate(texts)])
    file = io.BytesIO()
    write_changes(batch, file, format=name)
    rejected = []
    options = {"on_error": "skip", "rejected": rejected, "limits": LIMITS}
    assert objects(file.getvalue(), name, **options) == ["<ex:b>", "<ex:c>"]
    assert [row.line for row in rejected] == [1]
    assert "a term of more than 100,000 bytes" in rejected[0].reason
    with pytest.raises(DataLimitError, match=":1: a term of more than"):
        objects(file.getvalue(), name, limits=LIMITS)
    assert objects(file.getvalue(), name) == texts


@pytest.mark.parametrize("name", ["nt", "ttl", "jsonld"])
def test_many_short_literals_are_no_long_one(name):
    line = b'<ex:a> <ex:p> "x%d" .\n'
    content = b"".join(line % n for n in range(20_000))
    if name == "jsonld":
        content = b'{"@id": "ex:a", "ex:p": [%s]}' % b", ".join(
            b'"\\\\x\\"%d"' % n for n in range(20_000)
        )
    assert len(content) > LIMITS.literal_length
    assert len(objects(content, name, limits=LIMITS)) == 20_000


def test_transactions_before_a_line_that_is_too_long_are_returned_first():
    reader = PatchReader("log.rdfp", limits=LIMITS)
    text = b'TX .\nA <ex:a> <ex:p> <ex:b> .\nTC .\nTX .\nA <ex:a> <ex:p> "%s" .\nTC .\n' % LONG
    assert [len(batch) for batch in reader.feed(text)] == [1]
    with pytest.raises(DataLimitError, match=r"log\.rdfp:5: a line of more than"):
        reader.feed(b"")


def test_lines_may_end_in_any_way():
    lines = LineBuffer(Limits(literal_length=10))
    text = b"a\rbb\r\ncccc\n" * 5 + b"d" * 11 + b"\r\n" + b"e\r" * 12 + b"f" * 30
    for size in (1, 3, 1000):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        found = b"".join([*map(lines.feed, pieces), lines.rest()])
        assert found.split(b"\n") == [
            *[b"a", b"bb", b"cccc"] * 5,
            LONG_LINE,
            *[b"e"] * 12,
            LONG_LINE,
        ]


def nested(levels):
    return "<<( <ex:a> <ex:b> " * levels + "<ex:o>" + " )>>" * levels


STATEMENT = "<ex:s> <ex:p> "
PADDING = "<ex:s> <ex:p> <ex:o> .\n" * 5000

DEEP = {
    "nt": lambda n: f"{STATEMENT}{nested(n)} .\n",
    "nq": lambda n: f"{STATEMENT}{nested(n)} <ex:g> .\n",
    "ttl": lambda n: f"{PADDING}{STATEMENT}{nested(n)} .\n",
    "trig": lambda n: f"{STATEMENT}{nested(n)} .\n",
    "rdf": lambda n: (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        f"{'<rdf:Description><e:p>' * n}{'</e:p></rdf:Description>' * n}</rdf:RDF>"
    ),
    "jsonld lists": lambda n: '{"@id":"ex:a","ex:p":' + '{"@list":[' * n + "1" + "]}" * n + "}",
    "jsonld objects": lambda n: '{"ex:p":' * n + "1" + "}" * n,
    "jsonld contexts": lambda n: (
        '{"@context":' + '{"a":{"@id":"ex:p","@context":' * n + "{}" + "}}" * n + ',"a":1}'
    ),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("levels", [900, 200_000])
def test_what_is_nested_too_deeply_is_refused_before_it_is_parsed(name, levels):
    data = DEEP[name](levels).encode()
    begin = time.perf_counter()
    with pytest.raises(DataError, match="nested more than"):
        list(read_quads(io.BytesIO(data), format=name.split()[0]))
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize("name", DEEP)
def test_some_levels_are_read(name):
    levels = 15 if "contexts" in name else 40
    assert list(read_quads(io.BytesIO(DEEP[name](levels).encode()), format=name.split()[0]))


def contexts(levels, terms):
    """Objects in each other, each with terms of its own."""
    texts = [
        ", ".join(f'"t{level}_{n}": "http://e/t{n}"' for n in range(terms))
        for level in range(levels)
    ]
    begins = [f'{{"@context": {{{text}}}, "t{n}_0": ' for n, text in enumerate(texts)]
    return ("".join(begins) + "1" + "}" * levels).encode()


def test_contexts_inside_of_each_other_are_few():
    """The parser copies all that is known at each: 400 levels of 100 terms took 22 s and 5 GB."""
    begin = time.perf_counter()
    for levels in (21, 400):
        with pytest.raises(DataError, match="contexts are nested more than 20 levels deep"):
            list(read_quads(io.BytesIO(contexts(levels, 100)), format="jsonld"))
    escaped = contexts(21, 2).replace(b"@context", b"\\u0040conte\\u0078t")
    with pytest.raises(DataError, match="contexts are nested"):
        list(read_quads(io.BytesIO(escaped), format="jsonld"))
    assert sum(map(len, read_quads(io.BytesIO(contexts(20, 100)), format="jsonld"))) == 20
    beside = b"[" + b",".join([contexts(3, 2)] * 500) + b"]"
    assert sum(map(len, read_quads(io.BytesIO(beside), format="jsonld"))) == 1500
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("nt", STATEMENT + '"' + "<<( " * 900 + '" .'),
        ("jsonld", '{"@id":"ex:a","ex:p":"' + '[{\\"' * 900 + '"}'),
        (
            "rdf",
            (
                '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
                f"<!-- {'<a> ' * 900}--><rdf:Description><e:p><![CDATA[{'<br> ' * 40_000}]]></e:p>"
                "</rdf:Description></rdf:RDF>"
            ),
        ),
        ("ttl", f"{STATEMENT}{', '.join([nested(1)] * 2000)} ."),
    ],
)
def test_brackets_in_texts_are_no_levels(form, text):
    assert sum(map(len, read_quads(io.BytesIO(text.encode()), format=form))) > 0
