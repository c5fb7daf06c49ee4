"""Update messages `<time, ins|del, (s, p, o)>`: what is read, what is refused and where."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import read_changes, write_changes

LOG = """# a day
<3, ins, (<ex:a>, <ex:p>, <ex:b>)>

< 3 ,ins,( <ex:a> ,<ex:p>, "b, (c) \\"d\\""@en ) >  # spaces and signs
<7, del, (<ex:a>, <ex:p>, <ex:b>)>
<7, ins, (_:x, <ex:p>, "1"^^<http://www.w3.org/2001/XMLSchema#integer>, <ex:g>)>
"""


def read(tmp_path, text, name="day.updates", **options):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return [row for batch in read_changes(path, **options) for row in rows(batch)]


def rows(batch):
    columns = (batch.time, batch.tx, batch.diff, batch.s, batch.p, batch.o, batch.g)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_each_message_is_a_transaction_of_its_own(tmp_path):
    assert read(tmp_path, LOG) == [
        (3, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None),
        (3, 1, 1, "<ex:a>", "<ex:p>", '"b, (c) \\"d\\""@en', None),
        (7, 2, -1, "<ex:a>", "<ex:p>", "<ex:b>", None),
        (7, 3, 1, "_:x", "<ex:p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "<ex:g>"),
    ]


def test_packed_files_are_read(tmp_path):
    path = tmp_path / "day.updates.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    assert sum(map(len, read_changes(path))) == 4


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("ins <ex:a>", 1, "a message is <time, ins, (s, p, o)> or <time, del, (s, p, o)>"),
        ("<x, ins, (<ex:a>, <ex:p>, <ex:b>)>", 2, "'x' is not a whole number"),
        ("<9223372036854775808, ins, (<ex:a>, <ex:p>, <ex:b>)>", 2, "does not fit into 64 bits"),
        ("<2, ins, (<ex:a>, <ex:p>, <ex:b>)>", 2, "time runs backwards: 2 comes after 5"),
        ("<5, add, (<ex:a>, <ex:p>, <ex:b>)>", 5, "'add' is not an operation; use ins or del"),
        ('<5, ins, ("a", <ex:p>, <ex:b>)>', 11, "a subject is an IRI or a blank node"),
        ("<5, ins, (<ex:a>, _:p, <ex:b>)>", 19, "a predicate is an IRI"),
        ("<5, ins, (<ex:a>, <ex:p>, b)>", 27, "not an RDF term"),
        ("<5, ins, (<ex:a>, <ex:p>)>", 25, "2 terms where a triple has three"),
        ("<5, ins, (<ex:a>, <ex:p>, <ex:b>, <ex:g>, <ex:h>)>", 43, "at most four terms"),
        ("<5, ins, (<ex:a> <ex:p> <ex:b>)>", 17, "a comma or a closing parenthesis"),
        ("<5, ins, (<ex:a>, <ex:p>, <ex:b>)", 34, "the message does not end with '>'"),
        ("<5, ins, (<ex:a>, <ex:p>, <ex:b>)> more", 34, "the message does not end with '>'"),
    ],
)
def test_a_broken_line_is_reported_with_file_line_column_and_reason(tmp_path, line, column, reason):
    text = f"<5, ins, (<ex:a>, <ex:p>, <ex:b>)>\n{line}\n<6, del, (<ex:a>, <ex:p>, <ex:b>)>\n"
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)
    assert f"day.updates:2:{column}: " in str(raised.value)
    assert reason in str(raised.value)
    rejected = []
    kept = read(tmp_path, text, on_error="skip", rejected=rejected)
    assert [(b.line, b.column) for b in rejected] == [(2, column)]
    assert [row[:3] for row in kept] == [(5, 0, 1), (6, 1, -1)]


def test_messages_drive_a_graph_and_redundant_ones_have_no_effect(tmp_path):
    path = tmp_path / "day.updates"
    path.write_text(
        "<1, ins, (<ex:a>, <ex:p>, <ex:b>)>\n" * 2 + "<4, del, (<ex:a>, <ex:p>, <ex:b>)>"
    )
    graph = LiveGraph()
    watch = graph.watch("SELECT ?x { ?x <ex:p> <ex:b> . ?x <ex:p> <ex:b> }", strategy="decomposed")
    graph.apply(path)
    assert [(row.time, row.diff) for row in watch.rows()] == [(1, 1), (4, -1)]
    assert graph.stats().redundant == 1


terms = st.sampled_from(["<ex:a>", "<http://example.org/x?y=(1,2)>", "_:b"])
literals = st.text(max_size=6).map(
    lambda t: '"' + "".join(f"\\U{ord(c):08X}" for c in t if not 0xD800 <= ord(c) <= 0xDFFF) + '"'
)


@given(st.lists(st.tuples(st.sampled_from([1, -1]), terms, terms | literals), max_size=8))
def test_what_is_written_is_read_again(tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("messages") / "log.updates"
    log = [(at, at, diff, s, "<ex:p>", o, None) for at, (diff, s, o) in enumerate(changes)]
    canonical = path.with_suffix(".rdfp")
    write_changes(ChangeBatch.of(log), canonical)
    wanted = [row for batch in read_changes(canonical) for row in rows(batch)]
    write_changes(list(read_changes(canonical)), path)
    assert [row for batch in read_changes(path) for row in rows(batch)] == wanted
