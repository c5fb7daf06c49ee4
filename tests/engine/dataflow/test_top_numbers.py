"""ORDER BY numbers with LIMIT in the kernel, against the exact order of Python objects."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from engine.against_reference import number

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, OrderKey, Slice
from graphtide.engine.dataflow import top_numbers
from graphtide.engine.dataflow.top_numbers import TopNumbers, make_top
from graphtide.engine.dataflow.top_rows import TopRows
from graphtide.kernel import JIT
from graphtide.kernel.batch import make_batch
from graphtide.plan import make
from graphtide.plan.physical import Constant
from graphtide.rdf.dictionary import TermDictionary

A, V, W = Var("a"), Var("v"), Var("w")
CHILD = Constant((), (A, V, W), frozenset())
ORDERS = {
    "ascending": (OrderKey(V),),
    "descending": (OrderKey(V, descending=True),),
    "two keys": (OrderKey(V), OrderKey(W, descending=True)),
    "two keys, descending": (OrderKey(V, descending=True), OrderKey(A)),
}
SHOWN = {"all": (A, V, W), "without its key": (A,)}

pytestmark = pytest.mark.skipif(not JIT, reason="the kernel is compiled")


def total(batch):
    """The net change of each row in each transaction."""
    found = Counter()
    for tx, diff, *row in batch.tolist():
        found[tx, *row] += diff
    return {key: diff for key, diff in found.items() if diff}


def operators(keys, shown, limit, offset):
    node = make.top(CHILD, Slice(Bgp(()), shown, keys, offset=offset, limit=limit))
    terms = TermDictionary()
    return terms, TopNumbers(node, terms), TopRows(node, terms)


def small_parts(monkeypatch, spare):
    """Let rows be read and cut often."""
    monkeypatch.setattr(top_numbers, "SPARE", spare)
    monkeypatch.setattr(top_numbers, "MANY", 30)


@pytest.mark.parametrize("values", [4, 200], ids=["ties", "few ties"])
@pytest.mark.parametrize(("limit", "offset"), [(1, 0), (3, 2), (10, 0), (0, 1)])
@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("order", ORDERS)
def test_equals_the_exact_order(monkeypatch, order, shown, limit, offset, values):
    small_parts(monkeypatch, spare=2)
    terms, top, exact = operators(ORDERS[order], SHOWN[shown], limit, offset)
    chance = random.Random(f"{order} {shown} {limit} {offset} {values}")
    names = [terms.encode(f"<ex:n{n}>") for n in range(9)]
    texts = [str(number(str(n - 50))) for n in range(values)]
    texts += [str(number(text, "double")) for text in ("INF", "-INF", "0.5e0")]
    numbers = [terms.encode(text) for text in texts]
    chance.shuffle(numbers)
    present, tx = [], 0
    for step in range(50):
        lines = []
        for _ in range(chance.choice((1, 1, 4, 60))):
            tx += chance.choice((0, 1)) if step % 3 else 0
            if present and chance.random() < (0.8 if step % 20 > 12 else 0.4):
                row, diff = present.pop(chance.randrange(len(present))), -1
            else:
                row = chance.choice(names), chance.choice(numbers), chance.choice([0, *names])
                diff = 1
                present.append(row)
            lines.append((tx, diff, *row))
        tx += 1
        batch = make_batch(lines, 3)
        assert total(top.step(batch)) == total(exact.step(batch))
        assert top.in_order() == exact.in_order()
        assert top.sizes() == {"rows": len(set(present))}
        assert {id_ for part in top.held_ids() for id_ in part.reshape(-1).tolist()} - {0} == {
            id_ for row in present for id_ in row if id_
        }
    assert top._exact is None


@pytest.mark.parametrize("other", ["1.0", "NaN", "text", "unbound"])
def test_the_exact_order_takes_over(monkeypatch, other):
    small_parts(monkeypatch, spare=1)
    terms, top, exact = operators(ORDERS["descending"], SHOWN["all"], 3, 0)
    name = terms.encode("<ex:n>")
    rows = [(0, 1 + n % 2, name, terms.encode(str(number(str(n)))), 0) for n in range(40)]
    texts = {
        "1.0": str(number("1.0", "decimal")),
        "NaN": str(number("NaN", "double")),
        "text": '"b"',
    }
    strange = terms.encode(texts[other]) if other in texts else 0
    last = [(1, 1, name, strange, 0), (2, -1, *rows[-1][2:]), (3, -1, name, strange, 0)]
    for lines in (rows, last, rows[:5]):
        batch = make_batch(lines, 3)
        assert total(top.step(batch)) == total(exact.step(batch))
        assert top.in_order() == exact.in_order()
    assert top._exact is not None


def test_many_rows_of_one_number_are_read_at_once(monkeypatch):
    """More than there is room for at first; and they are not dropped again by the next row."""
    small_parts(monkeypatch, spare=1)
    terms, top, exact = operators(ORDERS["ascending"], SHOWN["all"], 2, 0)
    one, two = (terms.encode(str(number(text))) for text in "12")
    first = [(0, 1, terms.encode(f"<ex:n{n}>"), one, 0) for n in range(4)]
    tied = [(0, 1, terms.encode(f"<ex:m{n}>"), two, 0) for n in range(500)]
    for lines in (
        first + tied,
        [(1, -1, *line[2:]) for line in first[:3]],
        [(2, 1, *line[2:]) for line in first[:2]],
        [(3, -1, *line[2:]) for line in first[:2] + first[3:] + tied[5:]],
    ):
        batch = make_batch(lines, 3)
        assert total(top.step(batch)) == total(exact.step(batch))
        assert top.in_order() == exact.in_order()


def test_ids_of_other_terms_are_ordered_anew():
    terms, top, exact = operators(ORDERS["ascending"], SHOWN["all"], 2, 0)
    name = terms.encode("<ex:n>")
    one, two = (terms.encode(str(number(text))) for text in "12")
    for value, diff in ((one, 1), (two, 1), (one, -1)):
        batch = make_batch([(0, diff, name, value, 0)], 3)
        assert total(top.step(batch)) == total(exact.step(batch))
    terms.generation += 1
    batch = make_batch([(0, 1, name, terms.encode(str(number("1.0", "decimal"))), 0)], 3)
    assert total(top.step(batch)) == total(exact.step(batch))
    assert top._exact is None  # 1 is not there any more


@pytest.mark.parametrize(
    "changed",
    [{"limit": None}, {"keys": ()}, {"distinct": True}, {"per": (A,)}],
    ids=lambda changed: next(iter(changed)),
)
def test_what_the_kernel_does_not_do(changed):
    parts = {"keys": (OrderKey(V),), "limit": 3, **changed}
    node = make.top(CHILD, Slice(Bgp(()), (A, V), **parts))
    assert isinstance(make_top(node, TermDictionary()), TopRows)
