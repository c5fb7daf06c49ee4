"""Random trees with paths, groups and slices, over the trees of `random_nodes`."""

from __future__ import annotations

from algebra.build_nodes import term
from algebra.random_nodes import VARIABLES, bgps, conditions, larger, nodes
from hypothesis import strategies as st

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Aggregate, Filter, Group, OrderKey, Path, Slice
from graphtide.algebra.paths import Alternative, Inverse, Link, OneOrMore, ZeroOrMore, ZeroOrOne

P, Q = Link(term("p")), Link(term("q"))
ends = st.sampled_from((*VARIABLES, term("x")))
paths = st.builds(
    Path,
    ends,
    st.sampled_from(
        (ZeroOrOne(P), ZeroOrMore(P), OneOrMore(P), OneOrMore(Alternative((P, Inverse(Q)))))
    ),
    ends,
)
columns = st.sets(st.sampled_from(VARIABLES), max_size=2).map(
    lambda found: tuple(sorted(found, key=str))
)
aggregates = st.builds(
    lambda function, argument, distinct: (Aggregate(Var("n"), function, argument, distinct),),
    st.sampled_from(("COUNT", "SUM", "MIN", "MAX", "SAMPLE")),
    st.sampled_from(VARIABLES),
    st.booleans(),
) | st.just((Aggregate(Var("n"), "COUNT", None),))
keys = st.lists(st.builds(OrderKey, st.sampled_from(VARIABLES), st.booleans()), max_size=2)


def modified(children):
    return st.one_of(
        st.builds(Group, children, columns, aggregates),
        st.builds(Group, children, columns, aggregates),
        st.builds(
            Slice,
            children,
            columns,
            keys.map(tuple),
            st.booleans(),
            st.sampled_from((0, 0, 1)),
            st.sampled_from((None, None, 1, 2)),
        ),
    )


trees = st.recursive(
    st.one_of(bgps, paths, modified(nodes), modified(paths)),
    lambda inner: st.one_of(larger(inner), modified(inner)),
    max_leaves=3,
)
filtered_trees = st.builds(Filter, conditions(bgps), trees)
