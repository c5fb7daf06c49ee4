"""LUBM(1, 0), once for all tests: in pyoxigraph and in a live graph."""

import pytest
from pyoxigraph import RdfFormat, Store
from support.blocks import load_blocks

from benchmarks.datasets.lubm import Lubm
from graphtide.graph import LiveGraph


@pytest.fixture(scope="session")
def lubm_lines():
    return b"".join(bytes(block.columns().lines()) for block in Lubm(1).indexed_blocks())


@pytest.fixture(scope="session")
def lubm_store(lubm_lines):
    store = Store()
    store.bulk_load(lubm_lines, format=RdfFormat.N_TRIPLES)
    return store


@pytest.fixture(scope="session")
def lubm_graph():
    graph = LiveGraph()
    load_blocks(graph, Lubm(1).indexed_blocks())
    return graph
