"""Who may do what: tokens, addresses, hosts and origins; the access log.

A server that only this machine can reach needs no token, but a web page in somebody's browser can
reach it too. So a request must name this machine as its host, and come from its own page.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response

from graphtide.errors import GraphtideError
from graphtide.serve import http

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from graphtide.serve.metrics import ServerMetrics

Role = Literal["read", "write", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""What a token allows; each role includes those before it."""

OPEN: Final = frozenset({"/healthz", "/version", "/openapi.json"})
"""Paths that need no token."""

ASKING: Final = frozenset({"/sparql", "/subscriptions", "/api/query", "/api/why"})
"""Paths to which a POST changes nothing, or that check it themselves."""

CHECKING: Final = ("/subscriptions/", "/api/")
"""Beginnings of paths that check themselves what is more than to read."""

MIN_TOKEN: Final = 16
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")
_PREFLIGHT: Final = [
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, DELETE"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, idempotency-key, last-event-id",
    ),
    (b"access-control-max-age", b"600"),
]
LOG: Final = logging.getLogger("graphtide.serve.access")


def read_tokens(path: Path) -> dict[str, Role]:
    """The tokens of a file: a role and a token in each line; `#` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise GraphtideError(f"{path}: the tokens cannot be read") from None
    found: dict[str, Role] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        role = next((each for each in ROLES if each == words[0]), None)
        if role is None or len(words) != 2 or not words[1].isascii():
            raise GraphtideError(
                f"{path}:{number}: not a role and a token",
                hint="write lines such as `read 0123456789abcdef`; roles are read, write and admin",
            )
        if len(words[1]) < MIN_TOKEN:
            raise GraphtideError(
                f"{path}:{number}: the token is too short", hint=f"use {MIN_TOKEN} or more letters"
            )
        found[words[1]] = role
    if not found:
        raise GraphtideError(f"{path}: there is no token in it")
    return found


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(host: str, tokens: Mapping[str, Role], *, no_auth: bool) -> None:
    """Refuse an address that others can reach, unless there are tokens or that is asked for."""
    if not tokens and not no_auth and not is_loopback(host):
        raise GraphtideError(
            f"others can reach {host}, and there is no token",
            hint="give --token-file, or --no-auth if everybody may read and write",
        )


def require(scope: Scope, role: Role) -> None:
    """Refuse a request whose token does not allow something."""
    granted: Role | None = scope.get("graphtide.role", "admin")
    if granted is None:
        challenge = {"www-authenticate": 'Bearer realm="graphtide"'}
        raise http.HttpProblem(
            401, "a token is needed", hint="send Authorization: Bearer TOKEN", headers=challenge
        )
    if ROLES.index(granted) < ROLES.index(role):
        raise http.HttpProblem(403, f"the token does not allow to {role}")


def may(scope: Scope, role: Role) -> bool:
    """Whether the token of a request allows something."""
    granted: Role | None = scope.get("graphtide.role", "admin")
    return granted is not None and ROLES.index(granted) >= ROLES.index(role)


class Gate:
    """What every request passes: checks of host, origin and token; metrics and the access log.

    Whatever goes wrong inside becomes a response, and what was not foreseen a logged traceback.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: ServerMetrics,
        *,
        tokens: Mapping[str, Role],
        origins: frozenset[str],
        local: bool,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._tokens = {token.encode(): role for token, role in tokens.items()}
        self._origins = origins
        self._local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._headers(scope)]
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            self._check(scope)
            app = Response(status_code=204) if self._is_preflight(scope) else self._app
            await app(scope, receive, noting)
        except GraphtideError as error:
            await self._refuse(error, status, scope, receive, noting)
        except Exception:  # a bug: it must not end the connection without an answer
            LOG.exception("a request failed")
            bug = http.HttpProblem(500, "this is a bug in graphtide, please report it")
            await self._refuse(bug, status, scope, receive, noting)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.count_request(scope.get("method", "WEBSOCKET"), status, seconds)
            self._log(scope, status, seconds)

    async def _refuse(
        self, error: GraphtideError, status: int, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if scope["type"] == "websocket":
            if not status:
                await receive()  # the request to connect
                await send({"type": "websocket.close", "code": 1008, "reason": error.message[:100]})
        elif not status:
            await http.problem_response(error)(scope, receive, send)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        client = scope.get("client") or ("-", 0)
        # Neither headers nor parameters are logged, and no control character reaches the log.
        path = scope["path"].encode("unicode_escape").decode("ascii")[:1000]
        method = str(scope.get("method", "WEBSOCKET")).encode("unicode_escape").decode("ascii")
        LOG.info("%s %s %s %d %.1f ms", client[0], method[:20], path, status, seconds * 1000)

    def _headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        found = [(b"x-content-type-options", b"nosniff")]
        origin = Headers(scope=scope).get("origin")
        if origin is not None and origin in self._origins:
            if scope.get("method") == "OPTIONS":
                found += _PREFLIGHT
            found += [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"vary", b"origin"),
            ]
        return found

    def _is_preflight(self, scope: Scope) -> bool:
        """Whether a browser asks if a page of an allowed origin may send a request."""
        return scope.get("method") == "OPTIONS" and (
            Headers(scope=scope).get("origin", "") in self._origins
        )

    # --- checks ---

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may read another length: what follows could be taken for its next request.
            raise http.HttpProblem(
                400,
                "a request has either Content-Length or Transfer-Encoding",
                headers={"connection": "close"},
            )
        if self._local and not is_loopback(_host_name(headers.get("host", ""))):
            raise http.HttpProblem(
                421, "this server answers for this machine only", hint="ask it by localhost"
            )
        self._check_origin(scope, headers)
        scope["graphtide.role"] = self._role(scope, headers)
        path, method = scope["path"], scope.get("method", "GET")
        if path in OPEN or not _is_api(path) or method == "OPTIONS":
            return
        safe = method in ("GET", "HEAD") or path in ASKING
        require(scope, "read" if safe or path.startswith(CHECKING) else "write")

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """A page of another origin must not change anything, nor read by WebSocket."""
        origin = headers.get("origin")
        if origin in self._origins:
            return
        if origin is None:  # forms send none; browsers say all the same whose page it is
            same = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        else:
            same = len(origin) < 1000 and urlsplit(origin).netloc == headers.get("host", "")
        asks = scope.get("method", "WEBSOCKET") in ("GET", "HEAD")
        if not same and not (asks and not _acknowledges(scope["path"])):
            raise http.HttpProblem(
                403,
                "requests from pages of other origins are refused",
                hint="start the server with --cors ORIGIN",
            )

    def _role(self, scope: Scope, headers: Headers) -> Role | None:
        if not self._tokens:
            return "admin"
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            # EventSource and WebSocket of a browser cannot send headers.
            query = scope.get("query_string", b"").decode("latin-1")[:10_000]
            given = dict(parse_qsl(query)).get("access_token", "")
        found: Role | None = None
        for token, role in self._tokens.items():
            if hmac.compare_digest(token, given.strip().encode("utf-8", "replace")):
                found = role
        return found


def _is_api(path: str) -> bool:
    """Whether a path is one of data; others are files of the page, which need no token."""
    first = path.split("/")[1] if path.startswith("/") else path
    return first in (
        "sparql", "update", "store", "subscriptions", "changes", "streams", "metrics", "api",
        "checkpoint",
    )  # fmt: skip


def _acknowledges(path: str) -> bool:
    """Whether a GET may acknowledge deltas: those of a cursor up to the Last-Event-ID."""
    return path.startswith("/subscriptions/") and path.endswith("/events")


def _host_name(host: str) -> str:
    """The name in a Host header, without the port; empty if it is no name and port.

    >>> _host_name("[::1]:80"), _host_name("localhost:80"), _host_name("localhost:80@evil.example")
    ('[::1]', 'localhost', '')
    """
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1]
