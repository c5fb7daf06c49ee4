"""The routes of the page: its files, its API, and the same as Server-Sent Events.

`GET /api/X` answers once. `GET /api/X/events` answers again whenever the answer is another one.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

from graphtide.errors import GraphtideError
from graphtide.serve import access
from graphtide.serve.page.data import NotFoundError, error_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Call = Callable[..., Awaitable[Any]]

FOLDER: Final = Path(__file__).parent / "files"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page asks no other host for anything, and runs no text as code."""

HEADERS: Final = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}

SECONDS: Final = {"overview": 1.0, "plan": 2.0}
"""How often an answer is looked at again; others `OFTEN`."""

OFTEN: Final = 0.3
HEARTBEAT: Final = 15.0
"""Seconds without an event after which a comment says that the connection is alive."""

MAX_BODY: Final = 1_000_000
MAX_VIEWERS: Final = 500
"""Streams of events that are open at the same time."""


class PageSource(Protocol):
    """What the page shows: a live graph (`PageData`), or a run on Spark (`RunData`)."""

    def answer(
        self,
        method: str,
        path: Sequence[str],
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """The answer to a request: its path is what follows `/api/`, part by part."""


def routes(source: PageSource, call: Call, ended: asyncio.Event) -> list[BaseRoute]:
    """The routes of the API of the page.

    `call` asks the source in a thread; `ended` ends all streams of the page.
    """
    viewers = Viewers(source, call, ended)

    async def api(request: Request) -> Response:
        path, params = _parts(request), dict(request.query_params)
        params.pop("access_token", None)
        if path == ["repairs", "apply"]:
            access.require(request.scope, "write")
        try:
            if request.method == "GET" and path[-1:] == ["events"]:
                return await viewers.follow(path[:-1], params)
            body = await _body(request)
            return JSONResponse(await call(source.answer, request.method, path, params, body))
        except GraphtideError as error:
            status = 404 if isinstance(error, NotFoundError) else 400
            return JSONResponse({"error": error_json(error)}, status)

    return [Route("/api/{path:path}", api, methods=["GET", "POST", "DELETE"])]


def files() -> ASGIApp:
    """The files of the page, with headers that keep it to itself."""
    found = StaticFiles(directory=FOLDER, html=True)

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await found(scope, receive, with_headers)

    return served


def _parts(request: Request) -> list[str]:
    """What follows /api/, part by part; a name may have a slash in it, written as %2F."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    text = raw.decode("ascii", "replace").partition("?")[0].partition("/api/")[2]
    return [unquote(part) for part in text.split("/")]


async def _body(request: Request) -> dict[str, Any]:
    if request.method != "POST":
        return {}
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > MAX_BODY:
            raise GraphtideError(f"the body has more than {MAX_BODY:,} bytes")
    try:
        found = json.loads(read)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise GraphtideError("the body is not a JSON object")
    return found


class Viewers:
    """The open streams of events. Those who look at the same thing share its answers."""

    def __init__(self, source: PageSource, call: Call, ended: asyncio.Event) -> None:
        self._source = source
        self._call = call
        self._ended = ended
        self._open = 0
        self._shared: dict[str, tuple[float, asyncio.Task[str]]] = {}

    async def follow(self, path: list[str], params: dict[str, str]) -> Response:
        """An answer, and again whenever it changes; an error ends the events."""
        if self._open >= MAX_VIEWERS:
            raise GraphtideError(f"{MAX_VIEWERS} views are open", hint="close some of them")
        first = await self._answer(path, params)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        changes = self._changes(path, params, first)
        return StreamingResponse(changes, media_type="text/event-stream", headers=headers)

    async def _changes(
        self, path: list[str], params: dict[str, str], first: str
    ) -> AsyncIterator[str]:
        pause = SECONDS.get(path[-1], OFTEN)
        sent, silent = first, 0.0
        self._open += 1
        try:
            yield f"data: {first}\n\n"
            while not await _is_set(self._ended, pause):
                found = await self._answer(path, params)
                silent += pause
                if found != sent:
                    sent, silent = found, 0.0
                    yield f"data: {found}\n\n"
                elif silent >= HEARTBEAT:
                    silent = 0.0
                    yield ": alive\n\n"
            yield "event: goodbye\ndata: {}\n\n"
        except GraphtideError as error:
            yield f"event: gone\ndata: {json.dumps(error_json(error))}\n\n"
        finally:
            self._open -= 1

    async def _answer(self, path: list[str], params: dict[str, str]) -> str:
        """The answer as JSON: that of another viewer, if it was asked for just now."""
        key, now = json.dumps([path, params]), asyncio.get_running_loop().time()
        fresh = now - 0.9 * SECONDS.get(path[-1] if path else "", OFTEN)
        known = self._shared.get(key)
        if known is None or known[0] < fresh:
            old = [each for each, (asked, _) in self._shared.items() if asked < now - 5]
            for each in old:
                del self._shared[each]
            known = self._shared[key] = now, asyncio.create_task(self._asked(path, params))
        return await asyncio.shield(known[1])

    async def _asked(self, path: list[str], params: dict[str, str]) -> str:
        return json.dumps(await self._call(self._source.answer, "GET", path, params))


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event is set, or will be within some seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
