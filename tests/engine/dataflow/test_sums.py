"""Counts and sums in the kernel: against the exact states, and when these take over."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from engine.against_reference import check, iri, number, streams, unhurried
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Aggregate
from graphtide.engine.dataflow.aggregates import GroupRows
from graphtide.engine.dataflow.sums import SummedGroups
from graphtide.kernel import JIT, groups
from graphtide.kernel.batch import make_batch
from graphtide.kernel.ordered import LIVE
from graphtide.plan import make
from graphtide.plan.physical import Constant
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.kinds import XSD

pytestmark = pytest.mark.skipif(not JIT, reason="without Numba there are exact states only")

K, V, W = Var("k"), Var("v"), Var("w")
AGGREGATES = (
    Aggregate(Var("rows"), "COUNT", None),
    Aggregate(Var("n"), "COUNT", V),
    Aggregate(Var("sum"), "SUM", V),
    Aggregate(Var("avg"), "AVG", V),
    Aggregate(Var("none"), "SUM", Var("nowhere")),
)
ORDERED = (
    Aggregate(Var("least"), "MIN", V),
    Aggregate(Var("greatest"), "MAX", V),
    Aggregate(Var("some"), "SAMPLE", V),
    Aggregate(Var("different"), "COUNT", V, distinct=True),
    Aggregate(Var("none"), "MAX", Var("nowhere")),
    Aggregate(Var("n"), "COUNT", V),
)
INTEGERS = [str(number(str(n))) for n in (0, 1, -7, 12, 999_999_999_999_999)]
NO_NUMBERS = ['"x"', "<ex:a>", '"x"@en']
OTHERS = [
    str(number("0.5", "decimal")),
    str(number("1e0", "double")),
    str(number("INF", "double")),
    str(number("3", "int")),
    str(number("9" * 30)),
    str(number("9" * 15 + "000")),  # which is no float64
    str(number("x")),
]


def operators(keys, aggregates=AGGREGATES):
    terms = TermDictionary()
    node = make.group(Constant((), (K, V), frozenset()), keys, aggregates)
    return terms, SummedGroups(node, terms), GroupRows(node, terms)


def total(batch):
    found: Counter = Counter()
    for tx, diff, *row in batch.tolist():
        found[tx, *row] += diff
    return {row: diff for row, diff in found.items() if diff}


@pytest.mark.parametrize("keys", [(K,), ()], ids=["keys", "no keys"])
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_kernel_equals_exact_states(seed, other, keys):
    """Random rows in random transactions; with `other`, numbers that the kernel cannot add up."""
    terms, summed, exact = operators(keys)
    chance = random.Random(seed)
    own = [terms.encode(f"<ex:k{n}>") for n in range(4)]
    values = [0, *map(terms.encode, INTEGERS + NO_NUMBERS)]
    others = list(map(terms.encode, OTHERS))
    present: list[tuple[int, int]] = []
    tx = 0
    for step in range(40):
        lines = []
        for _ in range(chance.choice((1, 1, 3, 30))):
            tx += chance.choice((0, 1))
            late = other and step > 20
            if present and chance.random() < 0.5:
                row, diff = present.pop(chance.randrange(len(present))), -1
            else:
                row, diff = (chance.choice(own), chance.choice(values + others * late)), 1
                present.append(row)
            lines.append((tx, diff, *row))
        tx += 1
        batch = make_batch(lines, 2)
        assert total(summed.step(batch)) == total(exact.step(batch))
        assert summed.sizes() == exact.sizes()
    assert (summed._exact is not None) == other


MOMENTS = [
    f'"2026-11-{day}T10:00:00{zone}"^^<{XSD}dateTime>' for day in ("01", "17") for zone in ("", "Z")
]
SCALES = {
    "integers": ([str(number(str(n))) for n in range(-20, 40)], ['"x"', str(number("05"))]),
    "numbers": (
        [str(number(f"{n}.5", "decimal")) for n in range(9)]
        + [str(number(f"{n}", "double")) for n in (*range(9), "INF", "-INF", "1e300")],
        [str(number("NaN", "double")), str(number("-0", "double")), MOMENTS[0]],
    ),
    "moments": (MOMENTS[:1] + MOMENTS[3:], [MOMENTS[1], str(number("1"))]),
}


@pytest.mark.parametrize("keys", [(K,), ()], ids=["keys", "no keys"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(6))
def test_ordered_values_equal_exact_states(seed, scale, keys):
    """MIN, MAX, SAMPLE and COUNT(DISTINCT); sometimes values come that the kernel cannot order."""
    terms, summed, exact = operators(keys, ORDERED)
    chance = random.Random(seed)
    own = [terms.encode(f"<ex:k{n}>") for n in range(4)]
    values, others = ([terms.encode(text) for text in texts] for texts in SCALES[scale])
    values += [0] * (seed % 2)
    other = seed > 2
    present: list[tuple[int, int]] = []
    tx = 0
    for step in range(60):
        lines = []
        shrinking = step % 20 > 12
        for _ in range(chance.choice((1, 1, 3, 50))):
            tx += chance.choice((0, 1))
            if present and chance.random() < (0.9 if shrinking else 0.4):
                row, diff = present.pop(chance.randrange(len(present))), -1
            else:
                late = others * (other and step > 30)
                row, diff = (chance.choice(own), chance.choice(values + late)), 1
                present.append(row)
            lines.append((tx, diff, *row))
        tx += 1
        batch = make_batch(lines, 2)
        assert total(summed.step(batch)) == total(exact.step(batch))
        assert summed.sizes() == exact.sizes()
        if summed._exact is None:
            held = 2 * len({(key if keys else 0, value) for key, value in present if value})
            assert summed._groups.values.arrays.meta[LIVE] == held
            ids = set(summed._groups.ordered_ids().tolist())
            assert ids == {value for _, value in present if value}
    assert (summed._exact is not None) == other


def test_many_ordered_values_stay_in_order():
    """Of both trees: that of numbers, and that of different ids, which are in the same order."""
    terms, summed, _ = operators((K,), ORDERED)
    key = terms.encode("<ex:k>")
    ids = [terms.encode(str(number(str(n)))) for n in range(3000)]
    for diff, some in ((1, ids), (-1, ids[::3]), (1, ids[::6])):
        summed.step(make_batch([(0, diff, key, value) for value in some], 2))
    left = [n for n in range(3000) if n % 3 or not n % 6]
    assert terms.numbers[summed._groups.ordered_ids()].tolist() == left + left


def test_ids_of_other_terms_are_ordered_anew():
    """What is no longer held may have been freed: its id and its number are free to be taken."""
    terms, summed, exact = operators((K,), ORDERED)
    key, one, two = (
        terms.encode("<ex:k>"),
        terms.encode(str(number("1"))),
        terms.encode(INTEGERS[3]),
    )
    for value, diff in ((one, 1), (two, 1), (one, -1)):
        batch = make_batch([(0, diff, key, value)], 2)
        assert total(summed.step(batch)) == total(exact.step(batch))
    terms.generation += 1
    again = terms.encode(str(number("1.0", "decimal")))
    batch = make_batch([(0, 1, key, again)], 2)
    assert total(summed.step(batch)) == total(exact.step(batch))
    assert summed._exact is None  # 1 is not there any more
    batch = make_batch([(0, 1, key, one)], 2)
    assert total(summed.step(batch)) == total(exact.step(batch))
    assert summed._exact is not None


@pytest.mark.parametrize("keys", [(), (K,), (K, V), (K, V, W)], ids=len)
def test_large_batches_with_few_groups(monkeypatch, keys):
    """Against `Counter`; there is room for the groups of a large batch, not for all of its rows."""
    monkeypatch.setattr(groups, "MANY_ROWS", 50)
    terms = TermDictionary()
    count = (Aggregate(Var("rows"), "COUNT", None),)
    summed = SummedGroups(make.group(Constant((), (K, V, W), frozenset()), keys, count), terms)
    ids = [terms.encode(f"<ex:k{n}>") for n in range(40)]
    chance, present, shown = random.Random(1), [], Counter()
    for step in range(30):
        lines = []
        for _ in range(chance.choice((1, 20, 400, 2000))):
            if present and chance.random() < 0.6:
                row, diff = present.pop(chance.randrange(len(present))), -1
            else:  # first few keys, then more and more
                row, diff = tuple(chance.choices(ids[: 2 + step], k=3)), 1
                present.append(row)
            lines.append((step, diff, *row))
        for _, diff, *row in summed.step(make_batch(lines, 3)).tolist():
            shown[tuple(row)] += diff
        expected = Counter(row[: len(keys)] for row in present)
        now = {row[:-1]: terms.decode(row[-1]).value for row, n in shown.items() if n}
        assert now == {key: str(n) for key, n in expected.items()} or not present
        assert all(n in (0, 1) for n in shown.values())
    if len(keys) < 2:
        assert summed.nbytes < 20_000


def test_a_sum_that_might_overflow_is_taken_exactly():
    terms, summed, exact = operators((K,))
    key, large = terms.encode("<ex:k>"), terms.encode(INTEGERS[-1])
    for count in (1000, 10_000, -10_999):
        batch = make_batch([(0, count, key, large)], 2)
        assert total(summed.step(batch)) == total(exact.step(batch))
    assert summed._exact is not None


def test_only_rows_that_are_put_out_become_literals():
    terms, summed, _ = operators((K,))
    key, one = terms.encode("<ex:k>"), terms.encode(str(number("1")))
    before = len(terms)
    summed.step(make_batch([(0, 1, key, one)] * 1000, 2))
    assert len(terms) - before <= 3  # 1000 is the count and the sum; 1.0 the mean; 0


def test_groups_that_go_leave_nothing():
    terms, summed, _ = operators((K,))
    keys = [terms.encode(f"<ex:k{n}>") for n in range(100)]
    one = terms.encode(str(number("1")))
    for diff in (1, -1):
        batch = make_batch([(n, diff, key, one) for n, key in enumerate(keys)], 2)
        assert len(summed.step(batch)) == 100
    assert summed.sizes() == {"groups": 0}
    assert not any(ids.any() for ids in summed.held_ids())


VALUES = [*map(number, ("1", "2", "-3")), iri("x"), Literal("text"), number("0.5", "decimal")]
changes = streams([iri(n) for n in "ab"], [iri(n) for n in "pq"], VALUES)
calls = st.sampled_from(
    (
        *("COUNT(*)", "COUNT(?v)", "SUM(?v)", "AVG(?v)", "COUNT(?w)", "SUM(?w)", "MIN(?v)"),
        *("MAX(?v)", "MAX(?w)", "COUNT(DISTINCT ?v)", "COUNT(DISTINCT ?w)"),
    )
)


@unhurried
@given(calls, calls, changes)
def test_against_the_reference(first, second, stream):
    body = "{ ?s :p ?v OPTIONAL { ?s :q ?w } }"
    check(f"SELECT ?s ({first} AS ?x) ({second} AS ?y) {body} GROUP BY ?s", stream)
    check(f"SELECT ({first} AS ?x) ({second} AS ?y) {body}", stream)


def test_terms_of_freed_ids_are_looked_at_again():
    """The id of an integer may be given to another term: its class is not remembered."""
    terms, summed, exact = operators((K,))
    key, value = terms.encode("<ex:k>"), terms.intern(str(number("1")))
    for diff in (1, -1):
        batch = make_batch([(0, diff, key, value)], 2)
        assert total(summed.step(batch)) == total(exact.step(batch))
    terms.reclaim()
    assert terms.intern('"x"') == value
    batch = make_batch([(0, 1, key, value)], 2)
    ((row, _),) = total(summed.step(batch)).items()
    assert {(row, 1)} == set(total(exact.step(batch)).items())
    assert row[-2:] == (0, 0)  # no mean, no sum of a variable that is nowhere


def test_large_integers_that_are_no_floats_are_added_up_exactly():
    graph = LiveGraph()
    query = graph.watch("SELECT (SUM(?v) AS ?x) { ?s <ex:p> ?v }")
    graph.insert(iri("a"), iri("p"), number("9" * 15 + "000"))
    graph.insert(iri("b"), iri("p"), number("1"))
    assert query.table().to_pylist() == [{"x": 10**18 - 999}]


def test_a_graph_goes_on_when_decimals_come():
    graph = LiveGraph()
    query = graph.watch("SELECT ?s (SUM(?v) AS ?x) { ?s <ex:p> ?v } GROUP BY ?s")
    for value in (number("1"), number("0.5", "decimal"), number("2")):
        graph.insert(iri("a"), iri("p"), value)
    graph.delete(iri("a"), iri("p"), number("0.5", "decimal"))
    shown: Counter = Counter()
    for change in query.rows():
        shown[change.row["x"]] += change.diff
    assert +shown == {number("3"): 1}
