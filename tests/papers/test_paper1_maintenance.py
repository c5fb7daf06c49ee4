"""Paper 1's maintenance rules, each a test on its example relations (sections 3.1.2 to 4.5).

Expected rows are those of the paper, or follow from its formulas by hand. Every rule is tried on
the kernel (compiled and plain Python) where one class implements it, and through a live graph with
both strategies.
"""

import numpy as np
import pytest
from papers.railway import EDGES, TYPE, Railway, ids, iri, quad

import graphtide.kernel
import graphtide.kernel.twin
from graphtide.engine.dataflow.operators import KeepColumns
from graphtide.kernel.batch import empty_batch, make_batch
from graphtide.kernel.search.program import SearchProgram
from graphtide.kernel.values import EQUAL, TRUE

FOLLOWS = "GRAPH ?follows { ?route :follows ?switchPosition }"
REQUIRES = "GRAPH ?requires { ?route :requires ?sensor }"
EXIT = "GRAPH ?exit { ?route :exit ?semaphore }"

both_strategies = pytest.mark.parametrize("strategy", ["rete", "search"])
both_kernels = pytest.mark.parametrize(
    "kernel", [graphtide.kernel, graphtide.kernel.twin], ids=["kernel", "twin"]
)


def update(diff, *edges):
    """An update message: all its rows come (+1) or go (-1)."""
    return make_batch([(0, diff, *ids(edge)) for edge in edges], 3)


def message(batch):
    """A node's output as {row: diff}."""
    return {tuple(row): diff for _, diff, *row in batch.tolist()}


NOTHING = empty_batch(3)


# --- 4.2 input nodes ---


@both_kernels
def test_input_node_holds_and_propagates_the_requires_relation(kernel):
    store = kernel.QuadStore()
    requires = 1000
    number = store.install(SearchProgram(((-1, requires, -3, -2),), 3))

    def change(diff, *edges):
        rows = [(0, diff, s, requires, t, e) for s, e, t in map(ids, edges)]
        return message(store.apply(np.array(rows, np.int32))[number])

    change(1, *EDGES["requires"])
    assert message(store.evaluate(number)) == {ids((2, "d", 6)): 1, ids((4, "f", 7)): 1}
    assert change(1, (2, "t", 5)) == {ids((2, "t", 5)): 1}
    assert change(-1, (2, "d", 6)) == {ids((2, "d", 6)): -1}
    assert message(store.evaluate(number)) == {ids((2, "t", 5)): 1, ids((4, "f", 7)): 1}


@both_strategies
def test_input_node_for_edges_sends_positive_and_negative_updates(strategy):
    railway = Railway(REQUIRES, strategy, variables="?route ?requires ?sensor")
    assert railway.answer() == [(2, "d", 6), (4, "f", 7)]
    assert railway.insert("requires", (2, "t", 5)) == {(2, "t", 5): 1}
    assert railway.delete("requires", (2, "d", 6)) == {(2, "d", 6): -1}
    assert railway.answer() == [(2, "t", 5), (4, "f", 7)]


@both_strategies
def test_input_node_for_vertices_sends_positive_and_negative_updates(strategy):
    railway = Railway("?route a :Route", strategy, variables="?route")
    assert railway.answer() == [(2,), (4,)]
    railway.graph.insert(iri(16), TYPE, iri("Route"))
    assert railway.delta() == {(16,): 1}
    railway.graph.delete(iri(2), TYPE, iri("Route"))
    assert railway.delta() == {(2,): -1}


@both_strategies
def test_input_node_ignores_edges_of_other_labels(strategy):
    railway = Railway(REQUIRES, strategy, variables="?route ?requires ?sensor")
    assert railway.insert("exit", (4, "u", 1)) == {}
    assert railway.delete("follows", (2, "c", 14)) == {}


# --- 4.3 unary nodes: selection and projection ---


@both_kernels
def test_selection_node_positive_and_negative_updates_select_from_the_change_set(kernel):
    def select_route_2(batch):
        kinds, numbers = np.ones(300, np.int8), np.zeros(300)  # every value an IRI
        column = np.ascontiguousarray(batch[:, 2])
        outcomes = kernel.compare(EQUAL, column, np.array([2], np.int32), kinds, numbers)
        return message(batch[outcomes == TRUE])

    assert select_route_2(update(1, *EDGES["requires"])) == {ids((2, "d", 6)): 1}
    assert select_route_2(update(1, (2, "t", 5), (4, "u", 5))) == {ids((2, "t", 5)): 1}
    assert select_route_2(update(-1, *EDGES["requires"])) == {ids((2, "d", 6)): -1}


@both_strategies
def test_selection_node_positive_update(strategy):
    query = f"{REQUIRES} FILTER(?route = :2)"
    railway = Railway(query, strategy, variables="?route ?requires ?sensor")
    assert railway.answer() == [(2, "d", 6)]
    assert railway.insert("requires", (2, "t", 5)) == {(2, "t", 5): 1}
    assert railway.insert("requires", (4, "u", 5)) == {}


@both_strategies
def test_selection_node_negative_update(strategy):
    query = f"{REQUIRES} FILTER(?route = :2)"
    railway = Railway(query, strategy, variables="?route ?requires ?sensor")
    assert railway.delete("requires", (4, "f", 7)) == {}
    assert railway.delete("requires", (2, "d", 6)) == {(2, "d", 6): -1}
    assert railway.answer() == []


def test_projection_node_projects_the_change_set():
    to_route = KeepColumns([0])
    assert message(to_route.step(update(1, *EDGES["requires"]))) == {(2,): 1, (4,): 1}
    assert message(to_route.step(update(-1, (2, "d", 6)))) == {(2,): -1}


@both_strategies
def test_projection_node_positive_update(strategy):
    railway = Railway(REQUIRES, strategy, variables="?route")
    assert railway.answer() == [(2,), (4,)]
    assert railway.insert("requires", (16, "t", 5)) == {(16,): 1}


@both_strategies
def test_projection_node_negative_update(strategy):
    railway = Railway(REQUIRES, strategy, variables="?route")
    assert railway.delete("requires", (2, "d", 6)) == {(2,): -1}
    assert railway.answer() == [(4,)]


@both_strategies
def test_projection_to_a_set_keeps_a_row_while_one_edge_still_gives_it(strategy):
    """The rule for set minus needs this care: two edges may be projected to one row."""
    railway = Railway(REQUIRES, strategy, variables="DISTINCT ?route")
    assert railway.insert("requires", (2, "t", 5)) == {}
    assert railway.delete("requires", (2, "d", 6)) == {}
    assert railway.delete("requires", (2, "t", 5)) == {(2,): -1}
    assert railway.answer() == [(4,)]


# --- 4.4.1 natural join node ---


@pytest.fixture
def join(kernel):
    """follows ⋈ requires, primed with the example's edges."""
    columns = [(0, 0), (1, -1), (2, -1), (-1, 1), (-1, 2)]
    node = kernel.JoinKernel(3, 3, keys=[(0, 0)], outputs=columns)
    node.step(update(1, *EDGES["follows"]), update(1, *EDGES["requires"]))
    return node


@both_kernels
def test_join_node_first_answer(kernel):
    columns = [(0, 0), (1, -1), (2, -1), (-1, 1), (-1, 2)]
    node = kernel.JoinKernel(3, 3, keys=[(0, 0)], outputs=columns)
    answer = node.step(update(1, *EDGES["follows"]), update(1, *EDGES["requires"]))
    assert message(answer) == {ids((2, "c", 14, "d", 6)): 1, ids((4, "e", 15, "f", 7)): 1}


@both_kernels
def test_join_node_positive_update_on_the_primary_slot(join):
    out = join.step(update(1, (2, "t", 15), (16, "u", 14)), NOTHING)
    assert message(out) == {ids((2, "t", 15, "d", 6)): 1}


@both_kernels
def test_join_node_negative_update_on_the_primary_slot(join):
    out = join.step(update(-1, (2, "c", 14)), NOTHING)
    assert message(out) == {ids((2, "c", 14, "d", 6)): -1}


@both_kernels
def test_join_node_positive_update_on_the_secondary_slot(join):
    out = join.step(NOTHING, update(1, (2, "t", 5), (16, "u", 5)))
    assert message(out) == {ids((2, "c", 14, "t", 5)): 1}


@both_kernels
def test_join_node_negative_update_on_the_secondary_slot(join):
    out = join.step(NOTHING, update(-1, (4, "f", 7)))
    assert message(out) == {ids((4, "e", 15, "f", 7)): -1}


@both_strategies
def test_join_positive_and_negative_updates_on_both_slots(strategy):
    variables = "?route ?follows ?switchPosition ?requires ?sensor"
    railway = Railway(f"{FOLLOWS} {REQUIRES}", strategy, variables=variables)
    assert railway.answer() == [(2, "c", 14, "d", 6), (4, "e", 15, "f", 7)]
    assert railway.insert("follows", (2, "t", 15)) == {(2, "t", 15, "d", 6): 1}
    assert railway.insert("requires", (2, "u", 5)) == {
        (2, "c", 14, "u", 5): 1,
        (2, "t", 15, "u", 5): 1,
    }
    assert railway.delete("follows", (2, "c", 14)) == {
        (2, "c", 14, "d", 6): -1,
        (2, "c", 14, "u", 5): -1,
    }
    assert railway.delete("requires", (4, "f", 7)) == {(4, "e", 15, "f", 7): -1}
    assert railway.answer() == [(2, "t", 15, "d", 6), (2, "t", 15, "u", 5)]


@both_strategies
def test_join_without_common_attributes_is_the_cartesian_product(strategy):
    query = "GRAPH ?f { ?route1 :follows ?p } GRAPH ?r { ?route2 :requires ?s }"
    railway = Railway(query, strategy, variables="?route1 ?f ?p ?route2 ?r ?s")
    assert railway.answer() == [
        (2, "c", 14, 2, "d", 6),
        (2, "c", 14, 4, "f", 7),
        (4, "e", 15, 2, "d", 6),
        (4, "e", 15, 4, "f", 7),
    ]
    assert railway.delete("requires", (4, "f", 7)) == {
        (2, "c", 14, 4, "f", 7): -1,
        (4, "e", 15, 4, "f", 7): -1,
    }


# --- 4.4.2 antijoin node ---


def keys(diff, *routes):
    """An update on the secondary slot: the routes of exit edges."""
    return make_batch([(0, diff, route) for route in routes], 1)


NO_KEYS = empty_batch(1)


@pytest.fixture
def antijoin(kernel):
    """follows ⊳ exit, primed with the example's edges."""
    node = kernel.SemiJoinKernel(3, columns=[0], negated=True)
    node.step(update(1, *EDGES["follows"]), keys(1, 2))
    return node


@both_kernels
def test_antijoin_node_first_answer(kernel):
    node = kernel.SemiJoinKernel(3, columns=[0], negated=True)
    node.step(NOTHING, keys(1, 2))
    assert message(node.step(update(1, *EDGES["follows"]), NO_KEYS)) == {ids((4, "e", 15)): 1}


@both_kernels
def test_antijoin_node_positive_update_on_the_primary_slot(antijoin):
    out = antijoin.step(update(1, (2, "t", 15), (4, "u", 14)), NO_KEYS)
    assert message(out) == {ids((4, "u", 14)): 1}


@both_kernels
def test_antijoin_node_negative_update_on_the_primary_slot(antijoin):
    out = antijoin.step(update(-1, *EDGES["follows"]), NO_KEYS)
    assert message(out) == {ids((4, "e", 15)): -1}


@both_kernels
def test_antijoin_node_positive_update_on_the_secondary_slot(antijoin):
    assert message(antijoin.step(NOTHING, keys(1, 4))) == {ids((4, "e", 15)): -1}
    # A second exit of the same route finds nothing left to take away.
    assert message(antijoin.step(NOTHING, keys(1, 4))) == {}


@both_kernels
def test_antijoin_node_negative_update_on_the_secondary_slot(antijoin):
    antijoin.step(NOTHING, keys(1, 2))
    # One of two exits gone: the projection of what is left still holds route 2.
    assert message(antijoin.step(NOTHING, keys(-1, 2))) == {}
    assert message(antijoin.step(NOTHING, keys(-1, 2))) == {ids((2, "c", 14)): 1}


@both_kernels
def test_antijoin_stores_a_count_per_key_and_not_the_partners(antijoin):
    before = antijoin.sizes()
    antijoin.step(NOTHING, keys(1, *[2] * 1000))
    assert antijoin.sizes() == before == {"left": 2, "right": 1}


def follows_without_exit(strategy):
    query = f"{FOLLOWS} FILTER NOT EXISTS {{ {EXIT} }}"
    return Railway(query, strategy, variables="?route ?follows ?switchPosition")


@both_strategies
def test_antijoin_positive_update_on_the_primary_slot(strategy):
    railway = follows_without_exit(strategy)
    assert railway.answer() == [(4, "e", 15)]
    assert railway.insert("follows", (4, "u", 14)) == {(4, "u", 14): 1}
    assert railway.insert("follows", (2, "t", 15)) == {}


@both_strategies
def test_antijoin_negative_update_on_the_primary_slot(strategy):
    railway = follows_without_exit(strategy)
    assert railway.delete("follows", (2, "c", 14)) == {}
    assert railway.delete("follows", (4, "e", 15)) == {(4, "e", 15): -1}
    assert railway.answer() == []


@both_strategies
def test_antijoin_positive_update_on_the_secondary_slot(strategy):
    railway = follows_without_exit(strategy)
    assert railway.insert("exit", (4, "u", 1)) == {(4, "e", 15): -1}
    assert railway.insert("exit", (4, "v", 3)) == {}
    assert railway.answer() == []


@both_strategies
def test_antijoin_negative_update_on_the_secondary_slot(strategy):
    railway = follows_without_exit(strategy)
    assert railway.insert("exit", (2, "u", 1)) == {}
    assert railway.delete("exit", (2, "b", 3)) == {}
    assert railway.delete("exit", (2, "u", 1)) == {(2, "c", 14): 1}
    assert railway.answer() == [(2, "c", 14), (4, "e", 15)]


@both_strategies
def test_antijoin_is_also_what_minus_maintains(strategy):
    query = f"{FOLLOWS} MINUS {{ {EXIT} }}"
    railway = Railway(query, strategy, variables="?route ?follows ?switchPosition")
    assert railway.answer() == [(4, "e", 15)]
    assert railway.insert("exit", (4, "u", 1)) == {(4, "e", 15): -1}
    assert railway.delete("exit", (2, "b", 3)) == {(2, "c", 14): 1}


# --- 4.5 production nodes, on the queries of section 3.3 ---

ROUTE_SENSOR = """
    GRAPH ?e1 { ?route :follows ?swP } GRAPH ?e2 { ?swP :target ?sw }
    GRAPH ?e3 { ?sw :monitoredBy ?sensor }
    FILTER NOT EXISTS { GRAPH ?e4 { ?route :requires ?sensor } }
"""

SEMAPHORE_NEIGHBOR = """
    GRAPH ?e1 { ?te1 :connectsTo ?te2 } GRAPH ?e2 { ?te1 :monitoredBy ?sensor1 }
    GRAPH ?e3 { ?te2 :monitoredBy ?sensor2 } GRAPH ?e4 { ?route1 :exit ?semaphore }
    GRAPH ?e5 { ?route1 :requires ?sensor1 } GRAPH ?e6 { ?route2 :requires ?sensor2 }
    FILTER(?route1 != ?route2)
    FILTER NOT EXISTS { GRAPH ?e7 { ?route2 :entry ?semaphore } }
"""


@both_strategies
def test_production_node_hands_out_the_match_set_and_the_last_change_set(strategy):
    """Switch 9 of route 2 is monitored by sensor 5, which route 2 does not require."""
    railway = Railway(ROUTE_SENSOR, strategy, variables="?route ?swP ?sw ?sensor")
    assert railway.answer() == [(2, 14, 9, 5)]
    assert railway.insert("requires", (2, "t", 5)) == {(2, 14, 9, 5): -1}
    assert railway.answer() == []
    assert railway.delete("requires", (2, "t", 5)) == {(2, 14, 9, 5): 1}
    assert railway.delete("requires", (4, "f", 7)) == {(4, 15, 12, 7): 1}
    assert railway.answer() == [(2, 14, 9, 5), (4, 15, 12, 7)]


@both_strategies
def test_production_node_unites_all_update_messages_of_one_change(strategy):
    """A change may reach the production node along several ways, here through both branches."""
    query = f"{{ {REQUIRES} }} UNION {{ {FOLLOWS} {REQUIRES} }}"
    railway = Railway(query, strategy, variables="?route ?requires ?sensor")
    # Two copies in one change set: one by each branch.
    assert railway.insert("requires", (2, "t", 5)) == {(2, "t", 5): 2}
    assert railway.delete("follows", (2, "c", 14)) == {(2, "t", 5): -1, (2, "d", 6): -1}


@both_strategies
def test_production_node_gives_the_net_change_of_a_transaction(strategy):
    railway = Railway(ROUTE_SENSOR, strategy, variables="?route ?swP ?sw ?sensor")
    with railway.graph.transaction() as tx:
        tx.delete(*quad("target", (14, "r", 9)))  # the match goes …
        tx.insert(*quad("target", (14, "r", 9)))  # … and comes back
        tx.delete(*quad("requires", (4, "f", 7)))
    assert railway.delta() == {(4, 15, 12, 7): 1}


@both_strategies
def test_production_node_of_the_semaphore_neighbor_query(strategy):
    """Track elements 11 and 12 connect the sensors of routes 2 and 4; route 4 lacks the entry."""
    variables = "?semaphore ?route1 ?route2 ?sensor1 ?sensor2 ?te1 ?te2"
    railway = Railway(SEMAPHORE_NEIGHBOR, strategy, variables=variables)
    assert railway.answer() == [(3, 2, 4, 6, 7, 11, 12)]
    assert railway.insert("entry", (4, "t", 3)) == {(3, 2, 4, 6, 7, 11, 12): -1}
    assert railway.delete("entry", (4, "t", 3)) == {(3, 2, 4, 6, 7, 11, 12): 1}
    assert railway.delete("connectsTo", (11, "p", 12)) == {(3, 2, 4, 6, 7, 11, 12): -1}
