"""A server under load: subscribers of standing queries, beside clients that ask again.

Sensors of 50 lines send readings; each is a transaction of two changes, and changes the answer of
one query. Subscribers get every delta, and check that none is missing and all are in order. Beside
it, a server of the same kind with an Oxigraph store, whose clients ask once a second: they see what
is there then, and no delta.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Final

from graphtide.bench import report as reports
from graphtide.bench import serve_load as load
from graphtide.bench.harness import Benchmark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psutil
    from starlette.requests import Request

WAYS: Final = ("subscribe", "ask again")
DRAIN_SECONDS: Final = 20
START_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class ServeTask:
    """How clients get to know of changes, how many there are, and the load."""

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
    end_mb: float


def measure(task: ServeTask) -> ServeResult:
    """Measure a task: the server is a process of its own, all clients are in this one."""
    with _server(task) as (url, process):
        return asyncio.run((_subscribe if task.way == WAYS[0] else _ask)(task, url, process))


async def _subscribe(task: ServeTask, url: str, process: psutil.Process) -> ServeResult:
    work = load.Workload(task.queries, Random(task.seed))
    client, latencies = load.HttpClient(url), list[float]()
    setup = load.setup_update(task.queries).encode()
    await client.request("POST", "/update", "application/sparql-update", setup)
    readers = await load.subscribed(url, client, task.clients, task.queries, latencies)
    before, start_mb, began = process.cpu_times(), process.memory_info().rss / 1e6, perf_counter()
    rate = await load.write_changes(
        client,
        task.rate,
        task.seconds,
        lambda due: ("/changes", "application/rdf-patch", work.patch(due)),
    )
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
        *_summary(latencies), round(cores, 2), round(start_mb, 1), round(end_mb, 1),
    )  # fmt: skip


async def _ask(task: ServeTask, url: str, process: psutil.Process) -> ServeResult:
    work = load.Workload(task.queries, Random(task.seed))
    client, latencies = load.HttpClient(url), list[float]()
    kind = "application/sparql-update"
    await client.request("POST", "/update", kind, load.setup_update(task.queries).encode())
    before, start_mb = process.cpu_times(), process.memory_info().rss / 1e6
    polls = [
        load.poll(url, number, task.queries, task.seconds, latencies)
        for number in range(task.clients)
    ]
    writes = load.write_changes(
        client, task.rate, task.seconds, lambda due: ("/update", kind, work.update(due))
    )
    rate, *_ = await asyncio.gather(writes, *polls)
    after = process.cpu_times()
    client.close()
    expected = sum(work.sent[number % task.queries] for number in range(task.clients))
    cores = (after.user + after.system - before.user - before.system) / task.seconds
    end_mb = process.memory_info().rss / 1e6
    return ServeResult(
        task.way, task.clients, task.queries, round(rate), len(latencies),
        max(0, expected - len(latencies)), 0,
        *_summary(latencies), round(cores, 2), round(start_mb, 1), round(end_mb, 1),
    )  # fmt: skip


def _summary(latencies: list[float]) -> tuple[float, float]:
    """The median, and the value that 99 of 100 are below."""
    if len(latencies) < 2:
        return 0.0, 0.0
    return round(median(latencies), 1), round(quantiles(latencies, n=100)[98], 1)


# --- servers ---


@contextmanager
def _server(task: ServeTask) -> Iterator[tuple[str, psutil.Process]]:
    """A server in a process of its own; its URL and the process."""
    import psutil

    if task.way == WAYS[0]:
        options = ["--port", "0", "--max-subscriptions", str(task.clients + 1)]
        command = [sys.executable, "-m", "graphtide.cli.main", "serve", *options]
    else:
        command = [sys.executable, "-c", f"from {__name__} import peer; peer()"]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
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
            client = load.HttpClient(url)
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
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    from graphtide.serve.server import listen

    store = ox.Store()

    def answer(text: str) -> bytes:
        found = store.query(text)
        assert isinstance(found, ox.QuerySolutions)  # noqa: S101 - a SELECT
        return found.serialize(format=ox.QueryResultsFormat.JSON) or b""

    async def ask(request: Request) -> Response:
        content = await run_in_threadpool(answer, request.query_params["query"])
        return Response(content, media_type="application/sparql-results+json")

    async def update(request: Request) -> Response:
        await run_in_threadpool(store.update, (await request.body()).decode())
        return PlainTextResponse("ok")

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    routes = [
        Route("/sparql", ask),
        Route("/update", update, methods=["POST"]),
        Route("/healthz", healthz),
    ]
    bound = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        Starlette(routes=routes), http="h11", loop="asyncio", log_config=None, access_log=False
    )
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/ is open", file=sys.stderr, flush=True)
    uvicorn.Server(config).run(sockets=[bound])


# --- report ---


def report(results: Sequence[ServeResult]) -> reports.BenchReport:
    """What clients got, how late, and what it cost."""
    columns: Sequence[reports.TableColumn[ServeResult]] = [
        reports.TableColumn("clients", lambda r: f"{r.clients:,} {r.way}", left=True),
        reports.TableColumn("queries", lambda r: str(r.queries)),
        reports.TableColumn("changes/s", lambda r: reports.number(r.changes_per_second)),
        reports.TableColumn("received", lambda r: reports.number(r.received)),
        reports.TableColumn("missing", lambda r: reports.number(r.missing)),
        reports.TableColumn("out of order", lambda r: str(r.disordered)),
        reports.TableColumn("median ms", lambda r: f"{r.median_ms:.1f}"),
        reports.TableColumn("99 % ms", lambda r: f"{r.p99_ms:.1f}"),
        reports.TableColumn("cores of the server", lambda r: f"{r.server_cores:.2f}"),
        reports.TableColumn("MB", lambda r: f"{r.start_mb:.0f} → {r.end_mb:.0f}"),
    ]
    table = reports.make_table("A server and its clients", columns, results)
    return reports.BenchReport(reports.to_objects(results), [table], None, [])


def make_tasks(clients: int, queries: int, rate: int, seconds: float, seed: int) -> list[ServeTask]:
    """Both ways."""
    return [ServeTask(way, clients, queries, rate, seconds, seed) for way in WAYS]


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=ServeTask,
    result=ServeResult,
    measure=measure,
    report=report,
    warm_up=lambda task: replace(task, clients=2, queries=2, rate=200, seconds=1.0),
    hint="it needs graphtide[serve,bench], and as many open files as there are clients",
)
