"""Power measurements: their shape and their answers."""

import re
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest
from pyoxigraph import RdfFormat, Store
from support.blocks import load_blocks

from benchmarks.datasets.queries import SEAS_QUERIES, query_text
from benchmarks.datasets.seas import Seas
from benchmarks.harness import BenchmarkError
from graphtide.graph import LiveGraph

MEASURES = "http://purl.org/NET/seas/measures#"
MODEL = Seas(days=2, meters=7, seed=5)


def lines_of(model):
    return b"".join(bytes(block.columns().lines()) for block in model.indexed_blocks())


@pytest.fixture(scope="module")
def store():
    store = Store()
    store.bulk_load(lines_of(MODEL), format=RdfFormat.N_TRIPLES)
    return store


@pytest.fixture(scope="module")
def values():
    return np.concatenate([block.values for block in MODEL.blocks()])


def test_an_observation_is_a_star_of_ten(store):
    assert len(store) == MODEL.triples == 2 * 288 * 7 * 10
    stars = Counter(quad.subject for quad in store)
    assert len(stars) == MODEL.observations and set(stars.values()) == {10}
    predicates = Counter(quad.predicate.value for quad in store)
    assert len(predicates) == 10 and set(predicates.values()) == {MODEL.observations}
    assert {f"{MEASURES}{name}" for name in ("V_RMS", "V_THD", "V_CF", "W", "Wh", "DPF")} < set(
        predicates
    )


def test_each_meter_is_read_every_five_minutes(store):
    rows = store.query(
        "PREFIX seas: <http://purl.org/NET/seas#>"
        "PREFIX dimension: <http://purl.org/linked-data/sdmx/2009/dimension#>"
        "SELECT ?meter ?time { ?obs seas:meter ?meter ; dimension:timePeriod ?time }"
    )
    times = {}
    for row in rows:
        stamp = datetime.fromisoformat(row["time"].value).timestamp()
        times.setdefault(row["meter"].value, []).append(int(stamp))
    start = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp())
    wanted = [start + 300 * sample for sample in range(2 * 288)]
    assert len(times) == 7
    assert all(sorted(found) == wanted for found in times.values())


def test_values_are_possible(store):
    found = {}
    for quad in store:
        name = quad.predicate.value.removeprefix(MEASURES)
        if name != quad.predicate.value:
            found.setdefault(name, []).append(float(quad.object.value))
    between = {
        "V_RMS": (207, 253),  # 230 V, ten percent either way
        "V_THD": (0, 8),
        "V_CF": (1, 1.6),
        "W": (0, 3000),
        "Wh": (0, 250),
        "DPF": (0, 1),
    }
    for name, (least, most) in between.items():
        assert least <= min(found[name]) < max(found[name]) <= most, name


def test_energy_is_that_of_five_minutes(values):
    watts, energy = values[:, 3] / 100, values[:, 4] / 100
    assert (np.abs(watts / 12 - energy) <= 0.01).all()


def test_the_first_query_keeps_all_and_the_second_few(store, values):
    graph = LiveGraph()
    watches = [graph.watch(query_text("seas", name)) for name in SEAS_QUERIES]
    load_blocks(graph, MODEL.indexed_blocks())
    kept = int(((values[:, 3] > 1_000) & (values[:, 2] < 120)).sum())
    assert 0 < kept < MODEL.observations / 50
    assert [watch.count() for watch in watches] == [MODEL.observations, kept]
    assert [sum(1 for _ in store.query(query_text("seas", name))) for name in SEAS_QUERIES] == [
        MODEL.observations,
        kept,
    ]


@pytest.mark.parametrize("name", SEAS_QUERIES)
def test_queries_are_stars_of_six(name):
    patterns = re.findall(r"^  (\S+) m:(\S+) (\S+) \.$", query_text("seas", name), re.MULTILINE)
    assert {s for s, _, _ in patterns} == {"?obs"}
    assert [p for _, p, _ in patterns] == ["V_RMS", "V_THD", "V_CF", "W", "Wh", "DPF"]
    assert ("FILTER (?watt > 10 && ?cf < 1.2)" in query_text("seas", name)) == (name == "Q2")


def test_an_unknown_query():
    with pytest.raises(BenchmarkError, match="unknown query 'Q3'"):
        query_text("seas", "Q3")


def test_blocks_of_any_size_and_seeds():
    model = Seas(days=1, meters=3)
    small = np.concatenate([block.values for block in model.blocks(7)])
    large = np.concatenate([block.values for block in model.blocks(10**6)])
    other = np.concatenate([block.values for block in Seas(1, 3, seed=1).blocks()])
    assert (small == large).all() and (small != other).any()


@pytest.mark.parametrize("numbers", [{"days": 0}, {"meters": 100_001}])
def test_numbers_that_cannot_be(numbers):
    with pytest.raises(BenchmarkError, match="invalid number of"):
        Seas(**numbers)
