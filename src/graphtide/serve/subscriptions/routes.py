"""The routes of subscriptions: made by POST, read as server-sent events or by WebSocket.

They are read again and again: `Last-Event-ID` says where to go on.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Final

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from graphtide.errors import GraphtideError
from graphtide.serve import http
from graphtide.serve.access import Role, require
from graphtide.serve.subscriptions import channels as chn

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import Receive, Scope, Send

    from graphtide.serve.host import Host
    from graphtide.serve.subscriptions.hub import ClientSubscription, SubscriptionHub

_NUMBER: Final = re.compile(r"-?\d{1,18}")
_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
MAX_SENT: Final = 10_000
"""Characters of a text that a WebSocket's client may send: it only acknowledges."""


def routes(host: Host, hub: SubscriptionHub) -> list[http.BaseRoute]:
    """The routes of subscriptions."""

    async def subscribe(request: http.Request) -> http.Response:
        role: Role = request.scope.get("graphtide.role", "admin")
        made = await hub.add(await http.read_json(request, host), _client(request.scope), role)
        described = made.to_json()
        return http.json_response(described, 201, headers={"location": described["events"][:-7]})

    async def one(request: http.Request) -> http.Response:
        found = await hub.find(request.path_params["id"], _client(request.scope))
        if request.method == "DELETE":
            if found.cursor is not None:
                require(request.scope, found.role)
            await hub.end(found)
            return http.Response(status_code=204)
        return http.json_response(found.to_json())

    async def acknowledge(request: http.Request) -> http.Response:
        found = await hub.find(request.path_params["id"], _client(request.scope))
        seq = (await http.read_json(request, host)).get("seq")
        if found.cursor is None or not isinstance(seq, int) or isinstance(seq, bool):
            hint = 'give {"seq": NUMBER} to a subscription that was made with a "cursor"'
            raise http.HttpProblem(400, "there is nothing to acknowledge", hint=hint)
        await host.call(found.cursor.ack, min(seq, await host.call(_last, host)))
        return http.Response(status_code=204)

    async def why(request: http.Request) -> http.Response:
        found = await hub.find(request.path_params["id"], _client(request.scope))
        asked = await http.read_json(request, host)
        row = asked.get("row", {})
        if not isinstance(row, dict) or not all(isinstance(text, str) for text in row.values()):
            raise http.HttpProblem(400, '"row" must be an object of N-Triples texts')
        query = found.channel.query
        explain = query.why_not if asked.get("missing") is True else query.why
        explained = await host.call(explain, row)
        return http.json_response({"text": str(explained), **json.loads(explained.json())})

    async def events(request: http.Request) -> http.Response:
        found = await hub.find(request.path_params["id"], _client(request.scope))
        return EventStream(host, hub, found)

    async def socket(websocket: WebSocket) -> None:
        try:
            found = await hub.find(websocket.path_params["id"], _client(websocket.scope))
        except GraphtideError as error:
            await websocket.close(1008, error.message[:100])
        else:
            await _talk(websocket, host, hub, found)

    where = "/subscriptions/{id}"
    return [
        http.Route("/subscriptions", subscribe, methods=["POST"]),
        http.Route(where, one, methods=["GET", "DELETE"]),
        http.Route(where + "/events", events, methods=["GET"]),
        http.Route(where + "/ack", acknowledge, methods=["POST"]),
        http.Route(where + "/why", why, methods=["POST"]),
        WebSocketRoute(where + "/socket", socket),
    ]


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _last(host: Host) -> int:
    return host.graph.transactions - 1


def _last_id(given: str | None) -> int | None:
    """The sequence number that a client has last seen."""
    return int(given) if given is not None and _NUMBER.fullmatch(given) else None


class EventStream(http.Response):
    """Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

    def __init__(self, host: Host, hub: SubscriptionHub, subscription: ClientSubscription) -> None:
        super().__init__(media_type="text/event-stream")
        self._host = host
        self._hub = hub
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client goes away, or is sent away."""
        if scope["method"] == "HEAD":
            await _begin(send)
            await send({"type": "http.response.body"})
            return
        transport = chn.CONNECTIONS.get(scope.get("client") or ("", 0))
        direct = transport if scope.get("http_version") == "1.1" else None
        sink = chn.Outbox(transport) if direct is None else chn.Socket(direct)
        reader = chn.DeltaReader(sink, self._host.settings.unsent_bytes, self._host.metrics)
        request = http.Request(scope)
        last = request.headers.get("last-event-id") or request.query_params.get("last-event-id")
        try:
            block, seq = await self._hub.attach(self._subscription, reader, _last_id(last))
            await _begin(send)
            for part in (block.events, b""):  # the second waits until a large first one is gone
                await send({"type": "http.response.body", "body": part, "more_body": True})
            reader.start(seq)
            waits: list[Awaitable[object]] = [reader.ended, _disconnected(receive)]
            if isinstance(sink, chn.Outbox):
                waits.append(_send_events(sink, send))
            await _first_of(waits)
        finally:
            self._hub.detach(self._subscription, reader)
        if reader.ended.done() and reader.ended.result() == "slow":
            if transport is not None:
                await _disconnected(receive)
        elif reader.ended.done():
            goodbye = b"event: goodbye\ndata: %b\n\n" % _goodbye(reader)
            await send({"type": "http.response.body", "body": goodbye})


async def _begin(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_events(outbox: chn.Outbox, send: Send) -> None:
    while True:
        block = await outbox.next()
        await send({"type": "http.response.body", "body": block.events, "more_body": True})


async def _first_of(waits: list[Awaitable[object]]) -> None:
    """Wait until one is done, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks[1:]:  # the first is the end of the reader, which stays
            task.cancel()
        await asyncio.gather(*tasks[1:], return_exceptions=True)


def _goodbye(reader: chn.DeltaReader) -> bytes:
    return json.dumps({"event": "goodbye", "reason": reader.ended.result()}).encode()


# --- WebSocket ---


async def _talk(
    websocket: WebSocket, host: Host, hub: SubscriptionHub, subscription: ClientSubscription
) -> None:
    """Send messages as texts of JSON; a client may send `{"ack": SEQ}`."""
    last = websocket.query_params.get("last-event-id")
    outbox = chn.Outbox(chn.CONNECTIONS.get(websocket.scope.get("client") or ("", 0)))
    reader = chn.DeltaReader(outbox, host.settings.unsent_bytes, host.metrics)
    await websocket.accept()
    try:
        block, seq = await hub.attach(subscription, reader, _last_id(last))
        outbox.write(block)
        reader.start(seq)
        waits = (
            reader.ended,
            _send_texts(websocket, outbox),
            _acknowledged(websocket, host, subscription),
        )
        await _first_of(list(waits))
    finally:
        hub.detach(subscription, reader)
    try:
        if reader.ended.done() and reader.ended.result() != "slow":
            await websocket.send_text(_goodbye(reader).decode())
            await websocket.close(1001, reader.ended.result())
        else:
            await websocket.close(1008)
    except RuntimeError:
        pass  # the client has closed it


async def _send_texts(websocket: WebSocket, outbox: chn.Outbox) -> None:
    while True:
        for message in (await outbox.next()).messages:
            await websocket.send_text(message.data.decode())


async def _acknowledged(websocket: WebSocket, host: Host, subscription: ClientSubscription) -> None:
    while True:
        try:
            text = await websocket.receive_text()
            seq = json.loads(text[:MAX_SENT]).get("ack")
        except WebSocketDisconnect:
            return
        except (KeyError, ValueError, AttributeError, RecursionError):
            continue
        if subscription.cursor is not None and isinstance(seq, int):
            try:
                await host.call(subscription.cursor.ack, min(seq, await host.call(_last, host)))
            except GraphtideError:
                continue
