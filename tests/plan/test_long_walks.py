"""A pattern from which every search is long makes the planner choose a network."""

from pyoxigraph import NamedNode

from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.choose import choose_plan, pattern_costs
from graphtide.plan.estimate import PredicateStats, Statistics

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


def test_costs_are_told_for_each_pattern():
    plan = choose_plan(QUERY, statistics(spokes=5), strategy="search")
    costs = {str(p.predicate): cost for p, cost in pattern_costs(plan.root, statistics(5)).items()}
    assert set(costs) == {f"<http://example.org/{name}>" for name in ("spoke", "part", "closed")}
    assert all(cost >= 1 for cost in costs.values())


LONG = parse_query(
    """PREFIX : <http://example.org/>
    SELECT * { ?hub :exit ?door . ?hub :spoke ?end . ?end :next ?other . ?room :spoke2 ?other
               FILTER NOT EXISTS { ?room :entry ?door } }"""
)


def doors(spokes):
    """To close a door is to walk over all spokes of its hub, of which few end in its room."""
    ends = 100 * spokes
    named = {
        "exit": PredicateStats(100, 100, 100),
        "spoke": PredicateStats(ends, 100, ends),
        "next": PredicateStats(ends, ends, ends),
        "spoke2": PredicateStats(ends, 100, ends),
        "entry": PredicateStats(100, 100, 100),
    }
    known = {NamedNode(f"http://example.org/{name}"): each for name, each in named.items()}
    return Statistics(sum(each.count for each in named.values()), known)


def test_a_network_is_chosen_where_it_saves_one_long_walk():
    assert choose_plan(LONG, doors(spokes=10)).strategy == "search"
    assert choose_plan(LONG, doors(spokes=1000)).strategy == "rete"
