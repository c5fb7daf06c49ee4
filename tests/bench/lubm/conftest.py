"""LUBM(1, 0), once for all tests: in pyoxigraph and in a live graph."""

import pytest
from pyoxigraph import RdfFormat, Store

from graphtide.bench.coded import load_blocks
from graphtide.bench.lubm.model import Lubm
from graphtide.bench.lubm.texts import coded_blocks
from graphtide.graph import LiveGraph


@pytest.fixture(scope="session")
def lines():
    return b"".join(bytes(block.texts().lines()) for block in coded_blocks(Lubm(1)))


@pytest.fixture(scope="session")
def store(lines):
    store = Store()
    store.bulk_load(lines, format=RdfFormat.N_TRIPLES)
    return store


@pytest.fixture(scope="session")
def graph():
    graph = LiveGraph()
    load_blocks(graph, coded_blocks(Lubm(1)))
    return graph
