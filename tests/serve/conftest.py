"""A server in a thread, on a free port of this machine."""

from __future__ import annotations

from contextlib import contextmanager

import httpx
import pytest

from graphtide import LiveGraph
from graphtide.serve.app import create_app
from graphtide.serve.host import Host, ServerSettings
from graphtide.serve.server import serving


@contextmanager
def running(graph=None, *, settings=None, head_seconds=30.0, **options):
    """A client of a server of a graph, which has the host as `client.host`."""
    host = Host(
        LiveGraph() if graph is None else graph,
        settings=settings or ServerSettings(heartbeat_seconds=2),
    )
    app = create_app(host, **options)
    with (
        serving(app, head_seconds=head_seconds) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        client.graph = host.graph
        client.stop = server.stop
        yield client


@pytest.fixture
def serve():
    return running


@pytest.fixture
def client():
    with running() as found:
        yield found
