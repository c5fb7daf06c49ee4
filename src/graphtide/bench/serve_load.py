"""Load for a server: subscribers that check every delta, clients that ask again, and a writer."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from time import monotonic_ns, perf_counter
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

SENSORS: Final = 20
"""Sensors of each line; a query is about the sensors of one line."""

POST_SECONDS: Final = 0.02
EX: Final = "http://example.org/"
_DELTA: Final = re.compile(rb'\nid: (\d+)\nevent: delta\ndata: [^\n]*?"added":[^\n]*?"(\d{12,})"')
_VALUE: Final = re.compile(rb'"(\d{12,})"')


def query_of(line: int) -> str:
    """The readings of the sensors of a line."""
    return f"SELECT ?s ?v {{ ?s <{EX}line> <{EX}line{line}> ; <{EX}reading> ?v }}"


def setup_update(queries: int) -> str:
    """The sensors of all lines, as SPARQL Update."""
    triples = [
        f"<{EX}s{n}> <{EX}line> <{EX}line{n % queries}> ; <{EX}reading> 0 ."
        for n in range(queries * SENSORS)
    ]
    return f"INSERT DATA {{ {' '.join(triples)} }}"


@dataclass
class Workload:
    """Readings of sensors, one after the other: each replaces the last one of its sensor."""

    queries: int
    random: Random
    sent: list[int] = field(default_factory=list)
    transactions: int = 0

    def __post_init__(self) -> None:
        self.sent = [0] * self.queries
        self._values = ["0"] * (self.queries * SENSORS)

    def step(self) -> tuple[int, str, str]:
        """A sensor, its reading so far, and the next one: the time, in ns."""
        sensor = self.random.randrange(len(self._values))
        old, new = self._values[sensor], str(monotonic_ns())
        self._values[sensor] = new
        self.sent[sensor % self.queries] += 1
        self.transactions += 1
        return sensor, old, new

    def patch(self, transactions: int) -> bytes:
        """The next readings as RDF Patch, one transaction each."""
        kind = "<http://www.w3.org/2001/XMLSchema#integer>"
        rows = []
        for _ in range(transactions):
            sensor, old, new = self.step()
            about = f"<{EX}s{sensor}> <{EX}reading>"
            rows.append(f'TX .\nD {about} "{old}"^^{kind} .\nA {about} "{new}"^^{kind} .\nTC .\n')
        return "".join(rows).encode()

    def update(self, transactions: int) -> bytes:
        """The next readings as one SPARQL Update."""
        parts = []
        for _ in range(transactions):
            sensor, old, new = self.step()
            about = f"<{EX}s{sensor}> <{EX}reading>"
            parts.append(f"DELETE DATA {{ {about} {old} }} ; INSERT DATA {{ {about} {new} }}")
        return " ; ".join(parts).encode()


class EventReader(asyncio.Protocol):
    """A subscriber: counts deltas, checks their order, and notes how old their readings are."""

    def __init__(self, path: str, latencies: list[float]) -> None:
        self.deltas = 0
        self.disordered = 0
        self.lost = False
        self.started = asyncio.get_running_loop().create_future()
        self._path = path
        self._latencies = latencies
        self._last = -1
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the events."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a socket
        self._transport = transport
        transport.write(f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """Take what has come; the start of an event that is not complete waits."""
        now, data = monotonic_ns(), self._rest + data
        if not self.started.done() and b"event: answer" in data:
            self.started.set_result(None)
        end = data.rfind(b"\n\n")
        self._rest = data[end + 1 :] if end >= 0 else data
        for seq, value in _DELTA.findall(data[: end + 1] if end >= 0 else b""):
            self.deltas += 1
            self.disordered += int(seq) <= self._last
            self._last = int(seq)
            self._latencies.append((now - int(value)) / 1e6)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """The server should not end it."""
        self.lost = True

    def close(self) -> None:
        """End the subscription."""
        self._transport.close()


class HttpClient:
    """One connection for requests, one after the other."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)

    async def request(self, method: str, path: str, kind: str = "", body: bytes = b"") -> bytes:
        """The body of a response."""
        if not hasattr(self, "_writer"):
            place = self._url.hostname, self._url.port
            self._reader, self._writer = await asyncio.open_connection(*place, limit=1 << 24)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        head += f"Content-Type: {kind}\r\n" if kind else ""
        self._writer.write(head.encode() + b"\r\n" + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", answer, re.IGNORECASE)
        found = await self._reader.readexactly(int(length[1])) if length else b""
        if not answer.startswith("HTTP/1.1 2"):
            raise RuntimeError(f"{path}: {answer.splitlines()[0]} {found[:200]!r}")
        return found

    def close(self) -> None:
        """Close the connection."""
        if hasattr(self, "_writer"):
            self._writer.close()


async def write_changes(
    client: HttpClient, rate: int, seconds: float, send: Callable[[int], tuple[str, str, bytes]]
) -> float:
    """Send changes at a rate, two for each transaction; the rate that was reached."""
    began, transactions = perf_counter(), 0
    while (spent := perf_counter() - began) < seconds:
        due = int(spent * rate / 2) - transactions
        if due > 0:
            transactions += due
            path, kind, body = send(due)
            await client.request("POST", path, kind, body)
        await asyncio.sleep(max(0.0, POST_SECONDS - (perf_counter() - began - spent)))
    return 2 * transactions / (perf_counter() - began)


async def subscribed(
    url: str, client: HttpClient, subscribers: int, queries: int, latencies: list[float]
) -> list[EventReader]:
    """Subscribers of all queries in turn, which have the first answer."""
    loop, place, readers = asyncio.get_running_loop(), urlsplit(url), []
    for number in range(subscribers):
        body = json.dumps({"query": query_of(number % queries)}).encode()
        made = json.loads(await client.request("POST", "/subscriptions", "application/json", body))
        path = made["events"]
        _, reader = await loop.create_connection(
            lambda path=path: EventReader(path, latencies), place.hostname, place.port
        )
        readers.append(reader)
    await asyncio.gather(*(reader.started for reader in readers))
    return readers


async def poll(url: str, number: int, queries: int, seconds: float, latencies: list[float]) -> int:
    """Ask one query once a second; how often. The newest reading shows how old the answer is."""
    client = HttpClient(url)
    path = f"/sparql?query={quote(query_of(number % queries))}"
    end, asked, newest = perf_counter() + seconds, 0, 0
    await asyncio.sleep((number % 997) / 997)
    while perf_counter() < end:
        began = perf_counter()
        values = [int(value) for value in _VALUE.findall(await client.request("GET", path))]
        now = monotonic_ns()
        # Each new reading has waited since it was sent; those in between were never seen.
        latencies.extend((now - value) / 1e6 for value in values if value > newest)
        newest = max(values, default=newest)
        asked += 1
        await asyncio.sleep(max(0.0, 1 - (perf_counter() - began)))
    client.close()
    return asked
