"""The application: its routes, its errors, its beginning and its end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from graphtide import __version__
from graphtide.errors import GraphtideError
from graphtide.serve import access, changes, graph_store, http, openapi, protocol
from graphtide.serve.page import api as page
from graphtide.serve.subscriptions import routes as subscription_routes
from graphtide.serve.subscriptions.hub import SubscriptionHub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request

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
    hub = SubscriptionHub(host)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await hub.start()
        try:
            yield
        finally:
            await hub.stop()
            await asyncio.to_thread(host.close)

    gate = Middleware(access.Gate, host=host, tokens=tokens or {}, origins=origins, local=local)
    app = Starlette(
        routes=routes(host, hub),
        lifespan=lifespan,
        middleware=[gate],
        exception_handlers={GraphtideError: _refused, HTTPException: _not_routed},
    )
    app.state.hub = hub
    app.state.page_ended = host.state[page.ENDED]
    return app


def routes(host: Host, hub: SubscriptionHub) -> list[BaseRoute]:
    """All routes; the page comes last, because it takes every other path."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def version(_: Request) -> Response:
        return http.json_response({"name": "graphtide", "version": __version__})

    async def metrics(_: Request) -> Response:
        text = await host.call(host.metrics.text, host.graph)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def description(_: Request) -> Response:
        return http.json_response(openapi.DESCRIPTION)

    async def checkpoint(request: Request) -> Response:
        access.require(request.scope, "admin")
        return http.json_response({"snapshot": await host.call(host.graph.checkpoint)})

    found: list[BaseRoute] = [
        *protocol.routes(host),
        *graph_store.routes(host),
        *subscription_routes.routes(host, hub),
        *changes.routes(host),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/version", version),
        Route("/openapi.json", description),
        Route("/checkpoint", checkpoint, methods=["POST"]),
    ]
    found += page.routes(host)
    found.append(Mount("/", page.files(), name="page"))
    return found


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, GraphtideError)  # noqa: S101 - registered for no other
    return http.problem_response(error)


async def _not_routed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for no other
    return http.problem_response(
        http.HttpProblem(error.status_code, error.detail, headers=error.headers)
    )
