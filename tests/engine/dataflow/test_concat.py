"""GROUP_CONCAT of large groups: the order of the texts, through divided and emptied blocks."""

from __future__ import annotations

from random import Random

from pyoxigraph import Literal

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Aggregate
from graphtide.engine.dataflow.aggregates import make_state
from graphtide.functions.comparison import total_order
from graphtide.rdf.dictionary import TermDictionary


def state_of(terms, *, distinct=False):
    return make_state(Aggregate(Var("x"), "GROUP_CONCAT", Var("v"), distinct, "|"), terms)


def test_texts_come_and_go_in_any_order():
    random, terms = Random(7), TermDictionary()
    state, unique = state_of(terms), state_of(terms, distinct=True)
    present: dict[Literal, int] = {}
    pool = [Literal(f"text {n}", language=tag) for n in range(700) for tag in (None, "en")]
    for step in range(4000):
        # Grow, then shrink to nothing.
        if step < 2000 or not present:
            term, count = random.choice(pool), random.randint(1, 2)
        else:
            term = random.choice([*present])
            count = -present[term]
        present[term] = present.get(term, 0) + count
        if not present[term]:
            del present[term]
        for each in (state, unique):
            each.add(terms.intern(term), count)
        if step % 97 == 0:
            order = sorted(present, key=total_order)
            texts = [term.value for term in order for _ in range(present[term])]
            assert state.result() == Literal("|".join(texts))
            assert unique.result() == Literal("|".join(term.value for term in order))
            assert sorted(state.held()) == sorted(terms.intern(term) for term in present)
