"""Subscriptions: who reads the deltas of which standing query, and the task that sends them.

Equal queries are one standing query, whatever the number of subscriptions.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from graphtide.serve import http
from graphtide.serve.subscriptions import channels as chn

if TYPE_CHECKING:
    from graphtide.engine.query_host import QueryCursor
    from graphtide.engine.watch import Query
    from graphtide.serve.access import Role
    from graphtide.serve.host import Host

PREFIX: Final = "subscription-"
"""Of the names of queries that subscribers asked for."""

READER_PREFIX: Final = "reader-"
"""The same beside the process that writes, which may register the others."""

LOG: Final = logging.getLogger("graphtide.serve")
STOP_SECONDS: Final = 10
"""How long the round under way may take when the server stops."""

POLL_SECONDS: Final = 0.1
"""How often the graph is looked at, for changes that did not come through the server."""

PAUSE_SECONDS: Final = 0.01
"""Between two rounds of messages: what happens in between is sent together."""

MAX_TEXT: Final = 1 << 20
_CURSOR: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(slots=True)
class ClientSubscription:
    """What a client reads: a channel, and where it stands if it has a cursor."""

    id: str
    channel: chn.Channel
    client: str
    role: Role = "write"
    """What the token of its maker allows; it is not known of one from before a restart."""
    cursor: QueryCursor | None = None
    readers: set[chn.DeltaReader] = field(default_factory=set)
    used: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, Any]:
        """What the client is told of it."""
        where = f"/subscriptions/{self.id}"
        return {
            "id": self.id,
            "query": self.channel.query.name,
            "variables": list(self.channel.query.variables),
            "events": f"{where}/events",
            "socket": f"{where}/socket",
        }


class SubscriptionHub:
    """All subscriptions of a server, their channels, and the task that feeds them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._channels: dict[str, chn.Channel] = {}
        self._subscriptions: dict[str, ClientSubscription] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._changing = asyncio.Lock()
        """Held while a channel is made or ended: others may ask for the same meanwhile."""

    # --- the task ---

    async def start(self) -> None:
        """Begin to feed the channels; those of a store's earlier subscribers wait for them."""
        for query, has_cursor in await self._host.call(self._restored):
            channel = self._channel(query.name.removeprefix(PREFIX), query, owned=True)
            if not has_cursor:  # it ends as if it had been subscribed to just now
                restored = ClientSubscription(f"{channel.id}.restored", channel, "")
                self._subscriptions[restored.id] = restored
        self._task = asyncio.create_task(self._feed())

    def _restored(self) -> list[tuple[Query, bool]]:
        """The queries of subscribers from before a restart, and whether one has a cursor."""
        graph, named = self._host.graph, set[str]()
        if self._host.read_only:
            return []  # they are subscribers of the process that writes
        if self._host.durable:
            named = {query for query, _ in graph.store.store.journal.cursors()}
        found = [query for query in graph.queries if query.name.startswith(PREFIX)]
        return [(query, query.name in named) for query in found]

    async def stop(self) -> None:
        """Say goodbye to all readers."""
        self._stopping = True
        self._host.changed.set()
        if self._task is not None:  # a round that is cut off loses what it has taken from queries
            await asyncio.wait([self._task], timeout=STOP_SECONDS)
            self._task.cancel()
        await self._round()  # what the last transactions changed
        for channel in self._channels.values():
            for reader in list(channel.readers):
                reader.end("shutdown")

    async def _feed(self) -> None:
        beat = checked = time.monotonic()
        while not self._stopping:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._host.changed.wait()
            except TimeoutError:
                pass
            self._host.changed.clear()
            await self._host.follow()
            await self._round()
            now = time.monotonic()
            if now - beat >= self._host.settings.heartbeat_seconds:
                beat = now
                for channel in self._channels.values():
                    for reader in list(channel.readers):
                        reader.put(chn.Block((), chn.HEARTBEAT))
            if now - checked >= 1:
                checked = now
                await self._end_idle(now - self._host.settings.idle_seconds)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _round(self) -> None:
        """Send what has happened since the last round."""
        read = [channel for channel in self._channels.values() if channel.readers]
        if not read:
            return
        news = await self._host.call(lambda: [self._news(channel) for channel in read])
        for channel, messages in zip(read, news, strict=True):
            if messages is None:
                self._forget(channel)
            elif messages:
                channel.deliver(messages)

    def _forget(self, channel: chn.Channel) -> None:
        """Somebody else has ended the query: end its subscriptions."""
        self._channels.pop(channel.id, None)
        for each in list(self._subscriptions.values()):
            if each.channel is channel:
                del self._subscriptions[each.id]
        for reader in list(channel.readers):
            reader.end("ended")

    def _news(self, channel: chn.Channel) -> list[chn.DeltaMessage] | None:
        """What has happened in a channel; None if its query has ended."""
        try:
            if channel.query in self._host.graph.queries:
                return channel.news(self._host.graph)
        except Exception:
            LOG.exception("the deltas of %s cannot be read", channel.query.name)
            return []
        return None

    async def _end_idle(self, before: float) -> None:
        for each in list(self._subscriptions.values()):
            if not each.readers and each.cursor is None and each.used < before:
                await self.end(each)

    # --- subscriptions ---

    async def add(self, body: dict[str, Any], client: str, role: Role) -> ClientSubscription:
        """Make a subscription to a query, given by its text or its name."""
        text, name = http.text_field(body, "query"), http.text_field(body, "name")
        cursor = http.text_field(body, "cursor")
        if (text is None) == (name is None):
            raise http.HttpProblem(400, 'give either "query" or "name"')
        keeps = self._host.durable and not self._host.read_only
        if cursor is not None and not (keeps and _CURSOR.fullmatch(cursor)):
            hint = "letters, digits, - and _, on a server with --store that is not --read-only"
            raise http.HttpProblem(400, "there cannot be a cursor of this name", hint=hint)
        self._check_number(client)
        if text is not None and len(text) > MAX_TEXT:
            raise http.HttpProblem(413, f"the query has more than {MAX_TEXT:,} characters")
        channel_id = _id_of(text, name)
        token = secrets.token_urlsafe(18) if cursor is None else f"c~{cursor}"
        async with self._changing:
            channel = self._channels.get(channel_id)
            if channel is None:
                query = await self._host.call(self._watch, channel_id, text, name)
                channel = self._channel(channel_id, query, owned=text is not None)
            if cursor is not None and role == "read":
                known = await self._host.call(self._has_cursor, channel.query.name, cursor)
                role = "write" if known else role
            return await self._made(f"{channel_id}.{token}", channel, client, cursor, role)

    def _check_number(self, client: str) -> None:
        """A client has a bounded number of subscriptions; those with cursors count, too."""
        mine = sum(each.client == client for each in self._subscriptions.values())
        if mine >= self._host.settings.subscriptions:
            raise http.HttpProblem(
                429,
                f"this client has {mine} subscriptions already",
                hint="end some, or start the server with a larger --max-subscriptions",
            )

    def _watch(self, channel_id: str, text: str | None, name: str | None) -> Query:
        if text is not None:
            prefix = READER_PREFIX if self._host.read_only else PREFIX
            history = self._host.settings.history
            return self._host.graph.watch(text, name=prefix + channel_id, history=history)
        found = self._host.queries().get(name or "")
        if found is None:
            raise http.HttpProblem(404, "there is no query of that name")
        return found

    def _channel(self, channel_id: str, query: Query, *, owned: bool) -> chn.Channel:
        """A new channel for a query."""
        self._channels[channel_id] = chn.Channel(channel_id, query, owned=owned)
        return self._channels[channel_id]

    async def _made(
        self,
        subscription_id: str,
        channel: chn.Channel,
        client: str,
        cursor: str | None,
        role: Role = "write",
    ) -> ClientSubscription:
        known = self._subscriptions.get(subscription_id)
        if known is None:
            made = None
            if cursor is not None:
                made = await self._host.call(channel.query.cursor, cursor)
            known = ClientSubscription(subscription_id, channel, client, role, made)
            self._subscriptions[subscription_id] = known
            self._host.metrics.subscriptions = len(self._subscriptions)
        return known

    async def find(self, subscription_id: str, client: str) -> ClientSubscription:
        """A subscription; with a store, also one from before a restart."""
        found = self._subscriptions.get(subscription_id)
        if found is not None:
            return found
        channel_id, _, token = subscription_id.partition(".")
        async with self._changing:
            channel = self._channels.get(channel_id)
            if channel is None and self._host.durable:
                names = await self._host.call(self._host.queries)
                named = [query for name, query in names.items() if _id_of(None, name) == channel_id]
                channel = self._channel(channel_id, named[0], owned=False) if named else None
            if channel is None or not token or not self._host.durable:
                raise http.HttpProblem(404, "there is no such subscription", hint="subscribe again")
            self._check_number(client)
            cursor = token.removeprefix("c~") if token.startswith("c~") else None
            if cursor is not None and not await self._host.call(
                self._has_cursor, channel.query.name, cursor
            ):
                raise http.HttpProblem(404, "this subscription has ended", hint="subscribe again")
            return await self._made(subscription_id, channel, client, cursor)

    def _has_cursor(self, query: str, name: str) -> bool:
        return (query, name) in self._host.graph.store.store.journal.cursors()

    async def end(self, subscription: ClientSubscription) -> None:
        """End a subscription with its cursor, and its query if no other subscription needs it."""
        channel = subscription.channel
        async with self._changing:
            if self._subscriptions.pop(subscription.id, None) is None:
                return
            self._host.metrics.subscriptions = len(self._subscriptions)
            for reader in list(subscription.readers):
                reader.end("ended")
            if subscription.cursor is not None:
                await self._host.call(subscription.cursor.release)
            if any(each.channel is channel for each in self._subscriptions.values()):
                return
            self._channels.pop(channel.id, None)
            if channel.owned:
                await self._host.call(channel.query.close)

    # --- reading ---

    async def attach(
        self, subscription: ClientSubscription, reader: chn.DeltaReader, last: int | None
    ) -> tuple[chn.Block, int]:
        """Let a reader read; what it gets first, and how far that goes."""
        channel = subscription.channel
        subscription.readers.add(reader)
        channel.readers.add(reader)
        self._host.metrics.readers += 1
        if self._stopping:
            raise http.HttpProblem(503, "the server is stopping")
        if subscription.cursor is not None:
            if last is not None:
                await self._host.call(subscription.cursor.ack, last)
            elif subscription.cursor.acknowledged >= -1:
                last = subscription.cursor.acknowledged
        messages, seq = await self._host.call(channel.first, self._host.graph, last)
        self._host.metrics.events += len(messages)
        return chn.Block(messages, b"retry: 1000\n\n"), seq

    def detach(self, subscription: ClientSubscription, reader: chn.DeltaReader) -> None:
        """A connection has ended."""
        channel = subscription.channel
        channel.readers.discard(reader)
        if not channel.readers:
            channel.seq = None  # nobody asks for what happens now
        subscription.readers.discard(reader)
        subscription.used = time.monotonic()
        self._host.metrics.readers -= 1


def _id_of(text: str | None, name: str | None) -> str:
    """The id of the channel of a query: the same after a restart."""
    asked = f"{name}\0{text}".encode("utf-8", "backslashreplace")
    return sha256(asked).hexdigest()[:24]
