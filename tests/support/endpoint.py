"""A SPARQL endpoint on this machine: a function from the text of a query to JSON results."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pyoxigraph import QueryResultsFormat, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Answer(Exception):  # noqa: N818 - an answer other than 200
    """A status and headers to answer with."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers


@contextmanager
def endpoint(answer: Callable[[str], bytes], *, pause: float = 0) -> Iterator[str]:
    """The address of an endpoint that answers queries so; with a `pause` before each byte."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            (query,) = parse_qs(self.rfile.read(size).decode())["query"]
            try:
                body, status, headers = answer(query), 200, {}
            except Answer as other:
                body, status, headers = b"no", other.status, other.headers
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):
                for part in (body[i : i + 1] for i in range(len(body))) if pause else (body,):
                    sleep(pause)
                    self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/sparql"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def of_store(store: Store) -> Callable[[str], bytes]:
    """The answers of a pyoxigraph Store."""
    return lambda query: store.query(query).serialize(format=QueryResultsFormat.JSON)
