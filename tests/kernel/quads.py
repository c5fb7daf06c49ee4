"""Random programs and change streams for the quad store."""

import numpy as np
from hypothesis import strategies as st

from graphtide.kernel.search.program import ExistsCheck, SearchProgram

NODES = st.integers(1, 3)
PREDICATES = st.integers(1, 2)  # also nodes, so that variables may stand at both places
GRAPHS = st.sampled_from([0, 0, 0, 1, 2])
CHANGE = st.tuples(st.sampled_from([1, 1, -1]), NODES, PREDICATES, NODES, GRAPHS)


def as_changes(rows):
    return np.array(rows, np.int32).reshape(len(rows), 6)


@st.composite
def streams(draw, change=CHANGE, most=30):
    """Changes `[tx, diff, s, p, o, g]`; transactions of one or more changes."""
    rows, tx = [], 0
    for fresh, values in draw(st.lists(st.tuples(st.booleans(), change), max_size=most)):
        tx += fresh
        rows.append((tx, *values))
    return as_changes(rows)


def graph_streams(nodes, predicates, graphs=(0,), most=60):
    """Denser streams over a few nodes, for programs with a fixed shape."""
    node = st.integers(1, nodes)
    diff = st.sampled_from([1, 1, 1, -1])
    predicate, graph = st.sampled_from(predicates), st.sampled_from(graphs)
    return streams(st.tuples(diff, node, predicate, node, graph), most)


@st.composite
def bare_patterns(draw, names, most):
    """Patterns over named variables, each joined to the one before by a variable if it can be."""
    var = st.sampled_from(names)
    node = st.one_of(var, var, NODES)
    predicate = st.one_of(PREDICATES, PREDICATES, PREDICATES, PREDICATES, var)
    graph = st.sampled_from([0, 0, 0, 0, 1, names[-1]])
    patterns = []
    for _ in range(draw(st.integers(1, most))):
        pattern = [draw(node), draw(predicate), draw(node), draw(graph)]
        known = [v for p in patterns for v in p if isinstance(v, str)]
        if known and not set(known) & set(pattern):
            pattern[draw(st.sampled_from([0, 2]))] = draw(st.sampled_from(known))
        patterns.append(tuple(pattern))
    return tuple(patterns)


@st.composite
def programs(draw):
    """A program with up to three patterns and up to two checks, positive or negated."""
    patterns = draw(bare_patterns(("a", "b", "c", "d"), 3))
    numbers = {}

    def number(pattern):
        return tuple(
            -1 - numbers.setdefault(v, len(numbers)) if isinstance(v, str) else v for v in pattern
        )

    main = tuple(map(number, patterns))
    outputs = len(numbers)
    checks = []
    for name in draw(st.lists(st.sampled_from(["x", "y"]), max_size=2)):
        inner = draw(bare_patterns(("a", "b", f"{name}1", f"{name}2"), 2))
        checks.append(ExistsCheck(draw(st.booleans()), tuple(map(number, inner))))
    return SearchProgram(main, outputs, tuple(checks))


def nets(answers, net):
    """The output of `apply` as net bags, per program and transaction; empty ones are left out."""
    return {number: net(batch) for number, batch in answers.items() if net(batch)}
