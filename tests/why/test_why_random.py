"""`why` on random queries and graphs: what it says is true, by the reference evaluator."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from why.random_questions import Case, examples, has_paths, is_monotone, parsed

from graphtide.engine.explanations import StoreQuads
from graphtide.testing import generators
from graphtide.why.explain import RowQuestion

pytestmark = pytest.mark.slow

cases = generators.cases(streams=1)


def source_of(case):
    runtime = case.graph._runtime
    runtime.settle()
    return StoreQuads(runtime.store, runtime.terms)


@given(cases, st.sampled_from((None, "search", "rete")))
@examples(100)
def test_every_row_has_as_many_derivations_as_copies_and_other_rows_have_none(drawn, strategy):
    case = Case(drawn.query, drawn.streams[0], strategy=strategy)
    answer = case.answer()
    source = source_of(case)
    for values, copies in answer.items():
        row = case.row(values)
        assert RowQuestion(case.select, row).copies(source) == copies
        assert case.query.why(row).derivations
    terms = sorted({term for values in answer for term in values if term is not None}, key=str)
    for values in list(answer)[:5]:
        for at in range(len(values)):
            for term in (*terms[:3], None):
                other = (*values[:at], term, *values[at + 1 :])
                found = RowQuestion(case.select, case.row(other)).copies(source)
                assert found == answer[other], other


@given(cases, st.data())
@examples(60)
def test_of_a_monotone_query_the_quads_alone_give_the_row_and_without_them_it_goes(drawn, data):
    assume(is_monotone(parsed(drawn.query)))
    case = Case(drawn.query, drawn.streams[0])
    for values in list(case.answer())[:10]:
        one = {fact.quad for fact in case.query.why(case.row(values)).facts()}
        assert one <= case.quads
        assert case.answer(one)[values] > 0, values
        if has_paths(case.select):  # of a path, one way is shown, and not all
            continue
        explanation = case.query.why(case.row(values), all=True, limit=500)
        each = [[f.quad for s in way.walk() for f in s.facts] for way in explanation.derivations]
        if not explanation.notes and all(each):  # a row of VALUES alone never goes
            lost = {data.draw(st.sampled_from(quads)) for quads in each}
            assert case.answer(case.quads - lost)[values] == 0, values


@given(cases)
@examples(100)
def test_a_delta_names_changes_that_alone_move_the_row_and_all_of_which_are_needed(drawn):
    case = Case(drawn.query, drawn.streams[0])
    before, after = case.answer(case.before), case.answer()
    for moved in list(case.query.delta())[:10]:
        values = tuple(moved.row.values())
        assert after[values] - before[values] == moved.diff
        explanation = moved.why()
        changes = explanation.changes
        assert changes, moved

        def count(some, values=values):
            quads = set(case.before)
            for diff, fact in some:
                (quads.add if diff > 0 else quads.discard)(fact.quad)
            return case.answer(quads)[values]

        assert (count(changes) - before[values]) * moved.diff > 0
        for at in range(len(changes)):
            rest = (*changes[:at], *changes[at + 1 :])
            assert (count(rest) - before[values]) * moved.diff <= 0
        present = case.quads if moved.diff > 0 else case.before
        assert {fact.quad for fact in explanation.facts()} <= present
