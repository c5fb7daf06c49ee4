"""Small worlds to explore: links that are missing, that go both ways, and that go round."""

import pyoxigraph as ox
from hypothesis import strategies as st
from repair.oracle import Fix, Goal, World

import graphtide as gt

QUERIES = {
    "Missing": "SELECT ?a ?b { ?a :p ?b FILTER NOT EXISTS { ?a :q ?b } }",
    "Both": "SELECT ?a ?b { ?a :q ?b . ?b :q ?a FILTER (?a != ?b) }",
    "Loop": "SELECT ?a { ?a :q ?a }",
    "Links": "SELECT ?a ?b { ?a :q ?b }",
}
FIXES = {
    "Link": Fix("Missing", insert="?a :q ?b"),
    "Cut": Fix("Missing", delete="?a :p ?b", cost=2),
    "Turn": Fix("Both", delete="?a :q ?b", insert="?b :r ?a"),
    "Unloop": Fix("Loop", delete="?a :q ?a"),
}


def hard():
    """Nothing missing, no loop, and at most one pair (two rows) that goes both ways."""
    goals = {"Whole": Goal("Missing"), "Few": Goal("Both", 2), "Straight": Goal("Loop")}
    fixes = {name: Fix(f.query, f.delete, f.insert) for name, f in FIXES.items()}
    return World(QUERIES, goals, fixes)


def soft():
    """Nothing missing; links cost something, and so do fixes."""
    goals = {"Whole": Goal("Missing"), "Short": Goal("Links", None, 1.5)}
    return World(QUERIES, goals, dict(FIXES))


def hopeless():
    """A loop must go, but no fix takes it away."""
    fixes = {name: FIXES[name] for name in ("Link", "Turn")}
    return World(QUERIES, {"Straight": Goal("Loop")}, fixes)


def journey():
    """From a to d, by steps that are slow and cheap or fast and dear."""
    queries = {
        "Away": "SELECT ?x { :me :at ?x FILTER (?x != :d) }",
        "Slow": "SELECT ?x ?y { :me :at ?x . ?x :slow ?y }",
        "Fast": "SELECT ?x ?y { :me :at ?x . ?x :fast ?y }",
    }
    step = {"delete": ":me :at ?x", "insert": ":me :at ?y"}
    fixes = {"Walk": Fix("Slow", **step, cost=1), "Fly": Fix("Fast", **step, cost=2.5)}
    return World(queries, {"There": Goal("Away")}, fixes)


def iri(name):
    return f"<http://example.org/{name}>"


triples = st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), st.sampled_from("abc"))
graphs = st.sets(triples, max_size=5)
steps = st.tuples(
    st.sampled_from("abcde"), st.sampled_from(["slow", "fast"]), st.sampled_from("bcde")
)
maps = st.sets(steps, max_size=12).map(lambda found: {("me", "at", "a"), *found})


def live_graph(triples):
    graph = gt.LiveGraph()
    for s, p, o in sorted(triples):
        graph.insert(iri(s), iri(p), iri(o))
    return graph


def quads_of(graph):
    """The quads of a live graph as pyoxigraph's; the terms are of the same classes."""
    return frozenset(ox.Quad(s, p, o, g or ox.DefaultGraph()) for s, p, o, g in graph.quads())


def quads_of_runtime(runtime):
    """The quads of a runtime without a facade, as pyoxigraph's."""
    runtime.flush()
    decode = runtime.terms.decode
    return frozenset(
        ox.Quad(decode(s), decode(p), decode(o), decode(g) if g else ox.DefaultGraph())
        for s, p, o, g in runtime.quad_ids().tolist()
    )
