"""Models against the published sizes, counted by pyoxigraph in what is written."""

from collections import Counter

import numpy as np
import pytest
from pyoxigraph import Literal, RdfFormat, parse
from support.train_expected import ELEMENTS, MODELS

from benchmarks.datasets.train import NAMESPACE, RDF_TYPE, TrainModel
from benchmarks.harness import BenchmarkError

EDGES = {
    "connectsTo", "elements", "entry", "exit", "follows", "monitoredBy", "requires", "semaphores",
    "sensors", "target",
}  # fmt: skip

TYPES = {"Region", "Route", "Segment", "Semaphore", "Sensor", "Switch", "SwitchPosition"}


def triples_of(size, scenario):
    lines = b"".join(block.columns().lines() for block in TrainModel(size, scenario).blocks())
    return [quad.triple for quad in parse(lines, format=RdfFormat.N_TRIPLES)]


def local(term):
    return term.value.removeprefix(NAMESPACE)


def counts(triples):
    """How often each type and each predicate occurs."""
    kinds = Counter(local(t.object) for t in triples if str(t.predicate) == RDF_TYPE)
    return kinds + Counter(local(t.predicate) for t in triples if str(t.predicate) != RDF_TYPE)


@pytest.mark.parametrize(("scenario", "size"), MODELS)
@pytest.mark.slow
def test_sizes_are_the_published_ones(scenario, size):
    vertices, edges, triples, _ = MODELS[scenario, size]
    found = triples_of(size, scenario)
    assert len(found) == len({str(triple) for triple in found}) == triples
    by_name = counts(found)
    assert sum(by_name[kind] for kind in TYPES) == vertices
    assert sum(by_name[edge] for edge in EDGES) == edges
    assert by_name["TrackElement"] == by_name["Segment"] + by_name["Switch"]
    # attributes: one of each kind of vertex that has one
    assert by_name["active"] == by_name["exit"] == by_name["Route"] == 5 * size
    assert by_name["length"] == by_name["Segment"]
    assert by_name["signal"] == by_name["Semaphore"]
    assert by_name["position"] == by_name["target"] == by_name["SwitchPosition"]
    assert by_name["currentPosition"] == by_name["Switch"]


@pytest.mark.parametrize("size", ELEMENTS)
def test_elements_of_batch_models_are_the_published_ones(size):
    found = counts(triples_of(size, "batch"))
    assert {name: found[name] for name in ELEMENTS[size]} == ELEMENTS[size]


def test_vertices_are_numbered_without_gaps():
    numbers = {local(t.subject) for t in triples_of(2, "repair")}
    assert numbers == {f"_{number}" for number in range(1, 2038 + 1)}


def test_values_are_those_of_the_schema():
    found = triples_of(1, "repair")
    integer = "http://www.w3.org/2001/XMLSchema#int"
    lengths = [t.object for t in found if local(t.predicate) == "length"]
    assert {length.datatype.value for length in lengths} == {integer}
    # the first two lengths of the published model: nextInt(1000) gives 503, then 775
    assert [abs(int(length.value) - 1) for length in lengths[:2]] == [503, 775]
    assert all(-998 <= int(length.value) <= 1000 for length in lengths)
    assert {t.object for t in found if local(t.predicate) == "active"} == {Literal(True)}
    assert {local(t.object) for t in found if local(t.predicate) == "signal"} == {"SIGNAL_GO"}
    positions = {local(t.object) for t in found if local(t.predicate) == "position"}
    assert positions == {"POSITION_FAILURE", "POSITION_STRAIGHT", "POSITION_DIVERGING"}


def test_the_track_is_a_ring():
    following = {t.subject: t.object for t in triples_of(2, "batch") if "connectsTo" in str(t)}
    first = at = next(iter(following))
    for _ in following:
        at = following[at]
    assert at == first and len(set(following.values())) == len(following) == 1617


def test_small_blocks_make_the_same_model():
    whole = np.concatenate([block.triples for block in TrainModel(8, "inject").blocks(1 << 20)])
    blocks = list(TrainModel(8, "inject").blocks(1))
    assert (np.concatenate([block.triples for block in blocks]) == whole).all()
    assert len(blocks) > 5
    assert sum(block.routes for block in blocks) == 40
    assert [block.first_vertex for block in blocks[1:]] == [
        block.last_vertex + 1 for block in blocks[:-1]
    ]


def test_a_block_of_texts_may_mention_older_vertices():
    small, large = (
        b"".join(block.columns().lines() for block in TrainModel(8, "repair").blocks(rows))
        for rows in (1, 1 << 20)
    )
    assert small == large


@pytest.mark.parametrize("size", [0, -1, 1_000_001])
def test_sizes_that_cannot_be(size):
    with pytest.raises(BenchmarkError, match="invalid size"):
        TrainModel(size, "batch")


def test_an_unknown_scenario():
    with pytest.raises(BenchmarkError, match="unknown scenario 'nope'"):
        TrainModel(1, "nope")
