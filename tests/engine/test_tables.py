"""Answers as Arrow tables and data frames: values where a column has one XSD type, else terms."""

# ruff: noqa: DTZ001 - datetimes without a time zone are among the values

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphtide import ChangeBatch, LiveGraph
from graphtide.errors import GraphtideError, TermError

ALL = "SELECT ?o { ?s <ex:p> ?o }"
XSD = "http://www.w3.org/2001/XMLSchema#"


def table_of(*objects, terms=False):
    graph = LiveGraph()
    query = graph.watch(ALL)
    for n, value in enumerate(objects):
        graph.insert(f"<ex:s{n}>", "<ex:p>", value)
    asked = graph.query(ALL, terms=terms)
    table = query.table(terms=terms)
    assert asked.schema == table.schema
    assert sorted(map(str, asked["o"].to_pylist())) == sorted(map(str, table["o"].to_pylist()))
    return table


@pytest.mark.parametrize(
    ("objects", "kind", "values"),
    [
        ([1, -7], pa.int64(), {1, -7}),
        ([0.5, float("inf")], pa.float64(), {0.5, float("inf")}),
        ([True, False], pa.bool_(), {True, False}),
        (['"a"', '"b \\"c\\" \\n\\\\"'], pa.string(), {"a", 'b "c" \n\\'}),
        ([date(2026, 2, 3)], pa.date32(), {date(2026, 2, 3)}),
        ([datetime(2026, 2, 3, 4, 5)], pa.timestamp("us"), {datetime(2026, 2, 3, 4, 5)}),
        (
            [datetime(2026, 2, 3, 4, 5, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
            {datetime(2026, 2, 3, 4, 5, tzinfo=UTC)},
        ),
        ([f'"+5"^^<{XSD}integer>', f'"-0"^^<{XSD}integer>'], pa.int64(), {5, 0}),
        ([], pa.string(), set()),
    ],
)
def test_a_column_of_one_xsd_type_has_its_arrow_type(objects, kind, values):
    column = table_of(*objects)["o"]
    assert column.type == kind
    assert set(column.to_pylist()) == values


@pytest.mark.parametrize(
    "objects",
    [
        [1, 0.5],
        [1, '"1"'],
        ["<ex:a>", '"a"'],
        ['"a"', '"a"@en'],
        [f'"9223372036854775808"^^<{XSD}integer>'],
        [f'"often"^^<{XSD}integer>'],
        [f'"2026-13-01"^^<{XSD}date>'],
        [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)],
        [f'"a"^^<{XSD}anyURI>'],
    ],
    ids=str,
)
def test_other_columns_are_texts_of_terms(objects):
    assert table_of(*objects)["o"].to_pylist() == table_of(*objects, terms=True)["o"].to_pylist()
    assert table_of(*objects)["o"].type == pa.string()


def test_unbound_is_null():
    graph = LiveGraph()
    graph.insert("<ex:a>", "<ex:p>", 1)
    graph.insert("<ex:b>", "<ex:q>", 2)
    query = graph.watch("SELECT ?x ?y { { ?s <ex:p> ?x } UNION { ?s <ex:q> ?y } }")
    assert query.table().schema.types == [pa.int64(), pa.int64()]
    rows = sorted(query.table().to_pylist(), key=str)
    assert rows == [{"x": 1, "y": None}, {"x": None, "y": 2}]


@given(st.text())
def test_strings_come_back_as_they_went_in(text):
    graph = LiveGraph()
    from pyoxigraph import Literal

    graph.insert("<ex:a>", "<ex:p>", Literal(text))
    assert graph.query(ALL)["o"].to_pylist() == [text]


def test_objects_of_python_are_literals_of_their_xsd_types():
    graph = LiveGraph()
    for value in (Decimal("1.50"), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 600_000)):
        graph.insert("<ex:a>", "<ex:p>", value)
    assert {str(o) for _, _, o, _ in graph.quads()} == {
        f'"1.50"^^<{XSD}decimal>',
        f'"2026-01-02"^^<{XSD}date>',
        f'"2026-01-02T03:04:05.600000"^^<{XSD}dateTime>',
    }
    assert ("<ex:a>", "<ex:p>", Decimal("1.50")) in graph
    with pytest.raises(TermError, match="not an RDF term"):
        graph.insert("<ex:a>", "<ex:p>", Decimal("NaN"))


def test_a_data_frame_has_the_types_of_the_table():
    graph = LiveGraph()
    query = graph.watch(ALL)
    graph.insert("<ex:a>", "<ex:p>", 7)
    frame = query.to_pandas()
    assert frame["o"].tolist() == [7] and frame["o"].dtype == "int64"


def test_notebooks_show_escaped_tables():
    graph = LiveGraph()
    query = graph.watch(ALL, name="<i>")
    graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
    assert "<td>&lt;ex:b&gt;</td>" in query._repr_html_()
    assert "<td>+1</td><td>&lt;ex:b&gt;</td>" in query.delta()._repr_html_()
    assert "1 quads at time 0" in graph._repr_html_() and "&lt;i&gt;" in graph._repr_html_()
    for n in range(30):
        graph.insert("<ex:a>", "<ex:p>", n)
    assert "20 of 31 rows" in query._repr_html_()


def test_deltas_are_one_per_transaction():
    graph = LiveGraph()
    query = graph.watch(ALL)
    with graph.transaction(time=3) as tx:
        tx.insert("<ex:a>", "<ex:p>", 1)
        tx.insert("<ex:a>", "<ex:p>", 2)
    graph.delete("<ex:a>", "<ex:p>", 1, time=5)
    found = [(d.time, d.tx, len(d.added()), len(d.removed())) for d in query.deltas()]
    assert found == [(3, 0, 2, 0), (5, 1, 0, 1)]


def test_callbacks_get_whole_deltas():
    graph = LiveGraph()
    query = graph.watch(ALL)
    seen = []
    query.on_delta(lambda delta: seen.append((delta.time, [row.diff for row in delta])))
    with graph.transaction(time=1) as tx:
        tx.insert("<ex:a>", "<ex:p>", 1)
        tx.insert("<ex:a>", "<ex:p>", 2)
    graph.delete("<ex:a>", "<ex:p>", 1, time=2)
    graph.insert("<ex:a>", "<ex:q>", 1, time=3)
    assert seen == [(1, [1, 1]), (2, [-1])]


def test_deltas_can_be_awaited():
    async def follow():
        graph = LiveGraph()
        query = graph.watch(ALL)
        found = []

        async def read():
            async for delta in query:
                found.append((delta.time, len(delta)))
                if len(found) == 2:
                    return

        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        graph.insert("<ex:a>", "<ex:p>", 1, time=1)
        graph.insert("<ex:a>", "<ex:p>", 2, time=2)
        await asyncio.wait_for(task, 5)
        return found

    assert asyncio.run(follow()) == [(1, 1), (2, 1)]


def reading(graph, during):
    """What a reader gets that begins before something happens, and then reads to the end."""

    async def follow():
        query, found = graph.watch(ALL), []

        async def read():
            async for delta in query:
                found.append(delta.time)  # noqa: PERF401 - what came before an error counts

        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        during(query)
        try:
            await asyncio.wait_for(task, 10)
        except GraphtideError as error:
            return found, error
        return found, None

    return asyncio.run(follow())


def test_awaited_deltas_end_with_the_query():
    graph = LiveGraph()

    def during(query):
        graph.insert("<ex:a>", "<ex:p>", 1, time=1)
        query.close()

    assert reading(graph, during) == ([1], None)
    graph.insert("<ex:a>", "<ex:p>", 2, time=2)


def test_a_reader_that_is_far_behind_gets_an_error():
    graph = LiveGraph()

    def during(_):
        changes = [(0, n, 1, "<ex:a>", "<ex:p>", f'"{n}"', None) for n in range(11_000)]
        graph.apply(ChangeBatch.of(changes))

    found, error = reading(graph, during)
    assert len(found) == 10_000
    assert "behind" in str(error)


def test_a_reader_whose_loop_has_ended_stops_nobody():
    graph = LiveGraph()
    query = graph.watch(ALL)

    async def begin():
        reader = aiter(query)
        task = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        graph.insert("<ex:a>", "<ex:p>", 1)
        await task
        return reader

    reader = asyncio.run(begin())
    graph.insert("<ex:a>", "<ex:p>", 2)
    assert query.count() == 2
    query.close()
    del reader


ILL_TYPED = {
    "boolean": ["TRUE", "True", "tRuE", "yes", " true", ""],
    "integer": ["0x10", "1_0", " 1", "1.0", "1e3", ""],
    "double": ["inf", "Infinity", "nan", "0x1p3", " 1.5", "1e"],
    "dateTime": [
        "2020-01-01", "2020-01-01 10:00:00", "2020-01-01T10", "2020-01-01T10:00",
        "2020-01-01T10:00:00+15:00", "2020-01-01T10:00:00+01", "2020-01-01T10:00:00+0100",
    ],
    "date": ["2020-1-1", "20200101", "2020-02-30"],
}  # fmt: skip
"""Forms that are none of https://www.w3.org/TR/xmlschema11-2/, though other readers take some."""


@pytest.mark.parametrize(("name", "form"), [(n, f) for n, own in ILL_TYPED.items() for f in own])
def test_an_ill_typed_literal_has_no_value_in_a_table(name, form):
    graph = LiveGraph()
    text = f'"{form}"^^<http://www.w3.org/2001/XMLSchema#{name}>'
    graph.insert("<ex:a>", "<ex:p>", text)
    watch = graph.watch("SELECT ?o { ?s ?p ?o }")
    for table in (watch.table(), graph.query("SELECT ?o { ?s ?p ?o }")):
        assert table.to_pylist() == [{"o": text}]
