"""Counting in the kernel: against the exact weights, and when these take over."""

from __future__ import annotations

from collections import Counter

import pytest
from engine.against_reference import PREFIX, iri, number, total, unhurried
from hypothesis import given
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Aggregate
from graphtide.engine.dataflow.counted import KernelCounts
from graphtide.engine.dataflow.counting import CountedGroups
from graphtide.kernel import JIT
from graphtide.kernel.batch import make_batch
from graphtide.plan.counting import counting
from graphtide.plan.physical import Constant
from graphtide.rdf.dictionary import TermDictionary

pytestmark = pytest.mark.skipif(not JIT, reason="without Numba there are exact weights only")

A, B, C, D = (Var(name) for name in "abcd")
TREES = (
    ((A, B), (B, C)),
    ((A, B), (B, C), (C, D)),
    ((A, B), (B, C), (B, D)),
    ((A, B), (C, D)),
)
AGGREGATES = (
    Aggregate(Var("rows"), "COUNT", None),
    Aggregate(Var("bound"), "COUNT", A),
    Aggregate(Var("sum"), "SUM", A),
    Aggregate(Var("mean"), "AVG", A),
    Aggregate(Var("none"), "SUM", Var("nowhere")),
)
INTEGERS = [str(number(str(n))) for n in (0, 1, -7, 999_999_999_999_999)]
NO_NUMBERS = ['"x"', "<ex:a>"]
OTHERS = [str(number("0.5", "decimal")), str(number("1e0", "double")), str(number("9" * 30))]
DIFFS = (1, 1, 1, -1, -1, 2)
HUGE = (1, -1, 1 << 30, -(1 << 30), (1 << 31) - 1)


def operators(schemas, keys, aggregates):
    """The kernel's and the exact operator of a tree, and ids of values."""
    terms = TermDictionary()
    # A is not certain, so that it may be unbound, and so are its sums.
    inputs = [Constant((), schema, frozenset(schema) - {A}) for schema in schemas]
    node = counting(inputs, (), keys, aggregates, always=not keys)
    return KernelCounts(node, terms), CountedGroups(node, terms), terms


def net(batch):
    """The changes of each transaction."""
    found = Counter()
    for tx, diff, *row in batch.tolist():
        found[tx, *row] += diff
    return {line: n for line, n in found.items() if n}


@st.composite
def runs(draw, values, diffs):
    """A tree, its keys and aggregates, and batches of its inputs."""
    schemas = draw(st.sampled_from(TREES))
    keys = draw(st.sampled_from(((), (A,), (B,), (B, Var("nowhere")))))
    many = draw(st.integers(1, len(AGGREGATES)))
    rows = st.tuples(
        st.integers(0, 2),
        st.sampled_from(diffs),
        st.integers(0, len(values)),
        st.integers(1, 3),
    )
    batches = st.lists(rows, max_size=5).map(lambda lines: sorted(lines, key=lambda r: r[0]))
    steps = draw(st.lists(st.tuples(*[batches] * len(schemas)), min_size=1, max_size=5))
    return schemas, keys, AGGREGATES[:many], steps


def run(case, values):
    """Both operators put out the same; the kernel's one, at the end."""
    schemas, keys, aggregates, steps = case
    kernel, exact, terms = operators(schemas, keys, aggregates)
    ids = [0, *(terms.intern(text) for text in values)]
    for batches in steps:
        given_batches = [
            # Only the first column may be unbound, or have a value.
            make_batch(
                [
                    (tx, diff, ids[s] if schema[0] == A else 1 + s % 3, o)
                    for tx, diff, s, o in lines
                ],
                2,
            )
            for schema, lines in zip(schemas, batches, strict=True)
        ]
        assert net(kernel.step(*given_batches)) == net(exact.step(*given_batches))
        assert kernel.sizes() == exact.sizes()
        held = (
            {int(id_) for ids_ in each.held_ids() for id_ in ids_.flat} for each in (kernel, exact)
        )
        mine, others = held
        assert mine - {0} == others - {0}
    return kernel


def is_exact(kernel):
    """Whether the exact operator has taken over."""
    return kernel._exact is not None


@unhurried
@given(runs(INTEGERS + NO_NUMBERS, DIFFS))
def test_integers_are_summed_in_the_kernel(case):
    assert not is_exact(run(case, INTEGERS + NO_NUMBERS))


@unhurried
@given(runs(INTEGERS + OTHERS, DIFFS))
def test_other_numbers_are_summed_exactly(case):
    run(case, INTEGERS + OTHERS)


@unhurried
@given(runs(INTEGERS + NO_NUMBERS, HUGE))
def test_numbers_that_do_not_fit_are_counted_exactly(case):
    run(case, INTEGERS + NO_NUMBERS)


def test_an_overflow_inside_a_batch_takes_nothing_back_that_was_put_out():
    kernel, exact, _ = operators(TREES[1], (), AGGREGATES[:1])
    rows = [(tx, 1 << 30, 1, 1) for tx in range(4)]
    batches = [make_batch(rows, 2)] * 3
    before = [make_batch([(0, 5, 1, 1)], 2)] * 3
    for given_batches in (before, batches, before):
        assert net(kernel.step(*given_batches)) == net(exact.step(*given_batches))
    assert is_exact(kernel)


def test_a_mean_of_very_many_rows_is_exact():
    """2^61 rows, half of them with 1 and half with 0: ten times their count has over 64 bits."""
    kernel, exact, terms = operators(TREES[0], (), AGGREGATES[:4])
    one, zero = (terms.intern(str(number(n))) for n in "10")
    left = make_batch([(0, 1 << 30, one, 1), (0, 1 << 30, zero, 1)], 2)
    batches = left, make_batch([(0, 1 << 30, 1, 1)], 2)
    found = net(kernel.step(*batches))
    assert found == net(exact.step(*batches))
    assert number("0.5", "decimal") in map(terms.decode, next(iter(found))[1:])


def test_a_product_that_overflows_in_a_transaction_keeps_the_deltas_exact():
    graph = LiveGraph()
    body = " . ".join(f"?s{i} :p ?x" for i in range(7))
    query = graph.watch(f"{PREFIX}SELECT (COUNT(*) AS ?n) {{ {body} }}", strategy="counting")
    answer = total(query.delta())
    for size in (10, 300, 1000, 1001):  # 300^7 is less than 2^58, 1000^7 is more
        with graph.transaction() as tx:
            for i in range(size):
                tx.insert(iri(f"s{i}"), iri("p"), iri("o"))
        answer.update(total(query.delta()))
        assert +answer == Counter([(number(str(size**7)),)])
    with graph.transaction() as tx:
        for i in range(999):
            tx.delete(iri(f"s{i}"), iri("p"), iri("o"))
    answer.update(total(query.delta()))
    assert +answer == Counter([(number(str(2**7)),)])
