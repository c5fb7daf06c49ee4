"""The simulation of layouts: figures that can be worked out by hand."""

from __future__ import annotations

import pytest

from graphtide.bench.spark.layouts import SkewedChanges, report, simulate

DATA = SkewedChanges(changes=400, nodes=50)


@pytest.mark.parametrize("partitions", [4, 16])
def test_copies_by_hand(partitions):
    # ?b and ?d in equally many parts: every pattern of the chain is copied along one of them.
    chain = simulate("chain", "grid", DATA, partitions)
    assert chain.copies == chain.shuffled == partitions**0.5
    # In the Rete layout each quad goes to one partition.
    assert simulate("chain", "rete", DATA, partitions).copies == 1
    # Three of four changes are quads of the star.
    star = simulate("star", "grid", DATA, partitions)
    assert star.copies == sum(row[4] != "<ex:s>" for row in DATA.rows()) / 400


def test_hubs_take_load_off_the_busiest_partition():
    data = SkewedChanges(changes=2000, nodes=2000)
    hubs = data.hubs(64)
    assert hubs[0][0] == "<ex:n1>"  # the most frequent number of a Zipf distribution
    before, after = (simulate("chain", "rete", data, 64, each) for each in ((), hubs))
    assert after.busiest < 0.8 * before.busiest
    assert after.copies < 1.2  # only the few quads that leave a hub are copied


def test_the_table_has_all_queries_in_both_layouts():
    lines = "\n".join(report([16], DATA)).splitlines()
    assert len(lines) == 2 + 3 * 2 * 2
    assert len({line.count("|") for line in lines}) == 1
