"""A pattern from which every search is long makes the planner choose a network."""

from pyoxigraph import NamedNode

from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.choose import choose_plan
from graphtide.plan.estimate import PredicateStats, Statistics
from graphtide.plan.walks import candidate_numbers, fewest, walks

QUERY = parse_query(
    """PREFIX : <http://example.org/>
    SELECT * { ?hub :spoke ?end . ?end :part ?part . FILTER NOT EXISTS { ?hub :closed ?part } }"""
)


def statistics(spokes):
    """Ten hubs with so many ends each; an end has two parts; ten pairs are closed."""

    def stats(count, subjects, objects):
        return PredicateStats(count, subjects, objects)

    named = {
        "spoke": stats(10 * spokes, 10, 10 * spokes),
        "part": stats(20 * spokes, 10 * spokes, 20 * spokes),
        "closed": stats(10, 10, 10),
    }
    known = {NamedNode(f"http://example.org/{name}"): each for name, each in named.items()}
    return Statistics(sum(each.count for each in named.values()), known)


def test_a_search_is_chosen_while_all_walks_are_short():
    assert choose_plan(QUERY, statistics(spokes=5)).strategy == "search"


def test_a_walk_has_a_cost_for_each_pattern():
    plan = choose_plan(QUERY, statistics(spokes=5), strategy="search")
    found = list(walks(plan.root, statistics(spokes=5)))
    assert [each.pattern.predicate.value[19:] for each in found] == ["spoke", "part", "closed"]
    assert [each.quads for each in found] == [50, 100, 10]
    assert all(each.touched >= 1 for each in found)


def test_the_patterns_of_a_check_begin_with_those_that_fan_out_least():
    """A tag has a hundred posts, a post one creator: from a tagged post to rows by the latter."""
    query = parse_query(
        """PREFIX : <http://example.org/> SELECT * { ?a :likes ?p
        FILTER NOT EXISTS { ?p :tag ?t . ?q :tag ?t . ?q :creator ?a } }"""
    )
    named = {"likes": (3000, 500, 1000), "tag": (2000, 1000, 20), "creator": (1000, 1000, 400)}
    known = {
        NamedNode(f"http://example.org/{name}"): PredicateStats(*counts)
        for name, counts in named.items()
    }
    plan = choose_plan(query, Statistics(6000, known), strategy="search")
    (check,) = plan.root.checks
    assert [(p.subject.name, p.object.name) for p in check.patterns] == [
        ("q", "a"),
        ("q", "t"),
        ("p", "t"),
    ]


def test_a_search_takes_the_shorter_of_two_walks():
    """At every second value one pattern has 100 candidates, at the others the second one has 10."""
    rare, often, seven = map(
        candidate_numbers, ([(0.0, 0.5), (100.0, 0.5)], [(10.0, 1.0)], [(7.0, 1.0)])
    )
    assert fewest({0: rare, 1: often}) == {0: 0, 1: 5}
    assert fewest({0: seven, 1: often}) == {0: 7}


def test_what_a_search_follows_next_depends_on_the_way_that_it_took():
    """By hand: of 100 quads of `p`, 50 end at a hub, which has 500 quads of `q`; others have one.

    Another way from each quad of `p` are 10 quads of `r`, whose subjects have one quad of `q`.
    From the hub, the search follows `r`, and from other quads `q`.
    """
    rare, few = candidate_numbers([(1.0, 0.5), (500.0, 0.5)]), candidate_numbers([(10.0, 1.0)])
    assert fewest({0: rare, 1: few}) == {0: 0.5, 1: 5.0}


def hub(name, count, degree):
    """Half of the quads end at a hub, the others at a hundred more objects."""
    known = PredicateStats(count, count, 101, {}, {iri("hub"): degree})
    return {iri(name): known}


def iri(name):
    return NamedNode(f"http://example.org/{name}")


def test_changes_at_hubs_are_frequent():
    """From an average change there are Σ d² / Σ d others at the same object: 500 * 500 / 1000…"""
    known = Statistics(1000, hub("likes", 1000, 500))
    query = parse_query(
        "SELECT * { ?a <http://example.org/likes> ?x . ?b <http://example.org/likes> ?x }"
    )
    found = next(walks(choose_plan(query, known, strategy="search").root, known))
    assert 250 < found.touched < 260  # … and 2.5 at others
    even = Statistics(1000, {iri("likes"): PredicateStats(1000, 1000, 101)})
    assert next(walks(choose_plan(query, even, strategy="search").root, even)).touched < 16


def test_a_pattern_that_closes_a_cycle_is_looked_up():
    known = Statistics(1000, {iri("p"): PredicateStats(1000, 100, 100)})
    query = parse_query("SELECT * { ?a <http://example.org/p> ?b . ?b <http://example.org/p> ?a }")
    found = next(walks(choose_plan(query, known, strategy="search").root, known))
    assert found.touched < 10
