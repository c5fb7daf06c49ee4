"""Run the application with uvicorn: in this thread until a signal comes, or in one of its own."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphtide.errors import GraphtideError
from graphtide.serve.subscriptions.channels import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from starlette.applications import Starlette

GRACE_SECONDS: Final = 10
"""Seconds that requests have to finish when the server stops."""

HEAP_OPTIONS: Final = {-8: 1, -1: 1 << 20, -3: 1 << 20}
"""Of glibc's mallopt(3): M_ARENA_MAX, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD."""

MAX_HEAD: Final = 64 << 10
MAX_SOCKET_MESSAGE: Final = 64 << 10


class GuardedProtocol(H11Protocol):
    """HTTP of uvicorn; a client that is slow to send the head of a request is disconnected."""

    head_seconds = 30.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        if self.client is not None:
            CONNECTIONS[self.client] = transport
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """A client has sent something."""
        super().data_received(data)
        if self._timer is not None and not self._is_idle():
            self._timer.cancel()
            self._timer = None

    def on_response_complete(self) -> None:
        """A response is through: the next request may come."""
        super().on_response_complete()
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has disconnected."""
        if self._timer is not None:
            self._timer.cancel()
        if self.client is not None and CONNECTIONS.get(self.client) is self.transport:
            del CONNECTIONS[self.client]
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or bool(cycle.response_complete)

    def _wait_for_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        if self._is_idle() and not self.transport.is_closing():
            self.transport.abort()


class GraphServer(uvicorn.Server):
    """uvicorn, which says goodbye to readers of streams before it waits for connections to end."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: no new requests, goodbye to subscribers, the end of running requests."""
        app: Any = self.config.app
        await app.state.say_goodbye()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop by a signal, and then go on: the caller decides on the exit code."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {s: signal.signal(s, self.handle_exit) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def share_heap() -> bool:
    """Let all threads of this process use one heap that gives back what is free; whether it does.

    By default glibc and Arrow have a heap for each thread, and the thresholds of glibc grow: with
    calls of the graph in several threads, more is free and not given back the longer a server
    runs. To be called before there are threads; other C libraries have no such options.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    return all(library.mallopt(option, value) for option, value in HEAP_OPTIONS.items())


def make_server(
    app: Starlette,
    address: str,
    port: int,
    *,
    head_seconds: float = GuardedProtocol.head_seconds,
) -> GraphServer:
    """A server for an application; `serve()` or `run()` runs it."""
    protocol = type("Protocol", (GuardedProtocol,), {"head_seconds": head_seconds})
    config = uvicorn.Config(
        app,
        host=address,
        port=port,
        http=protocol,
        loop="asyncio",
        ws="websockets-sansio",
        ws_max_size=MAX_SOCKET_MESSAGE,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return GraphServer(config)


def listen(address: str, port: int) -> socket.socket:
    """A socket at an address; port 0 chooses a free one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address, port))
        found.listen(2048)
    except OSError as error:
        found.close()
        raise GraphtideError(
            f"cannot listen at {address}, port {port}: {error.strerror or error}",
            hint="another server may be running there; choose another --port",
        ) from None
    return found


class RunningServer(NamedTuple):
    """A server in a thread, and where it is."""

    url: str
    server: GraphServer

    def stop(self) -> None:
        """Let it stop, after what is under way."""
        self.server.should_exit = True


@contextmanager
def serving(
    app: Starlette,
    *,
    port: int = 0,
    head_seconds: float = GuardedProtocol.head_seconds,
) -> Iterator[RunningServer]:
    """Run a server in a thread of its own, until the end of a `with` block."""
    bound = listen("127.0.0.1", port)
    server = make_server(app, "127.0.0.1", port, head_seconds=head_seconds)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(server.serve(sockets=[bound]))
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
            failed.append(error)

    thread = threading.Thread(target=run, name="graphtide-server", daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.01)
    if failed:
        raise failed[0]
    try:
        yield RunningServer(f"http://127.0.0.1:{bound.getsockname()[1]}", server)
    finally:
        server.should_exit = True
        thread.join()
    if failed:
        raise failed[0]
