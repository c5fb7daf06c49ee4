"""The load on a server, in small: everybody gets everything, in order."""

from __future__ import annotations

import pytest

from benchmarks import serve


@pytest.mark.slow
@pytest.mark.parametrize("way", serve.WAYS)
def test_a_small_load(way):
    found = serve.measure(serve.ServeTask(way, clients=6, queries=3, rate=200, seconds=2.0))
    assert found.received > 0
    assert found.median_ms > 0
    if way == "subscribe":
        assert (found.missing, found.disordered) == (0, 0)
    tables = serve.report([found]).tables
    assert len(tables) == 1
