"""When the triples of a stream come, worked out by hand."""

import pytest

from benchmarks.datasets.triples import StreamRate, ticks_per_second
from graphtide.errors import GraphtideError


@pytest.mark.parametrize(
    ("pace", "times"),
    [
        (StreamRate(rate=1_000), [0, 1, 2, 3, 4, 5]),
        (StreamRate(rate=3_000), [0, 0, 0, 1, 1, 1]),
        (StreamRate(rate=400), [0, 2, 5, 7, 10, 12]),
        (StreamRate(rate=1_000, event=4), [0, 0, 0, 0, 4, 4]),
        (StreamRate(rate=1_000, start=50), [50, 51, 52, 53, 54, 55]),
        (StreamRate(rate=2, ticks=ticks_per_second("s")), [0, 0, 1, 1, 2, 2]),
        (StreamRate(rate=10_000, ticks=ticks_per_second("us")), [0, 100, 200, 300, 400, 500]),
    ],
)
def test_times(pace, times):
    found, tx = pace.timestamps(0, 6)
    assert found.tolist() == times
    assert tx.tolist() == [row // pace.event for row in range(6)]


def test_a_second_holds_as_many_triples_as_the_rate_says():
    time, _ = StreamRate(rate=10_000, event=1).timestamps(0, 30_000)
    assert [int((time // 1000 == second).sum()) for second in range(3)] == [10_000] * 3


def test_rows_far_on_in_small_units():
    time, tx = StreamRate(rate=10_000, ticks=ticks_per_second("ns")).timestamps(10**13, 1)
    assert (time.tolist(), tx.tolist()) == ([10**18], [10**13])


def test_parts_of_a_stream_go_on_where_the_one_before_ended():
    whole, _ = StreamRate(rate=7_000, event=3).timestamps(0, 50)
    first, _ = StreamRate(rate=7_000, event=3).timestamps(0, 20)
    second, _ = StreamRate(rate=7_000, event=3).timestamps(20, 30)
    assert whole.tolist() == [*first.tolist(), *second.tolist()]


@pytest.mark.parametrize("options", [{"rate": 0}, {"event": 0}, {"ticks": 0}])
def test_paces_that_cannot_be(options):
    with pytest.raises(GraphtideError, match=r"invalid .* 0"):
        StreamRate(**options)
