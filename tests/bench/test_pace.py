"""When the triples of a stream come, worked out by hand."""

import pytest

from graphtide.bench.pace import Pace, find_ticks
from graphtide.errors import GraphtideError


@pytest.mark.parametrize(
    ("pace", "times"),
    [
        (Pace(rate=1_000), [0, 1, 2, 3, 4, 5]),
        (Pace(rate=3_000), [0, 0, 0, 1, 1, 1]),
        (Pace(rate=400), [0, 2, 5, 7, 10, 12]),
        (Pace(rate=1_000, event=4), [0, 0, 0, 0, 4, 4]),
        (Pace(rate=1_000, start=50), [50, 51, 52, 53, 54, 55]),
        (Pace(rate=2, ticks=find_ticks("s")), [0, 0, 1, 1, 2, 2]),
        (Pace(rate=10_000, ticks=find_ticks("us")), [0, 100, 200, 300, 400, 500]),
    ],
)
def test_times(pace, times):
    found, tx = pace.stamps(0, 6)
    assert found.tolist() == times
    assert tx.tolist() == [row // pace.event for row in range(6)]


def test_a_second_holds_as_many_triples_as_the_rate_says():
    time, _ = Pace(rate=10_000, event=1).stamps(0, 30_000)
    assert [int((time // 1000 == second).sum()) for second in range(3)] == [10_000] * 3


def test_rows_far_on_in_small_units():
    time, tx = Pace(rate=10_000, ticks=find_ticks("ns")).stamps(10**13, 1)
    assert (time.tolist(), tx.tolist()) == ([10**18], [10**13])


def test_parts_of_a_stream_go_on_where_the_one_before_ended():
    whole, _ = Pace(rate=7_000, event=3).stamps(0, 50)
    first, _ = Pace(rate=7_000, event=3).stamps(0, 20)
    second, _ = Pace(rate=7_000, event=3).stamps(20, 30)
    assert whole.tolist() == [*first.tolist(), *second.tolist()]


@pytest.mark.parametrize("options", [{"rate": 0}, {"event": 0}, {"ticks": 0}])
def test_paces_that_cannot_be(options):
    with pytest.raises(GraphtideError, match="0 is not possible"):
        Pace(**options)
