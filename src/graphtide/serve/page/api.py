"""The routes of the page: its files, its API, and the same as Server-Sent Events.

`GET /api/X` answers once. `GET /api/X/events` answers again whenever the answer is another one.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

from graphtide.errors import GraphtideError
from graphtide.serve import access
from graphtide.serve.page.data import NotFoundError, PageData, error_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from graphtide.serve.host import Host

FOLDER: Final = Path(__file__).parent / "files"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page asks no other host for anything, and runs no text as code."""

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}

SECONDS: Final = {"overview": 1.0, "plan": 2.0}
"""How often an answer is looked at again; others `OFTEN`."""

OFTEN: Final = 0.3
HEARTBEAT: Final = 15.0
"""Seconds without an event after which a comment says that the connection is alive."""

MAX_BODY: Final = 1_000_000
ENDED: Final = "page ended"
"""The name of the event, in the state of the host, that ends all streams of the page."""


def routes(host: Host) -> list[BaseRoute]:
    """The routes of the API of the page."""
    data = PageData(host.graph)
    ended: asyncio.Event = host.state.setdefault(ENDED, asyncio.Event())

    async def api(request: Request) -> Response:
        path = _parts(request)
        if request.method == "GET" and path[-1:] == ["events"]:
            return await _events(host, data, path[:-1], dict(request.query_params), ended)
        if path == ["repairs", "apply"]:
            access.require(request.scope, "write")
        try:
            body = await _body(request)
            found = await host.call(
                data.answer, request.method, path, dict(request.query_params), body
            )
        except GraphtideError as error:
            return _failed(error)
        return JSONResponse(found)

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


def _failed(error: GraphtideError) -> JSONResponse:
    status = 404 if isinstance(error, NotFoundError) else 400
    return JSONResponse({"error": error_json(error)}, status)


async def _events(
    host: Host, data: PageData, path: list[str], params: dict[str, str], ended: asyncio.Event
) -> Response:
    """An answer, and again whenever it changes; an error ends the events."""
    try:
        first = json.dumps(await host.call(data.answer, "GET", path, params))
    except GraphtideError as error:
        return _failed(error)
    pause = SECONDS.get(path[-1], OFTEN)

    async def changes() -> AsyncIterator[str]:
        sent, silent = first, 0.0
        yield f"data: {first}\n\n"
        while not await _is_set(ended, pause):
            try:
                found = json.dumps(await host.call(data.answer, "GET", path, params))
            except GraphtideError as error:
                yield f"event: gone\ndata: {json.dumps(error_json(error))}\n\n"
                return
            silent += pause
            if found != sent:
                sent, silent = found, 0.0
                yield f"data: {found}\n\n"
            elif silent >= HEARTBEAT:
                silent = 0.0
                yield ": alive\n\n"
        yield "event: goodbye\ndata: {}\n\n"

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(changes(), media_type="text/event-stream", headers=headers)


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event is set, or will be within some seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
