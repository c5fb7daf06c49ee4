"""`why` on random queries and graphs: what it says is true, by the reference evaluator."""

from __future__ import annotations

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from why.random_questions import Case, examples, has_paths, is_monotone, parsed

from graphtide.engine.explanations import StoreQuads
from graphtide.rdf.terms import parse_term
from graphtide.why.explain import RowQuestion
from oracles import generators

pytestmark = pytest.mark.slow

cases = generators.cases(streams=1)


def source_of(case):
    runtime = case.graph._runtime
    runtime.settle()
    return StoreQuads(runtime.store, runtime.terms)


@given(cases, st.sampled_from((None, "search", "rete")))
@examples(70)
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
@examples(70)
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


@given(cases, st.data())
@examples(50)
def test_the_counter_change_of_why_not_makes_the_row_appear(drawn, data):
    case = Case(drawn.query, drawn.streams[0])
    answer = case.answer()
    rows = [*answer, *case.answer(case.before)]
    assume(rows and case.query.variables)
    terms = sorted({term for values in rows for term in values if term is not None}, key=str)
    for _ in range(4):
        values = list(data.draw(st.sampled_from(rows)))
        at = data.draw(st.integers(0, len(values) - 1))
        values[at] = data.draw(st.sampled_from((*terms, None)))
        row = case.row(values)
        explanation = case.query.why_not(row)
        if answer[tuple(values)]:
            assert explanation.first_failure() is None
            continue
        assert explanation.first_failure() is not None
        assert {fact.quad for fact in explanation.facts()} <= case.quads
        quads = set(case.quads)
        for diff, fact in explanation.changes:
            (quads.add if diff > 0 else quads.discard)(fact.quad)
        if explanation.changes:
            assert case.answer(quads)[tuple(values)] > 0, explanation
        event("named" if explanation.changes else "none found")


IRIS = [f"<http://example.org/{name}>" for name in "abcd"]
PATTERNS = ["?x :p ?y", "?y :q ?z", "?x :q ?y", "?y :p ?x", "?z :p ?x", "?x :p :a", "?z ?x ?y"]
PARTS = [
    "FILTER NOT EXISTS { ?x :q ?y }",
    "FILTER EXISTS { ?y :r ?n . ?n :p ?x }",
    "MINUS { ?x :r ?y }",
    "OPTIONAL { ?x :r ?o }",
    "?x :r+ ?y .",
    "{ ?x :q ?y } UNION { ?y :r ?x }",
    "{ SELECT DISTINCT ?x { ?x :r ?m } }",
]


@given(
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(PARTS), max_size=1),
    st.lists(st.tuples(*(st.sampled_from(part) for part in (IRIS, "pqr", IRIS))), max_size=12),
    st.tuples(st.sampled_from(IRIS), st.sampled_from(IRIS)),
)
@examples(150)
def test_where_quads_alone_decide_a_counter_change_is_always_found(patterns, parts, quads, ends):
    body = " . ".join(patterns) + " . " + " ".join(parts)
    text = f"PREFIX : <http://example.org/> SELECT ?x ?y {{ {body} }}"
    bound = " ".join(patterns)
    assume("?x" in bound and "?y" in bound)
    assume(not ("?x :q ?y" in patterns and "FILTER NOT EXISTS { ?x :q ?y }" in parts))
    case = Case(text, [])
    case.apply(
        [(1, (*map(parse_term, (s, f"<http://example.org/{p}>", o)), None)) for s, p, o in quads]
    )
    row = dict(zip("xy", map(parse_term, ends), strict=True))
    explanation = case.query.why_not(row)
    if case.answer()[tuple(row.values())]:
        assert not explanation.changes
        return
    changed = set(case.quads)
    for diff, fact in explanation.changes:
        (changed.add if diff > 0 else changed.discard)(fact.quad)
    assert case.answer(changed)[tuple(row.values())] > 0, explanation
