"""The application: its routes, its errors, its beginning and its end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphtide.serve.host import Host

PAGE: Final = Path(__file__).parent / "page"


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
    if find_spec("graphtide.serve.page_api") is not None:
        found += import_module("graphtide.serve.page_api").routes(host)
    if PAGE.is_dir():
        found.append(Mount("/", StaticFiles(directory=PAGE, html=True), name="page"))
    return found
