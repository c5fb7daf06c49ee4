"""Streams from files: the same events in every format."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from graphtide import LiveGraph
from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch

ROWS = [
    (1, 0, +1, "<ex:a>", "<ex:p>", '"1"', None),
    (1, 0, +1, "<ex:b>", "<ex:p>", '"2"', None),
    (6, 1, +1, "<ex:c>", "<ex:p>", '"3"', None),
]
PATCH = """H time 1 .
TX .
A <ex:a> <ex:p> "1" .
A <ex:b> <ex:p> "2" .
TC .
H time 6 .
TX .
A <ex:c> <ex:p> "3" .
TC .
"""
TRIG = """<ex:e2> { <ex:c> <ex:p> "3" }
<ex:e1> { <ex:a> <ex:p> "1" . <ex:b> <ex:p> "2" }
{ <ex:e1> <ex:at> 1 . <ex:e2> <ex:at> 6 }
"""
QUERY = """PREFIX : <ex:> SELECT ?v FROM NAMED WINDOW :w ON :s [RANGE 5 STEP 5]
WHERE { WINDOW :w { ?e :p ?v } }"""


def seen(source, **options):
    graph = LiveGraph()
    query = graph.watch(QUERY)
    graph.stream("<ex:s>").feed(source, **options)
    graph.advance(10)
    return {r.time: sorted(row["v"].value for row in r) for r in query.results()}


EXPECTED = {5: ["1", "2"], 10: ["3"]}


def test_batches_and_tables():
    batch = ChangeBatch.of(ROWS)
    assert seen(batch) == EXPECTED
    assert seen([ChangeBatch.of(ROWS[:2]), ChangeBatch.of(ROWS[2:])]) == EXPECTED
    assert seen(batch.to_arrow()) == EXPECTED


def test_parquet(tmp_path):
    path = tmp_path / "events.parquet"
    pq.write_table(ChangeBatch.of(ROWS).to_arrow(), path)
    assert seen(path) == EXPECTED


def test_rdf_patch(tmp_path):
    path = tmp_path / "events.rdfp"
    path.write_text(PATCH, encoding="utf-8")
    assert seen(path) == EXPECTED


def test_trig_with_a_timestamp_per_graph(tmp_path):
    path = tmp_path / "events.trig"
    path.write_text(TRIG, encoding="utf-8")
    assert seen(path, timestamp="<ex:at>") == EXPECTED


def test_n_quads_with_date_times(tmp_path):
    path = tmp_path / "events.nq"
    kind = "<http://www.w3.org/2001/XMLSchema#dateTime>"
    at = "<http://www.w3.org/ns/prov#generatedAtTime>"
    path.write_text(
        '<ex:a> <ex:p> "1" <ex:e1> .\n<ex:b> <ex:p> "2" <ex:e1> .\n<ex:c> <ex:p> "3" <ex:e2> .\n'
        f'<ex:e1> {at} "1970-01-01T00:00:01Z"^^{kind} .\n'
        f'<ex:e2> {at} "1970-01-01T00:00:06.5Z"^^{kind} .\n',
        encoding="utf-8",
    )
    assert seen(path) == EXPECTED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<ex:e> { <ex:a> <ex:p> 1 }", "no graph has a timestamp"),
        ("<ex:e> { <ex:a> <ex:p> 1 } { <ex:f> <ex:at> 1 }", "graph <ex:e> has no timestamp"),
        ('<ex:e> { <ex:a> <ex:p> 1 } { <ex:e> <ex:at> "soon" }', "is no time"),
    ],
)
def test_a_graph_without_a_time_is_named(tmp_path, text, problem):
    path = tmp_path / "events.trig"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        seen(path, timestamp="<ex:at>")


def test_events_are_not_deleted():
    with pytest.raises(DataError, match="row 1 is a delete"):
        seen(ChangeBatch.of([ROWS[0], (1, 0, -1, "<ex:b>", "<ex:p>", '"2"', None)]))
