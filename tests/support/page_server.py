"""A server of a graph in a thread, for tests of the page."""

from __future__ import annotations

from contextlib import contextmanager

from graphtide.serve.app import create_app
from graphtide.serve.host import Host
from graphtide.serve.server import serving as serving_app


@contextmanager
def serving(graph, port=0):
    """The address of a server of a graph."""
    with serving_app(create_app(Host(graph)), port=port) as server:
        yield f"{server.url}/"
