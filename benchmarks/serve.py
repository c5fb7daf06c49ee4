"""A server under load: subscribers of standing queries, beside clients that ask again.

Sensors of 50 lines send readings; each is a transaction of two changes, and changes the answer of
one query. Subscribers get every delta, and check that none is missing and all are in order. Beside
it, a server of the same kind with an Oxigraph store, whose clients ask once a second: they see what
is there then, and no delta.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import median, quantiles
from time import monotonic_ns, perf_counter
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from benchmarks.harness import ROOT, Benchmark, BenchmarkError
from benchmarks.report import Cell, Report, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import psutil  # type: ignore[import-untyped]

    from graphtide.serve import http

WAYS: Final = ("subscribe", "ask again")
DRAIN_SECONDS: Final = 20
START_SECONDS: Final = 120
SENSORS: Final = 20
"""Sensors of each line; a query is about the sensors of one line."""

HISTORY: Final = 1000
"""Delta rows that a query retains: so few that memory is at its height after a third of a run."""

POST_SECONDS: Final = 0.02
EX: Final = "http://example.org/"
SAMPLED: Final = 10
"""Every so many subscribers note how old the readings are; all check what they get."""

_DELTA: Final = re.compile(rb"\nid: (\d+)\nevent: delta\n")
_ADDED: Final = re.compile(rb'"added":[^\n]*?"(\d{12,})"')
_VALUE: Final = re.compile(rb'"(\d{12,})"')


@dataclass(frozen=True, slots=True)
class ServeTask:
    """How clients get to know of changes, how many there are, and the rate of changes."""

    way: str
    clients: int
    queries: int
    rate: int
    seconds: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ServeResult:
    """What clients have got, how old it was, and what that cost the server."""

    way: str
    clients: int
    queries: int
    changes_per_second: float
    received: int
    missing: int
    disordered: int
    median_ms: float
    p99_ms: float
    server_cores: float
    start_mb: float
    third_mb: float
    end_mb: float


def measure(task: ServeTask) -> ServeResult:
    """Measure a task: the server is a process of its own, all clients are in this one."""
    with _server(task) as (url, process):
        return asyncio.run((_subscribe if task.way == WAYS[0] else _ask)(task, url, process))


async def _subscribe(task: ServeTask, url: str, process: psutil.Process) -> ServeResult:
    work = Workload(task.queries, Random(task.seed))
    client, latencies = HttpClient(url), list[float]()
    setup = setup_update(task.queries).encode()
    await client.request("POST", "/update", "application/sparql-update", setup)
    readers = await subscribed(url, client, task.clients, task.queries, latencies)
    before, start_mb, began = process.cpu_times(), process.memory_info().rss / 1e6, perf_counter()
    writes = write_changes(
        client,
        task.rate,
        task.seconds,
        lambda due: ("/changes", "application/rdf-patch", work.patch(due)),
    )
    rate, third_mb = await asyncio.gather(writes, memory_after(process, task.seconds / 3))
    expected = [work.sent[number % task.queries] for number in range(task.clients)]
    for _ in range(DRAIN_SECONDS * 20):
        if all(r.deltas >= n or r.lost for r, n in zip(readers, expected, strict=True)):
            break
        await asyncio.sleep(0.05)
    after, spent = process.cpu_times(), perf_counter() - began
    missing = sum(abs(n - r.deltas) for r, n in zip(readers, expected, strict=True))
    received, disordered = sum(r.deltas for r in readers), sum(r.disordered for r in readers)
    end_mb = process.memory_info().rss / 1e6
    for reader in readers:
        reader.close()
    client.close()
    cores = (after.user + after.system - before.user - before.system) / spent
    return ServeResult(
        task.way, task.clients, task.queries, round(rate), received, missing, disordered,
        *_summary(latencies), round(cores, 2), round(start_mb, 1), third_mb, round(end_mb, 1),
    )  # fmt: skip


async def _ask(task: ServeTask, url: str, process: psutil.Process) -> ServeResult:
    work = Workload(task.queries, Random(task.seed))
    client, latencies = HttpClient(url), list[float]()
    kind = "application/sparql-update"
    await client.request("POST", "/update", kind, setup_update(task.queries).encode())
    before, start_mb = process.cpu_times(), process.memory_info().rss / 1e6
    polls = [
        poll(url, number, task.queries, task.seconds, latencies) for number in range(task.clients)
    ]
    writes = write_changes(
        client, task.rate, task.seconds, lambda due: ("/update", kind, work.update(due))
    )
    third = memory_after(process, task.seconds / 3)
    rate, third_mb, *_ = await asyncio.gather(writes, third, *polls)
    after = process.cpu_times()
    client.close()
    expected = sum(work.sent[number % task.queries] for number in range(task.clients))
    cores = (after.user + after.system - before.user - before.system) / task.seconds
    end_mb = process.memory_info().rss / 1e6
    return ServeResult(
        task.way, task.clients, task.queries, round(rate), len(latencies),
        max(0, expected - len(latencies)), 0,
        *_summary(latencies), round(cores, 2), round(start_mb, 1), third_mb, round(end_mb, 1),
    )  # fmt: skip


async def memory_after(process: psutil.Process, seconds: float) -> float:
    """Megabytes of a process, so many seconds from now."""
    await asyncio.sleep(seconds)
    size: int = process.memory_info().rss
    return round(size / 1e6, 1)


def _summary(latencies: list[float]) -> tuple[float, float]:
    """The median, and the value that 99 of 100 are below."""
    if len(latencies) < 2:
        return 0.0, 0.0
    return round(median(latencies), 1), round(quantiles(latencies, n=100)[98], 1)


# --- load ---


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
    """A subscriber: counts deltas, checks their order, and may note how old their readings are."""

    def __init__(self, path: str, latencies: list[float] | None) -> None:
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
        end = data.rfind(b"\n\n") + 1
        self._rest = data[end:] if end else data
        whole = data[:end]
        numbers = list(map(int, _DELTA.findall(whole)))
        self.deltas += len(numbers)
        for number in numbers:
            self.disordered += number <= self._last
            self._last = number
        if self._latencies is not None:
            self._latencies += [(now - int(value)) / 1e6 for value in _ADDED.findall(whole)]

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
    loop, place = asyncio.get_running_loop(), urlsplit(url)
    readers: list[EventReader] = []
    for number in range(subscribers):
        body = json.dumps({"query": query_of(number % queries)}).encode()
        made = json.loads(await client.request("POST", "/subscriptions", "application/json", body))
        make = partial(EventReader, made["events"], None if number % SAMPLED else latencies)
        _, reader = await loop.create_connection(make, str(place.hostname), int(place.port or 80))
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


# --- servers ---


@contextmanager
def _server(task: ServeTask) -> Iterator[tuple[str, psutil.Process]]:
    """A server in a process of its own; its URL and the process."""
    import psutil

    if task.way == WAYS[0]:
        options = ["--port", "0", "--max-subscriptions", str(task.clients + 1)]
        options += ["--max-history", str(HISTORY)]
        command = [sys.executable, "-m", "graphtide.cli.main", "serve", *options]
    else:
        command = [sys.executable, "-c", f"from {__name__} import peer; peer()"]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as process:
        assert process.stderr is not None  # noqa: S101 - a pipe
        try:
            url = process.stderr.readline().split("/ is open")[0]
            drained = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)  # noqa: S607 - the access log
            asyncio.run(_answers(url))
            yield url, psutil.Process(process.pid)
        finally:
            process.kill()
            process.stderr.close()
            drained.wait()


async def _answers(url: str) -> None:
    """Wait until a server answers."""
    for _ in range(START_SECONDS * 10):
        try:
            client = HttpClient(url)
            await client.request("GET", "/healthz")
        except OSError:
            await asyncio.sleep(0.1)
        else:
            client.close()
            return


def peer() -> None:
    """Serve an Oxigraph store with the same HTTP server: queries and updates."""
    import pyoxigraph as ox
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool

    from graphtide.serve import http
    from graphtide.serve.server import listen

    store = ox.Store()

    def answer(text: str) -> bytes:
        found = store.query(text)
        assert isinstance(found, ox.QuerySolutions)  # noqa: S101 - a SELECT
        return found.serialize(format=ox.QueryResultsFormat.JSON) or b""

    async def ask(request: http.Request) -> http.Response:
        content = await run_in_threadpool(answer, request.query_params["query"])
        return http.Response(content, media_type="application/sparql-results+json")

    async def update(request: http.Request) -> http.Response:
        await run_in_threadpool(store.update, (await request.body()).decode())
        return http.Response("ok")

    async def healthz(_: http.Request) -> http.Response:
        return http.Response("ok")

    routes = [
        http.Route("/sparql", ask),
        http.Route("/update", update, methods=["POST"]),
        http.Route("/healthz", healthz),
    ]
    bound = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        Starlette(routes=routes), http="h11", loop="asyncio", log_config=None, access_log=False
    )
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/ is open", file=sys.stderr, flush=True)
    uvicorn.Server(config).run(sockets=[bound])


# --- report ---


def report(results: Sequence[ServeResult]) -> Report:
    """What clients got, how late, and what it cost."""
    rows: list[dict[str, Cell]] = [
        {
            "way": r.way,
            "clients": r.clients,
            "queries": r.queries,
            "changes/s": round(r.changes_per_second),
            "received": r.received,
            "missing": r.missing,
            "out of order": r.disordered,
            "median ms": r.median_ms,
            "99 % ms": r.p99_ms,
            "cores of the server": r.server_cores,
            "MB: start, third, end": f"{r.start_mb:.0f}, {r.third_mb:.0f}, {r.end_mb:.0f}",
        }
        for r in results
    ]
    return Report([Table("A server and its clients", rows)])


def check_delivery(results: Sequence[ServeResult]) -> None:
    """Raise unless subscribers got every delta, in order."""
    for r in results:
        if r.way == WAYS[0] and (r.missing or r.disordered):
            raise BenchmarkError(f"{r.missing} deltas are missing, {r.disordered} out of order")


def make_tasks(
    clients: int = 1000, queries: int = 50, rate: int = 5000, seconds: float = 30.0, seed: int = 0
) -> list[ServeTask]:
    """Both ways: so many clients share the queries; changes a second, and how long they go on."""
    return [ServeTask(way, clients, queries, rate, seconds, seed) for way in WAYS]


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=ServeTask,
    result=ServeResult,
    tasks=make_tasks,
    small={"clients": 6, "queries": 3, "rate": 200, "seconds": 2.0},
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, clients=2, queries=2, rate=200, seconds=1.0)],
    check=check_delivery,
)
