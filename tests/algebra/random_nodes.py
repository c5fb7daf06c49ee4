"""Random algebra trees over few variables, with many columns that may be unbound."""

from __future__ import annotations

from algebra.build_nodes import bgp, call, term
from hypothesis import strategies as st

from graphtide.algebra.expressions import Call, Exists, Var
from graphtide.algebra.nodes import (
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Join,
    LeftJoin,
    Minus,
    Project,
    Union,
    Values,
)
from graphtide.algebra.variables import schema

WORDS = ("?a", "?b", "?c")
VARIABLES = tuple(Var(word[1:]) for word in WORDS)
TERMS = tuple(term(word) for word in ("x", "y", "1", "2"))

patterns = st.builds(
    lambda s, p, o, g: f"{s} {p} {o}{g}",
    st.sampled_from((*WORDS, "x")),
    st.sampled_from(("p", "p", "q", "?c")),
    st.sampled_from((*WORDS, "x", "1")),
    st.sampled_from(("", "", "", " ?g", " g")),
)
bgps = st.lists(patterns, max_size=2).map(lambda found: bgp(*found))
inline = st.sets(st.sampled_from(VARIABLES), min_size=1, max_size=2).flatmap(
    lambda found: st.builds(
        Values,
        st.just(tuple(sorted(found, key=str))),
        st.lists(st.tuples(*(st.sampled_from((None, *TERMS)) for _ in found)), max_size=3).map(
            tuple
        ),
    )
)
simple = st.sampled_from(
    [call(f"{a} {op} {b}") for op in ("=", "!=", "<") for a in WORDS for b in (*WORDS, "1", "x")]
    + [call(f"bound {word}") for word in (*WORDS, "?g")]
    + [call("bound ?n"), call("?n = ?a"), call("?n = 1")] * 4
)


def conditions(nodes):
    exists = st.builds(Exists, nodes)
    return st.recursive(
        st.one_of(simple, simple, exists),
        lambda inner: st.one_of(
            st.builds(lambda a: Call("!", (a,)), inner),
            st.builds(
                lambda name, a, b: Call(name, (a, b)),
                st.sampled_from(("&&", "&&", "||")),
                inner,
                inner,
            ),
        ),
        max_leaves=3,
    )


def tree(nodes):
    """Larger nodes whose meaning inside EXISTS no two readers of the recommendation dispute."""
    return st.one_of(
        st.builds(Filter, conditions(bgps), nodes),
        st.builds(Filter, conditions(bgps), nodes),
        st.builds(Join, nodes, nodes),
        st.builds(LeftJoin, nodes, nodes, st.none() | simple),
        st.builds(Union, nodes, nodes),
        st.builds(bound_anew, nodes, simple | st.sampled_from(VARIABLES)),
        st.builds(Distinct, nodes),
    )


def larger(nodes):
    return st.one_of(
        tree(nodes),
        tree(nodes),
        tree(nodes),
        st.builds(Minus, nodes, nodes),
        st.builds(
            lambda child, kept: Project(child, tuple(sorted(kept, key=str))),
            nodes,
            st.sets(st.sampled_from(VARIABLES)),
        ),
    )


def bound_anew(child, expression):
    """BIND gives a value to a variable that its group does not have."""
    new = Var("n")
    while new in schema(child):
        new = Var(new.name + "n")
    return Extend(child, new, expression)


leaves = st.one_of(bgps, bgps, inline, st.just(GraphNames(Var("g"))))
nodes = st.recursive(leaves, larger, max_leaves=4)
filtered = st.builds(Filter, conditions(bgps), nodes)
within_exists = st.recursive(st.one_of(bgps, bgps, inline), tree, max_leaves=4)
existing = st.builds(
    Filter,
    st.builds(Exists, within_exists),
    st.recursive(st.one_of(bgps, inline), tree, max_leaves=3),
)

quads = st.tuples(
    st.sampled_from((term("x"), term("y"))),
    st.sampled_from((term("p"), term("q"))),
    st.sampled_from(TERMS),
    st.sampled_from((None, None, term("g"))),
)
graphs = st.lists(quads, unique=True, max_size=7)
