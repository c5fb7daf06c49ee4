"""A server of a graph in a thread."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import uvicorn

from graphtide.serve.app import create_app
from graphtide.serve.host import Host
from graphtide.serve.page_api import ENDED


class EndingServer(uvicorn.Server):
    """A server that ends the streams of the page before it waits for them."""

    async def shutdown(self, sockets=None):
        self.ended.set()
        await super().shutdown(sockets)


@contextmanager
def serving(graph, port=0):
    """The address of a server of a graph."""
    host = Host(graph)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        config = uvicorn.Config(
            create_app(host), log_level="error", ws="none", timeout_graceful_shutdown=1
        )
        server = EndingServer(config)
        server.ended = host.state[ENDED]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)
