"""The application: its routes, its errors, its beginning and its end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from graphtide.serve import page_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphtide.serve.host import Host


def create_app(host: Host) -> Starlette:
    """The ASGI application that serves a graph."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        host.close()

    return Starlette(routes=routes(host), lifespan=lifespan)


def routes(host: Host) -> list[BaseRoute]:
    """All routes; the page comes last, because it takes every other path."""
    found: list[BaseRoute] = []
    found += page_api.routes(host)
    found.append(Mount("/", page_api.page(), name="page"))
    return found
