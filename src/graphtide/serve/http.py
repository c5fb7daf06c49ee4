"""What all routes share: bodies within limits, content negotiation, and errors as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from graphtide import errors as err

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.serve.host import Host

__all__ = ["BaseRoute", "Request", "Response", "Route"]  # with what is defined here

T = TypeVar("T")

PROBLEM_TYPE: Final = "application/problem+json"
MAX_RANGES: Final = 64
"""Media ranges of an Accept header that are looked at."""


class HttpProblem(err.GraphtideError):
    """A request that is refused, with the status code of the response."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: err.GraphtideError) -> int:
    """The status code for an error of the graph.

    >>> status_of(err.StrictError("the quad is there already"))
    409
    """
    match error:
        case HttpProblem():
            return error.status
        case err.LimitError():
            return 503 if error.limit.endswith("_seconds") else 413
        case err.StrictError():
            return 409
        case err.StoreError():
            return 507 if "full" in error.reason or "space" in error.reason else 500
        case _:
            return 400


def problem_response(error: err.GraphtideError) -> Response:
    """An error as JSON: https://www.rfc-editor.org/rfc/rfc9457"""
    status = status_of(error)
    body: dict[str, Any] = {"status": status, "title": error.message}
    if isinstance(error, err.StoreError):  # its message and hint name files of the server
        body["title"] = f"the store cannot be used: {error.reason}"
    elif error.hint is not None:
        body["hint"] = error.hint
    if isinstance(error, err.PlacedError):
        place = {"line": error.line, "column": error.column}
        body |= {name: number for name, number in place.items() if number is not None}
    headers = error.headers if isinstance(error, HttpProblem) else {}
    return json_response(body, status, media_type=PROBLEM_TYPE, headers=headers)


def json_response(
    body: object,
    status: int = 200,
    *,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response of JSON."""
    text = json.dumps(body, ensure_ascii=False)
    # A lone surrogate, from an escape in somebody's JSON, has no UTF-8.
    content = text.encode("utf-8", "backslashreplace")
    return Response(content, status, dict(headers or {}), media_type)


# --- bodies ---


class MediaType(NamedTuple):
    """A Content-Type: its type, in lower case, and its charset, if it has one."""

    name: str
    charset: str | None

    @classmethod
    def of(cls, request: Request) -> MediaType:
        """The type of a request's body; its text must be UTF-8.

        >>> from starlette.requests import Request
        >>> header = (b"content-type", b'Text/Turtle; charset="UTF-8"')
        >>> MediaType.of(Request({"type": "http", "headers": [header]}))
        MediaType(name='text/turtle', charset='utf-8')
        """
        name, *parameters = request.headers.get("content-type", "").split(";")
        charset = None
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "charset":
                charset = value.strip().strip('"').lower()
        if charset not in (None, "utf-8", "utf8", "us-ascii"):
            raise HttpProblem(415, "the charset of a body must be UTF-8")
        return cls(name.strip().lower(), charset)


DROPPED_BYTES: Final = 1 << 20
"""Bytes over the limit of a body that are read and dropped."""


async def read_body(request: Request, host: Host) -> bytes:
    """The whole body, if it comes in time and is not too large.

    Of a body that is too large, a part is read and dropped: while a client sends, the end of the
    connection may reach it before the answer that says why.
    """
    limits = host.settings
    most = limits.body_bytes + DROPPED_BYTES
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpProblem(415, "the body must not be compressed", hint="leave Content-Encoding out")
    too_large = HttpProblem(
        413,
        f"the body has more than {limits.body_bytes:,} bytes",
        hint="send it in parts, or start the server with a larger --max-body-bytes",
        headers={"connection": "close"},
    )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                if size <= limits.body_bytes:
                    parts.append(part)
    except TimeoutError:
        closes = {"connection": "close"}
        raise HttpProblem(408, "the body did not come in time", headers=closes) from None
    except ClientDisconnect:
        raise HttpProblem(400, "the client went away") from None
    if size > limits.body_bytes:
        raise too_large
    return b"".join(parts)


async def read_text(request: Request, host: Host) -> str:
    """The body as text."""
    try:
        return (await read_body(request, host)).decode("utf-8")
    except UnicodeDecodeError:
        raise HttpProblem(400, "the body is not UTF-8") from None


async def read_json(request: Request, host: Host) -> dict[str, Any]:
    """The body as a JSON object."""
    if MediaType.of(request).name != "application/json":
        raise HttpProblem(415, "the body must be application/json")
    text = await read_text(request, host)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise HttpProblem(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise HttpProblem(400, "the body must be a JSON object")
    return found


def text_field(body: Mapping[str, Any], name: str) -> str | None:
    """A field of a JSON object that is a text, if it is there."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise HttpProblem(400, f'"{name}" must be a text')
    return value


# --- content negotiation ---


def negotiate(accept: str | None, offered: Mapping[str, T]) -> tuple[str, T]:
    """The media type that an Accept header likes best, and what it stands for; ties: the first.

    >>> offered = {"application/json": "json", "text/csv": "csv"}
    >>> negotiate("text/*;q=0.5, application/json;q=0.4", offered)
    ('text/csv', 'csv')
    >>> negotiate(None, offered)
    ('application/json', 'json')
    """
    ranges = [_media_range(text) for text in (accept or "*/*").split(",")[:MAX_RANGES]]
    best, chosen = 0.0, None
    for media_type in offered:
        quality = _quality(media_type, ranges)
        if quality > best:
            best, chosen = quality, media_type
    if chosen is None:
        raise HttpProblem(
            406, "no format that the Accept header allows", hint=f"one of {', '.join(offered)}"
        )
    return chosen, offered[chosen]


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = text.split(";")
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                quality = min(max(float(value), 0.0), 1.0)
            except ValueError:
                quality = 0.0
    return name.strip().lower(), quality


def _quality(media_type: str, ranges: list[tuple[str, float]]) -> float:
    """The quality of the most specific range that a type is in."""
    kind = media_type.partition("/")[0]
    for wanted in (media_type, f"{kind}/*", "*/*"):
        found = [quality for name, quality in ranges if name == wanted]
        if found:
            return max(found)
    return 0.0
