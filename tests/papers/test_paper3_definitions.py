"""Paper 3's definitions 1 to 12 and its two figures, over our triple patterns.

The figures themselves are not part of the text: the queries here have the variables, partitions and
parts that Examples 1 and 2 tell of them.
"""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode
from support.decomposition import (
    central_nodes,
    compatible,
    distance,
    is_connected_variable,
    is_decomposition,
    is_embedding,
    is_partial_embedding,
    is_simple_star,
    is_star,
    is_triple_partition,
    is_var_centric,
    is_var_connected,
    joined,
    query_class,
    query_nodes,
    shortest_path,
)

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.plan.decomposition import (
    decompose,
    is_loosely_connected,
    query_variables,
    variable_partition,
)

X, Y, Z, W = (Var(name) for name in "XYZW")
A, B, C, D = (NamedNode(f"http://example.org/{name}") for name in "abcd")
P, Q, R = (NamedNode(f"http://example.org/{name}") for name in "pqr")


def pattern(s, p, o):
    return TriplePattern(s, p, o)


# Figure 1: ?X, ?Y and ?Z hang together; ?W touches constants only; one triple has no variable.
FIGURE_1 = [
    pattern(X, P, Y),
    pattern(Y, Q, Z),
    pattern(Z, P, A),
    pattern(A, R, W),
    pattern(W, Q, B),
    pattern(A, P, B),
]

# Figure 2: constants between all variables.
FIGURE_2 = [
    pattern(X, P, A),
    pattern(A, Q, Y),
    pattern(Y, P, B),
    pattern(B, R, Z),
    pattern(X, R, C),
    pattern(A, P, B),
]


def test_definition_1_segments_cover_the_whole_and_may_overlap():
    one, two, three = FIGURE_1[:3]
    assert is_decomposition([{one, two}, {two, three}], {one, two, three})
    assert not is_triple_partition([{one, two}, {two, three}], {one, two, three})
    assert is_triple_partition([{one}, {two, three}], {one, two, three})
    assert not is_decomposition([{one}], {one, two})
    assert not is_decomposition([{one, two, three}], {one, two}), "a segment is a part of the whole"
    assert not is_decomposition([], set()), "there is at least one segment"


DATA = {(A, P, B), (B, Q, C), (A, P, D)}
PATH = [pattern(X, P, Y), pattern(Y, Q, C)]


def test_definition_2_an_embedding_is_total_and_keeps_constants():
    assert is_embedding({X: A, Y: B, C: C}, PATH, DATA)
    assert not is_embedding({X: A, Y: D, C: C}, PATH, DATA), "no triple (d q c)"
    assert not is_embedding({X: A, Y: B, C: D}, PATH, DATA), "a constant is itself"
    assert not is_embedding({X: A, Y: B}, PATH, DATA), "not total"


def test_definition_3_a_partial_embedding_answers_for_what_it_maps():
    assert is_partial_embedding({X: A, Y: D}, PATH, DATA), "(y q c) is not mapped in full"
    assert not is_partial_embedding({X: B, Y: A}, PATH, DATA)
    assert is_partial_embedding({}, PATH, DATA)


def test_definitions_4_and_5_compatible_mappings_are_joined():
    one, other = {X: A, Y: B}, {Y: B, C: C}
    assert compatible(one, other)
    assert is_embedding(joined(one, other), PATH, DATA)
    assert not compatible(one, {Y: D})
    assert compatible({X: A}, {Y: B}), "nothing in common"


def test_definition_6_stars():
    around_x = [pattern(X, P, A), pattern(B, Q, X), pattern(X, R, Y)]
    assert central_nodes(around_x) == (X,)
    assert is_star(around_x) and is_var_centric(around_x) and not is_simple_star(around_x)
    assert is_simple_star(around_x[:2])
    around_a = [pattern(A, P, X), pattern(Y, P, A)]
    assert central_nodes(around_a) == (A,)
    assert is_star(around_a) and not is_var_centric(around_a) and not is_simple_star(around_a)
    assert not is_star([pattern(X, P, A), pattern(A, Q, Y), pattern(Y, P, B)])


def test_a_var_centric_query_that_is_not_simple_is_var_connected():
    assert is_var_connected([pattern(X, P, A), pattern(B, Q, X), pattern(X, R, Y)])


def test_definition_7_paths_go_against_the_direction_too():
    query = [pattern(X, P, A), pattern(Y, P, A), pattern(Y, Q, Z)]
    assert shortest_path(query, X, Z) == tuple(query)
    assert distance(query, X, A) == 1
    assert distance(query, X, Z) == 3
    assert distance([*query, pattern(Z, R, X)], X, Z) == 1
    assert distance([*query, pattern(W, R, W)], X, W) is None


def test_definition_8_var_connected():
    assert is_var_connected([pattern(X, P, Y), pattern(Z, P, Y)])
    assert not is_var_connected([pattern(X, P, A), pattern(A, P, Y)]), "only over a constant"
    assert not is_var_connected([pattern(X, P, A)]), "one variable"


def test_example_1_the_partition_and_decomposition_of_figure_1():
    assert query_variables(FIGURE_1) == (X, Y, Z, W)
    assert variable_partition(FIGURE_1) == (frozenset({X, Y, Z}), frozenset({W}))
    parts = decompose(FIGURE_1)
    assert parts.open == (tuple(FIGURE_1[:3]), tuple(FIGURE_1[3:5]))
    assert parts.ground == (FIGURE_1[5],)
    assert is_connected_variable(parts.open[0]) and is_simple_star(parts.open[1])
    assert is_triple_partition([*map(set, parts.open), set(parts.ground)], FIGURE_1)
    assert query_class(FIGURE_1) == "mixed"


def test_example_2_the_partition_and_decomposition_of_figure_2():
    assert variable_partition(FIGURE_2) == (frozenset({X}), frozenset({Y}), frozenset({Z}))
    parts = decompose(FIGURE_2)
    assert [set(part) for part in parts.open] == [
        {FIGURE_2[0], FIGURE_2[4]},
        {FIGURE_2[1], FIGURE_2[2]},
        {FIGURE_2[3]},
    ]
    assert parts.ground == (FIGURE_2[5],)
    assert all(map(is_simple_star, parts.open))
    assert is_loosely_connected(FIGURE_2) and query_class(FIGURE_2) == "loosely connected"


def test_definitions_11_and_12_exclude_each_other():
    assert is_connected_variable(FIGURE_1[:3]) and not is_loosely_connected(FIGURE_1[:3])
    assert not is_connected_variable(FIGURE_1) and not is_loosely_connected(FIGURE_1)
    assert not is_connected_variable([pattern(X, P, A)]), "two variables at least"
    assert query_class([pattern(A, P, B)]) == "ground"
    assert query_class([pattern(X, P, A), pattern(X, P, X)]) == "star"
    assert query_class([pattern(X, P, Y)]) == "connected"


def test_variables_as_predicates_and_graphs_connect_as_well():
    assert variable_partition([TriplePattern(X, Y, A)]) == (frozenset({X, Y}),)
    assert variable_partition([TriplePattern(X, P, A, W)]) == (frozenset({X, W}),)
    assert is_simple_star([TriplePattern(A, Y, A)]), "each value of ?Y makes it one triple"


nodes = st.sampled_from([X, Y, Z, W, A, B])
queries = st.lists(
    st.builds(pattern, nodes, st.sampled_from([P, Q]), nodes), min_size=1, max_size=6
)


@given(queries)
def test_the_partition_is_what_definition_9_says(query):
    partition = variable_partition(query)
    assert sorted(v.name for part in partition for v in part) == sorted(
        v.name for v in query_variables(query)
    )
    for part in partition:
        assert all(shortest_path(query, u, v, through=part) for u, v in combinations(part, 2))
    for one, other in combinations(partition, 2):
        assert not any({p.subject, p.object} & one and {p.subject, p.object} & other for p in query)


@given(queries)
def test_the_decomposition_is_a_partition_of_the_triples_whose_parts_share_no_variable(query):
    parts = decompose(query)
    segments = [*map(set, parts.open), *([set(parts.ground)] if parts.ground else [])]
    assert is_triple_partition(segments, set(query))
    for one, other in combinations(segments, 2):
        assert not set(query_variables(one)) & set(query_variables(other))


@given(queries)
def test_lemma_1_parts_of_loosely_connected_queries_are_simple_stars(query):
    assert is_loosely_connected(query) == all(map(is_simple_star, decompose(query).open))


@given(
    queries, st.sets(st.tuples(*[st.sampled_from([A, B, C])] * 2).map(lambda e: (e[0], P, e[1])))
)
def test_lemmas_2_and_3_embeddings_are_the_products_of_the_parts(query, data):
    def embeddings(patterns):
        found = [{}]
        for node in query_nodes(patterns):
            values = [A, B, C] if isinstance(node, Var) else [node]
            found = [{**e, node: value} for e in found for value in values]
        return [e for e in found if is_embedding(e, patterns, data)]

    parts = decompose(query)
    product = [{}]
    for part in [*parts.open, *([parts.ground] if parts.ground else [])]:
        product = [joined(e, f) for e in product for f in embeddings(part)]
    key = lambda e: sorted((str(n), str(v)) for n, v in e.items())  # noqa: E731
    assert sorted(map(key, product)) == sorted(map(key, embeddings(query)))
