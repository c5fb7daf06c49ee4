"""The application: its routes, its errors, its beginning and its end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

from graphtide import __version__
from graphtide.errors import GraphtideError
from graphtide.serve import access, changes, graph_store, http, openapi, protocol
from graphtide.serve.metrics import ServerMetrics
from graphtide.serve.page import api as page
from graphtide.serve.page.data import PageData
from graphtide.serve.subscriptions import routes as subscription_routes
from graphtide.serve.subscriptions.hub import SubscriptionHub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from graphtide.serve.host import Host


def create_app(
    host: Host,
    *,
    tokens: Mapping[str, access.Role] | None = None,
    origins: frozenset[str] = frozenset(),
    local: bool = True,
) -> Starlette:
    """The ASGI application that serves a graph.

    With `local`, requests must name this machine as their host. Pages of `origins` may use it too.
    """
    hub, ended = SubscriptionHub(host), asyncio.Event()

    async def say_goodbye() -> None:
        ended.set()
        await hub.stop()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await hub.start()
        try:
            yield
        finally:
            await hub.stop()
            await asyncio.to_thread(host.close)

    app = Starlette(
        routes=[*routes(host, hub), *page_routes(PageData(host.graph), host.call, ended)],
        lifespan=lifespan,
        middleware=[
            Middleware(
                access.Gate,
                metrics=host.metrics,
                tokens=tokens or {},
                origins=origins,
                local=local,
            )
        ],
        exception_handlers={GraphtideError: _refused, HTTPException: _not_routed},
    )
    app.state.hub = hub
    app.state.say_goodbye = say_goodbye
    return app


def create_page_app(source: page.PageSource) -> Starlette:
    """The ASGI application of a page alone, for this machine: there is no graph to ask."""
    ended = asyncio.Event()

    async def say_goodbye() -> None:
        ended.set()

    gate = Middleware(
        access.Gate, metrics=ServerMetrics(), tokens={}, origins=frozenset(), local=True
    )
    app = Starlette(
        routes=page_routes(source, asyncio.to_thread, ended),
        middleware=[gate],
        exception_handlers={GraphtideError: _refused, HTTPException: _not_routed},
    )
    app.state.say_goodbye = say_goodbye
    return app


def page_routes(
    source: page.PageSource, call: page.Call, ended: asyncio.Event
) -> list[http.BaseRoute]:
    """The routes of the page; its files come last, because they take every other path."""
    return [*page.routes(source, call, ended), Mount("/", page.files(), name="page")]


def routes(host: Host, hub: SubscriptionHub) -> list[http.BaseRoute]:
    """The routes for programs."""

    async def healthz(_: http.Request) -> http.Response:
        if host.behind is not None:
            return PlainTextResponse(f"the store can no longer be followed: {host.behind}\n", 503)
        return PlainTextResponse("ok\n")

    async def version(_: http.Request) -> http.Response:
        return http.json_response({"name": "graphtide", "version": __version__})

    async def metrics(_: http.Request) -> http.Response:
        text = await host.call(host.metrics.text, host.graph)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def description(_: http.Request) -> http.Response:
        return http.json_response(openapi.DESCRIPTION)

    async def checkpoint(request: http.Request) -> http.Response:
        access.require(request.scope, "admin")
        return http.json_response({"snapshot": await host.call(host.graph.checkpoint)})

    return [
        *protocol.routes(host),
        *graph_store.routes(host),
        *subscription_routes.routes(host, hub),
        *changes.routes(host),
        http.Route("/metrics", metrics),
        http.Route("/healthz", healthz),
        http.Route("/version", version),
        http.Route("/openapi.json", description),
        http.Route("/checkpoint", checkpoint, methods=["POST"]),
    ]


async def _refused(_: http.Request, error: Exception) -> http.Response:
    assert isinstance(error, GraphtideError)  # noqa: S101 - registered for no other
    return http.problem_response(error)


async def _not_routed(_: http.Request, error: Exception) -> http.Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for no other
    return http.problem_response(
        http.HttpProblem(error.status_code, error.detail, headers=error.headers)
    )
