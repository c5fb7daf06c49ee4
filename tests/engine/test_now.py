"""NOW() in standing queries: at every tick the answer of a query with the time written out."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import graphtide as gt
from graphtide.errors import UnsupportedError
from graphtide.spark.job import partition_query

PREFIX = "PREFIX : <ex:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
DUE, OTHER = "<ex:due>", "<ex:other>"


def moment(second: float, zone: str = "Z") -> str:
    clock = f"00:{int(second) // 60:02}:{second % 60:06.3f}"
    return f'"1970-01-01T{clock}{zone}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def at_time(graph: gt.LiveGraph, text: str, tick_ms: int) -> Counter:
    """The oracle: the answer of the query in which the time is a constant, evaluated once."""
    now = graph.clock * tick_ms / 1000
    table = graph.query(PREFIX + text.replace("NOW()", moment(now)), terms=True)
    return Counter(tuple(row.values()) for row in table.to_pylist())


CONDITIONS = {
    "past": "SELECT ?x { ?x :due ?d FILTER (?d < NOW()) }",
    "not yet": "SELECT ?x { ?x :due ?d FILTER (NOW() <= ?d) }",
    "exactly now": "SELECT ?x { ?x :due ?d FILTER (?d = NOW()) }",
    "at any other time": "SELECT ?x { ?x :due ?d FILTER (?d != NOW()) }",
    "an hour ago": 'SELECT ?x { ?x :due ?d FILTER (?d < NOW() - "PT5S"^^xsd:dayTimeDuration) }',
    "soon": 'SELECT ?x { ?x :due ?d FILTER (?d >= NOW() + "PT7.5S"^^xsd:dayTimeDuration) }',
    "in between": "SELECT ?x ?y { ?x :due ?d . ?y :due ?e FILTER (?d < NOW() && NOW() < ?e) }",
    "either": "SELECT ?x { ?x :due ?d FILTER (!(?d < NOW()) || ?d < NOW()) }",
    "without": "SELECT ?x { ?x :due ?d FILTER NOT EXISTS { ?x :other ?e FILTER (?e < NOW()) } }",
    "optional": "SELECT ?x ?e { ?x :due ?d OPTIONAL { ?x :other ?e FILTER (?e > NOW()) } }",
    "how many": "SELECT (COUNT(*) AS ?n) { ?x :due ?d FILTER (?d < NOW()) }",
    "one after the other": (
        "SELECT ?x ?e { { SELECT * { ?x :due ?d FILTER (?d < NOW()) } } ?x :other ?e"
        " FILTER (IF(BOUND(?e), ?e > NOW(), false)) }"
    ),
}


@pytest.mark.parametrize("tick_ms", [1000, 700])
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.slow
def test_the_answer_is_that_of_every_tick(name, tick_ms):
    text, random = CONDITIONS[name], Random(name)
    graph = gt.LiveGraph(tick_ms=tick_ms)
    watch = graph.watch(PREFIX + text)
    values = [moment(s) for s in (0, 3, 7, 7.5, 12, 20)]
    values += ['"1970-01-01"', "<ex:a>", moment(9, "")]
    for _ in range(40):
        for _ in range(random.randrange(3)):
            change = random.choice((graph.insert, graph.insert, graph.delete))
            change(
                f"<ex:{random.choice('ab')}>", random.choice((DUE, OTHER)), random.choice(values)
            )
        graph.advance(graph.clock + random.randrange(3))
        total: Counter = Counter()
        for row in watch.rows():
            total[tuple(row.row.values())] += row.diff
        assert Counter(map(_texts, (+total).elements())) == Counter(
            map(_texts, at_time(graph, text, tick_ms).elements())
        )
        assert watch.count() == total.total()


def _texts(row):
    return tuple(None if value is None else str(value) for value in row)


def test_rows_turn_at_their_time_however_far_the_clock_jumps():
    graph = gt.LiveGraph()
    late = graph.watch(PREFIX + "SELECT ?x { ?x :due ?d FILTER (?d < NOW()) }")
    for second in (50, 10, 30):
        graph.insert(f"<ex:x{second}>", DUE, moment(second))
    graph.advance(1000)
    found = [(row.time, str(row.row["x"])) for delta in late.deltas() for row in delta]
    assert found == [(11, "<ex:x10>"), (31, "<ex:x30>"), (51, "<ex:x50>")]


def test_batches_give_the_deltas_of_single_changes():
    rows = [
        (second, second, 1, f"<ex:x{second % 4}>", DUE, moment(second + 5), None)
        for second in range(20)
    ]
    text = PREFIX + "SELECT ?x { ?x :due ?d FILTER (?d < NOW()) }"
    found = []
    for size in (1, 20):
        graph = gt.LiveGraph()
        watch = graph.watch(text)
        for start in range(0, 20, size):
            graph.apply(gt.ChangeBatch.of(rows[start : start + size]))
        graph.advance(100)
        found.append(
            [(row.time, str(row.row["x"]), row.diff) for delta in watch.deltas() for row in delta]
        )
    assert found[0] == found[1]
    assert len(found[0]) == 20


def test_callbacks_and_queries_that_come_late():
    graph = gt.LiveGraph()
    heard = []
    text = PREFIX + "SELECT ?x { ?x :due ?d FILTER (?d <= NOW()) }"
    first = graph.watch(text)
    first.on_appear(lambda row: heard.append((row.time, str(row.row["x"]))))
    graph.insert("<ex:a>", DUE, moment(5))
    graph.advance(5)
    assert heard == [(5, "<ex:a>")]
    second = graph.watch(text)
    assert second.count() == 1
    graph.insert("<ex:b>", DUE, moment(8))
    first.close()
    graph.advance(9)
    assert second.count() == 2


def test_after_an_error_the_rows_turn_when_the_clock_moves_next():
    graph = gt.LiveGraph()
    pairs = graph.watch(PREFIX + "SELECT * { ?x :due ?d FILTER (?d < NOW()) ?y :other ?z }")
    with graph.transaction() as tx:
        for number in range(40):
            tx.insert(f"<ex:x{number}>", DUE, moment(5))
            tx.insert(f"<ex:y{number}>", OTHER, number)
    pairs.delta()
    (operator,) = graph._runtime.queries.plans.network.timed.values()
    turn = type(operator).turn

    def fails(self):
        turn(self)
        raise ZeroDivisionError

    type(operator).turn = fails
    try:
        with pytest.raises(ZeroDivisionError):
            graph.advance(10)
    finally:
        type(operator).turn = turn
    assert pairs.count() == 0
    graph.advance(11)
    assert pairs.count() == 1600
    assert sum(row.diff for row in pairs.delta()) == 1600


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (NOW() AS ?n) {}",
        "SELECT ?x { ?x :due ?d BIND (?d < NOW() AS ?late) }",
        "SELECT ?x { ?x :due ?d FILTER (YEAR(NOW()) > 2020) }",
        "SELECT ?x { ?x :due ?d FILTER (NOW() - ?d > ?e) }",
        'SELECT ?x { ?x :due ?d FILTER (?d < NOW() + "P1M"^^xsd:yearMonthDuration) }',
        "SELECT ?x { ?x :due ?d FILTER (NOW() < NOW()) }",
        "SELECT ?x { ?x :due ?d } ORDER BY NOW() LIMIT 1",
    ],
)
def test_other_uses_are_refused(text):
    with pytest.raises(UnsupportedError, match="NOW in this place") as refused:
        gt.LiveGraph().watch(PREFIX + text)
    assert "compare with it in a FILTER" in (refused.value.hint or "")


def test_spark_refuses_it():
    with pytest.raises(UnsupportedError, match="no common clock"):
        partition_query("q", PREFIX + CONDITIONS["past"], 2, None)


def test_a_query_that_is_evaluated_once_has_the_time_of_the_machine():
    graph = gt.LiveGraph()
    graph.insert("<ex:a>", DUE, moment(5))
    assert graph.query(PREFIX + CONDITIONS["past"]).num_rows == 1
