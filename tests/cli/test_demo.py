from collections import Counter

import pytest

from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.graph import LiveGraph


def test_rows_are_the_same_for_the_same_seed(run):
    first, again, other = (
        run("demo", "--engine", "process", "--transactions", 30, "--seed", s) for s in (3, 3, 4)
    )
    assert first.code == 0
    assert first.out == again.out != other.out
    assert {line[0] for line in first.lines} == {"+", "-"}
    assert "transactions" in first.err


def test_json_lines_add_up_to_the_answers(run):
    rows = run("demo", "--engine", "process", "--transactions", 100, "--seed", 5, "--json").objects
    net = Counter()
    for row in rows:
        net[row["query"], *row["row"].values()] += row["diff"]
    graph = LiveGraph()
    for batch in change_stream(100, seed=5):
        graph.apply(batch)
    expected = Counter()
    for name, text in QUERIES.items():
        watch = graph.watch(text)
        expected.update((name, *line.values()) for line in watch.table(terms=True).to_pylist())
    assert +net == expected
    assert -net == Counter()


def test_a_negative_number_of_transactions(run):
    assert 'invalid --transactions "-1": give 0 or more' in run("demo", "--transactions", -1).err


@pytest.mark.parametrize("seed", range(5))
def test_every_change_has_an_effect(seed):
    graph = LiveGraph(strict=True)
    for batch in change_stream(200, seed=seed):
        graph.apply(batch)
    assert graph.stats().redundant == 0


def test_the_network_starts_sound_and_every_query_finds_faults():
    graph = LiveGraph()
    watches = [graph.watch(text, name=name) for name, text in QUERIES.items()]
    network, *rest = change_stream(300, seed=1)
    graph.apply(network)
    assert [watch.count() for watch in watches] == [0, 0, 0, 0]
    for batch in rest:
        graph.apply(batch)
    for watch in watches:
        assert {row.diff for row in watch.rows()} == {1, -1}
