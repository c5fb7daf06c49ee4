"""Plans by counting: join trees, what is refused and why, explain, the planner's choice."""

import pytest
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError, UnsupportedError
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.choose import choose_plan
from graphtide.plan.cost import counted_keys
from graphtide.plan.counting import join_tree
from graphtide.plan.estimate import Estimator, PredicateStats, Statistics
from graphtide.plan.physical import Counting, nodes

PREFIX = "PREFIX : <http://example.org/> "


def tree(edges, keys=""):
    return join_tree([frozenset(map(Var, edge)) for edge in edges], frozenset(map(Var, keys)))


def test_a_path_has_its_root_in_the_middle():
    assert tree(["ab", "bc", "cd", "de", "ef"]) == (1, 2, -1, 2, 3)


def test_a_star_is_flat():
    assert tree(["xa", "xb", "xc"]) == (2, 2, -1)
    assert tree(["xa", "xb", "xc"], "x") == (-1, -1, -1)


def test_keys_are_the_root():
    assert tree(["ab", "bc", "cd"], "d") == (1, 2, -1)
    assert tree(["ab", "bc", "cd"], "bc") == (-1, -1, -1)


def test_products_meet_at_the_root():
    assert tree(["ab", "cd"]) == (-1, -1)


@pytest.mark.parametrize(
    ("edges", "keys"),
    [(["ab", "bc", "ca"], ""), (["ab", "bc", "cd"], "ad"), (["ab", "bc"], "ac")],
)
def test_cycles_have_no_tree(edges, keys):
    assert tree(edges, keys) is None


def test_long_paths_are_planned_in_no_time():
    edges = [frozenset((Var(f"v{i}"), Var(f"v{i + 1}"))) for i in range(400)]
    assert join_tree(edges, frozenset()).count(-1) == 1


ONE, FROM_FEW, TO_FEW = (1000, 1000, 1000), (1000, 10, 1000), (1000, 1000, 10)


@pytest.mark.parametrize(
    ("sizes", "parents"),
    [((TO_FEW, FROM_FEW, ONE), (-1, 0, 1)), ((ONE, TO_FEW, FROM_FEW), (1, 2, -1))],
)
def test_the_root_is_where_the_fewest_keys_are_touched(sizes, parents):
    """By hand: in the first case, ?b has 100 edges of :q. With the root at :q or :r, a changed edge
    of :p touches what is counted for all of them. With the root at :p, each change touches one key
    of each input. The second case is its mirror image.
    """
    iris = (NamedNode(f"http://example.org/{name}") for name in "pqr")
    each = (PredicateStats(*counts) for counts in sizes)
    known = Statistics(3000, dict(zip(iris, each, strict=True)))
    query = parse_query(PREFIX + "SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c . ?c :r ?d }")
    plan = choose_plan(query, known, strategy="counting")
    [node] = [each for each in nodes(plan.root) if isinstance(each, Counting)]
    assert node.parents == parents


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * { ?a :p ?b . ?b :q ?c }", "no aggregate"),
        ("SELECT (COUNT(*) AS ?n) { ?a :p ?b }", "needs a join"),
        ("SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :p ?a }", "form a cycle"),
        ("SELECT ?a ?c (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a ?c", r"\?a, \?c close"),
        ("SELECT (SAMPLE(?c) AS ?n) { ?a :p ?b . ?b :p ?c }", "SAMPLE needs the values"),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?a :p ?b . ?b :p ?c }", "DISTINCT"),
        ("SELECT (MAX(?c) AS ?n) (MIN(?a) AS ?m) { ?a :p ?b . ?b :p ?c }", r"\?a, \?c close"),
        ("SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c FILTER (?a < ?c) }", "several patterns"),
        ("SELECT (COUNT(*) AS ?n) { ?a :p ?b OPTIONAL { ?b :p ?c } }", "needs a join"),
        ("SELECT DISTINCT ?a ?b ?c { ?a :p ?b . ?b :p ?c }", "every variable"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_the_reason(query, reason):
    with pytest.raises(UnsupportedError, match=reason):
        LiveGraph().watch(PREFIX + query, strategy="counting")


def test_there_is_no_join_tree_to_pin():
    with pytest.raises(
        GraphtideError, match="'counting' has no join tree to pin: it joins nothing"
    ):
        LiveGraph().watch(
            PREFIX + "SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c }",
            strategy="counting",
            plan=(0, 1),
        )


def test_explain_shows_the_tree():
    graph = LiveGraph()
    query = graph.watch(
        PREFIX + "SELECT ?c (COUNT(*) AS ?n) { ?a :follows ?b . ?b :city ?c } GROUP BY ?c",
        strategy="counting",
    )
    text = query.explain()
    assert "strategy counting" in text
    assert "count by ?c: COUNT(*) as ?_:count1; inputs 1 to 2 by ?b, 2 to the groups by ?c" in text
    assert "stores counts by key (0 now) and groups (0 now)" in text


def fan(graph, size):
    with graph.transaction() as tx:
        for i in range(size):
            tx.insert(f"<ex:s{i}>", "<ex:p>", f"<ex:o{i % 5}>")


def test_keys_are_what_a_change_touches_and_not_the_rows():
    graph = LiveGraph()
    fan(graph, 2000)
    (node,) = (
        each
        for each in nodes(
            graph.watch(
                "SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?x . ?b <ex:p> ?x }", strategy="counting"
            ).plan.root
        )
        if isinstance(each, Counting)
    )
    statistics = Statistics(2000, {NamedNode("ex:p"): PredicateStats(2000, 2000, 5)})
    assert [tuple(each) for each in counted_keys(node, Estimator(statistics))] == [(2, 1), (1, 1)]


def test_the_planner_counts_where_a_search_would_find_many_rows():
    graph = LiveGraph()
    fan(graph, 2000)
    pairs = graph.watch("SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?x . ?b <ex:p> ?x }")
    assert pairs.strategy == "counting"
    assert "counting: " in pairs.explain(why=True)
    few = graph.watch("SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?x . ?a <ex:q> ?y . ?a <ex:r> ?z }")
    assert few.strategy != "counting"
