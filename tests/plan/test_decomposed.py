"""Decomposed plans: orders of instantiation, the planner's choice, explain, sharing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.choose import choose_plan
from graphtide.plan.decomposition import MAX_EXACT, instantiation_order
from graphtide.plan.estimate import Statistics
from graphtide.plan.explain import explain

PREFIX = "PREFIX : <http://example.org/> "
P = NamedNode("http://example.org/p")


def parsed(where):
    return parse_query(f"{PREFIX} SELECT * {{ {where} }}")


def order(*edges):
    """The order for patterns `xy`, `x` (with a constant): variables, and those above."""
    patterns = [TriplePattern(*ends(edge)) for edge in edges]
    found = instantiation_order(patterns)
    name = lambda each: "".join(v.name for v in each.variables)  # noqa: E731
    return {name(each): name(found[each.above]) if each.above >= 0 else "" for each in found}


def ends(edge):
    s, *o = (Var(name) for name in edge)
    return s, P, o[0] if o else P


def test_a_path_begins_in_the_middle():
    assert order("ab", "bc") == {"b": "", "a": "b", "c": "b"}
    assert order("ab", "bc", "cd", "de")["c"] == ""


def test_the_centre_of_a_star_comes_first():
    assert order("xa", "xb", "xc", "x") == {"x": "", "a": "x", "b": "x", "c": "x"}


def test_variables_of_the_same_patterns_come_together():
    assert order("ab", "ab") == {"ab": ""}


def test_parts_without_common_variables_stand_side_by_side():
    assert order("x", "y", "ab") == {"x": "", "y": "", "ab": ""}


def dependences(found, edges):
    """For each place, the variables above on which it depends."""
    needs = [set() for _ in found]
    places = {v.name: at for at, each in enumerate(found) for v in each.variables}
    for at in reversed(range(len(found))):
        own = {v.name for v in found[at].variables}
        for edge in edges:
            if max(places[name] for name in edge) == at:
                needs[at] |= set(edge)
        needs[at] -= own
        if needs[at]:
            needs[max(places[name] for name in needs[at])] |= needs[at]
    return needs


@pytest.mark.parametrize("size", [3, MAX_EXACT, MAX_EXACT + 1, 25, 40])
def test_in_a_chain_every_variable_depends_on_one_other(size):
    """Nothing is ever kept for two ends that only other variables connect."""
    found = instantiation_order(
        [TriplePattern(Var(f"v{i}"), P, Var(f"v{i + 1}")) for i in range(size)]
    )
    assert len(found) == size + 1
    places = {each.variables[0].name: at for at, each in enumerate(found)}
    for at, each in enumerate(found):
        number = int(each.variables[0].name[1:])
        above = [n for n in (number - 1, number + 1) if places.get(f"v{n}", at) < at]
        assert len(above) == (each.above >= 0)


edges = st.lists(st.sampled_from([a + b for a in "abcde" for b in "abcde"]), min_size=1, max_size=8)


@given(edges)
def test_the_variable_above_is_the_last_one_that_a_part_depends_on(edges):
    edges = [edge if edge[0] != edge[1] else edge[0] for edge in edges]
    found = instantiation_order([TriplePattern(*ends(edge)) for edge in edges])
    assert sorted(v.name for each in found for v in each.variables) == sorted(set("".join(edges)))
    places = {v.name: at for at, each in enumerate(found) for v in each.variables}
    for each, needs in zip(found, dependences(found, edges), strict=True):
        assert each.above == max((places[name] for name in needs), default=-1)


# --- the planner ---


@pytest.mark.parametrize(
    ("where", "strategy"),
    [
        ("?x :p :a . ?y :p :b . ?z :p :c", "decomposed"),
        ("?x :p :a . ?x :q :a . ?y :p :b . ?z :p :c . :a :q :a", "decomposed"),
        ("?x :p :a . ?y :p :b", "search"),
        ("?x :p :a . ?x :q :a", "search"),
        (":a :p :a . :b :p :b . :c :p :c . :d :p :d", "search"),
        ("?x :p ?x2 . ?y :p :b . ?z :p :c", "search"),
        ("?x :p :a . ?y :p :b . ?z :p :c OPTIONAL { ?x :q ?u }", "search"),
    ],
)
def test_only_products_of_three_stars_are_decomposed_by_themselves(where, strategy):
    assert choose_plan(parsed(where), Statistics()).strategy == strategy


def test_a_decomposed_plan_has_no_join_tree_to_pin():
    with pytest.raises(GraphtideError, match="no join tree to pin"):
        choose_plan(
            parsed("?x :p ?y . ?y :q ?z"), Statistics(), strategy="decomposed", pinned=(0, 1)
        )


@pytest.mark.slow
def test_a_product_of_stars_keeps_the_parts_and_not_their_products():
    where = "?x :p :a . ?y :p :b . ?z :p :c"
    graph = LiveGraph()
    watches = {s: graph.watch(parsed(where), strategy=s) for s in ("search", "decomposed")}
    iri = "<http://example.org/{}>".format
    for i in range(30):
        for o in "ab":
            graph.insert(iri(f"n{i}"), iri("p"), iri(o))
    entries = {name: watch.cache_size().entries for name, watch in watches.items()}
    assert entries["decomposed"] == 60
    assert entries["search"] >= 900


def test_explain_tells_the_parts_and_the_order():
    plan = build_plan(parsed(":a :p :b . ?x :p :a . ?a :p ?b . ?b :q ?c"), "decomposed")
    assert explain(plan).splitlines()[2] == (
        "└─ [1] decompose ground { :a :p :b } × star ?x { ?x :p :a }"
        " × connected ?b then (?a, ?c) { ?a :p ?b . ?b :q ?c }"
    )
    assert "ground" in explain(plan, "mermaid") and "ground" in explain(plan, "svg")


def test_queries_that_differ_in_names_share_their_instances():
    graph = LiveGraph()
    graph.watch(parsed("?a :p ?b . ?b :q ?c"), strategy="decomposed")
    before = len(graph._runtime.queries.plans.network)
    graph.watch(parsed("?x :p ?y . ?y :q ?z"), strategy="decomposed")
    assert len(graph._runtime.queries.plans.network) == before
