"""Reads of several clients: a short one is answered while long ones run."""

from __future__ import annotations

import threading
from contextlib import suppress

import httpx
import pytest
from serve.running_server import running

from graphtide import Limits, LiveGraph

LONG = "SELECT (COUNT(*) AS ?n) { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z }"
SECONDS = 20
"""In which long queries end, by the limits of the graph, and within which short ones must."""


@pytest.fixture
def server():
    graph = LiveGraph(limits=Limits(query_seconds=SECONDS, query_bytes=1 << 30))
    with graph.transaction() as tx:
        for n in range(3000):
            tx.insert(f"<ex:{n}>", "<ex:p>", f"<ex:{n % 7}>")
    with running(graph) as server:
        yield server


def test_short_reads_do_not_wait_for_long_ones(server):
    url, began = str(server.base_url), threading.Barrier(4)

    def ask():
        began.wait()
        with suppress(httpx.ReadTimeout):  # it hangs up, if its query did not need too much memory
            httpx.get(url + "/sparql", params={"query": LONG}, timeout=3)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    began.wait()
    for path, params in [
        ("/sparql", {"query": "ASK { <ex:1> <ex:p> ?x }"}),
        ("/healthz", {}),
        ("/metrics", {}),
    ]:
        assert httpx.get(url + path, params=params, timeout=SECONDS / 2).status_code == 200
    for thread in threads:
        thread.join()
