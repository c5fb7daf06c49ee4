"""Channels: one standing query and those who read its deltas.

What is sent is encoded once per channel, whatever the number of readers. Nothing waits without
bound: a reader that lets more pile up than allowed is cut off.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

from graphtide.engine.results import Delta
from graphtide.errors import GraphtideError
from graphtide.rdf.formats.results import json_term
from graphtide.rdf.terms import parse_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from graphtide.engine.results import WindowResult
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph
    from graphtide.rdf.terms import Term
    from graphtide.serve.metrics import ServerMetrics

CONNECTIONS: Final[WeakValueDictionary[tuple[str, int], asyncio.Transport]] = WeakValueDictionary()
"""The sockets of this process's clients, by address."""

SHORT: Final = 200
"""Characters of a term whose JSON is kept for the next time."""

CACHED_TERMS: Final = 1 << 13
"""Terms whose JSON is kept: a few megabytes, which measured values fill whatever the number."""

HEARTBEAT: Final = b": heartbeat\n\n"


class DeltaMessage(NamedTuple):
    """What subscribers are told: the whole answer, or what a transaction changed in it."""

    seq: int
    kind: str
    data: bytes

    @property
    def frame(self) -> bytes:
        """The message as a server-sent event."""
        return b"id: %d\nevent: %b\ndata: %b\n\n" % (self.seq, self.kind.encode(), self.data)


class Block:
    """Consecutive messages, encoded once for all readers."""

    def __init__(self, messages: Sequence[DeltaMessage], comment: bytes = b"") -> None:
        self.messages = messages
        self._comment = comment

    @cached_property
    def events(self) -> bytes:
        """The messages as server-sent events."""
        return self._comment + b"".join(message.frame for message in self.messages)

    @cached_property
    def chunk(self) -> bytes:
        """The events as one chunk of an HTTP body."""
        return b"%x\r\n%b\r\n" % (len(self.events), self.events)

    def after(self, seq: int) -> Block:
        """The messages with a later sequence number."""
        if not self.messages or self.messages[0].seq > seq:
            return self
        return Block([message for message in self.messages if message.seq > seq])


# --- encoding ---


def term_json(term: Term) -> str:
    """A term as in SPARQL's JSON."""
    return (_short_json if len(str(term)) <= SHORT else _short_json.__wrapped__)(term)


@lru_cache(maxsize=CACHED_TERMS)
def _short_json(term: Term) -> str:
    """Terms come again and again; long ones are not kept."""
    return json.dumps(json_term(term), ensure_ascii=False)


class Encoder:
    """Rows of a query as SPARQL's JSON; rows that are there twice are written twice."""

    def __init__(self, variables: Sequence[str]) -> None:
        self._head = json.dumps({"vars": list(variables)}, ensure_ascii=False)
        self._names = {name: json.dumps(name, ensure_ascii=False) for name in variables}

    def rows(self, rows: Iterable[tuple[Mapping[str, Term | None], int]]) -> str:
        """Rows, each with its number of copies."""
        found: list[str] = []
        for row, copies in rows:
            terms = (
                f"{self._names[name]}:{term_json(term)}"
                for name, term in row.items()
                if term is not None
            )
            found += [f"{{{','.join(terms)}}}"] * copies
        return f'{{"head":{self._head},"results":{{"bindings":[{",".join(found)}]}}}}'

    def delta(self, delta: Delta) -> DeltaMessage:
        """The delta of one transaction."""
        rows = list(delta)
        added = self.rows((row.row, row.diff) for row in rows if row.diff > 0)
        removed = self.rows((row.row, -row.diff) for row in rows if row.diff < 0)
        data = (
            f'{{"event":"delta","seq":{delta.seq},"time":{delta.time},"tx":{delta.tx},'
            f'"added":{added},"removed":{removed}}}'
        )
        return DeltaMessage(delta.seq, "delta", data.encode("utf-8", "backslashreplace"))

    def whole(
        self, kind: str, seq: int, time: int, rows: Iterable[Mapping[str, Term | None]]
    ) -> DeltaMessage:
        """A whole answer, or what windows put out when they closed."""
        added = self.rows((row, 1) for row in rows)
        data = f'{{"event":"{kind}","seq":{seq},"time":{time},"added":{added}}}'
        return DeltaMessage(seq, kind, data.encode("utf-8", "backslashreplace"))


# --- readers ---


class ReaderSink(Protocol):
    """Where the messages of a reader go."""

    def write(self, block: Block) -> None:
        """Send messages, or let them wait."""

    @property
    def unsent(self) -> int:
        """Bytes that wait."""

    def abort(self) -> None:
        """Cut the connection off, without what waits."""


class Socket:
    """Sends server-sent events to the socket itself, as chunks of a response that has begun.

    One write per reader is all there is to do for a thousand of them; the server's own way to send
    a part of a body takes several times as long.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, block: Block) -> None:
        """Send messages, or let them wait in the transport."""
        if not self._transport.is_closing():
            self._transport.write(block.chunk)

    @property
    def unsent(self) -> int:
        """Bytes that wait."""
        return self._transport.get_write_buffer_size()

    def abort(self) -> None:
        """Cut the connection off."""
        self._transport.abort()


class Outbox:
    """Messages that wait for the task that sends them."""

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self.unsent = 0
        self._transport = transport
        self._blocks: deque[Block] = deque()
        self._ready = asyncio.Event()

    def write(self, block: Block) -> None:
        """Let messages wait."""
        self._blocks.append(block)
        self.unsent += len(block.events)
        self._ready.set()

    async def next(self) -> Block:
        """The next messages."""
        while not self._blocks:
            self._ready.clear()
            await self._ready.wait()
        block = self._blocks.popleft()
        self.unsent -= len(block.events)
        return block

    def abort(self) -> None:
        """Cut the connection off."""
        self._blocks.clear()
        if self._transport is not None:
            self._transport.abort()


class DeltaReader:
    """One connection that reads a channel.

    Until it has its first messages, later ones are held back. `ended` has the reason of its end.
    """

    def __init__(self, sink: ReaderSink, limit: int, metrics: ServerMetrics) -> None:
        self.sink = sink
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._limit = limit
        self._metrics = metrics
        self._seq: int | None = None
        self._held: list[Block] = []

    def start(self, seq: int) -> None:
        """Everything up to a sequence number is sent; go on with what was held back."""
        self._seq = seq
        held, self._held = self._held, []
        for block in held:
            self.put(block)

    def put(self, block: Block) -> None:
        """Send messages that the reader does not have yet."""
        if self.ended.done():
            return
        if self._seq is None:
            self._held.append(block)
            unsent = sum(len(each.events) for each in self._held)
        else:
            block = block.after(self._seq)
            if block.messages:
                self._seq = block.messages[-1].seq
            if block.events:
                self.sink.write(block)
            self._metrics.events += len(block.messages)
            self._metrics.event_bytes += len(block.events)
            unsent = self.sink.unsent
        if unsent > self._limit:
            self._metrics.slow_readers += 1
            self.end("slow")
            self.sink.abort()

    def end(self, reason: str) -> None:
        """Let the connection end."""
        if not self.ended.done():
            self.ended.set_result(reason)


# --- channels ---


class Channel:
    """A standing query, whose deltas go to all its readers; `owned` if it ends with them."""

    def __init__(self, channel_id: str, query: Query, *, owned: bool) -> None:
        self.id = channel_id
        self.query = query
        self.owned = owned
        self.readers: set[DeltaReader] = set()
        self.seq: int | None = None
        """How far the readers have been told; None while there is none."""
        self._encoder = Encoder(query.variables)

    def deliver(self, messages: Sequence[DeltaMessage]) -> None:
        """Send messages to all readers."""
        block = Block(messages)
        for reader in list(self.readers):
            reader.put(block)

    # What follows runs in threads.

    def news(self, graph: LiveGraph) -> list[DeltaMessage]:
        """What has happened since last asked; after an error, the next call has it."""
        with graph.lock:
            before, now = self.seq, self._now(graph)
            missed: list[Delta | WindowResult] = []
            if before is not None and before != now:
                try:
                    missed = self._missed(before)
                except GraphtideError:  # more has changed than the query retains
                    whole = [self.answer(graph)]
                    self.seq = now
                    return whole
            self.seq = now
        return [self._encoded(each) for each in missed]

    def _now(self, graph: LiveGraph) -> int:
        """The last transaction; of windows, the time of the last result."""
        if self.query.windows is None:
            return graph.transactions - 1
        last = self.query.last_result()
        return -1 if last is None else last.time

    def first(self, graph: LiveGraph, last: int | None) -> tuple[list[DeltaMessage], int]:
        """What a reader gets first: what it has missed, or the answer; and how far that goes."""
        with graph.lock:
            now = self._now(graph)
            if self.seq is None:
                self.seq = now
            if last is not None and -1 <= last <= now:
                try:
                    return [self._encoded(each) for each in self._missed(last)], now
                except GraphtideError:
                    pass  # it begins anew
            return [self.answer(graph)], now

    def _missed(self, last: int) -> list[Delta | WindowResult]:
        """The deltas after a sequence number, or the results after a time."""
        if self.query.windows is None:
            return list(self.query.since(last))
        results = self.query.results()
        if self.query.evicted and results[0].time > last:
            raise GraphtideError("these results are no longer retained")
        return [result for result in results if result.time > last]

    def _encoded(self, missed: Delta | WindowResult) -> DeltaMessage:
        if isinstance(missed, Delta):
            return self._encoder.delta(missed)
        return self._encoder.whole("result", missed.time, missed.time, missed)

    def answer(self, graph: LiveGraph) -> DeltaMessage:
        """The whole answer now."""
        now = self._now(graph)
        if self.query.windows is not None:
            result = self.query.last_result()
            return self._encoder.whole("answer", now, now, () if result is None else result)
        table = self.query.table(terms=True)
        columns = {
            name: [None if text is None else parse_term(text) for text in column.to_pylist()]
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        listed = zip(*columns.values(), strict=True) if columns else [()] * table.num_rows
        rows = [dict(zip(columns, row, strict=True)) for row in listed]
        return self._encoder.whole("answer", now, graph.clock, rows)
