"""Metrics of streaming queries, and a listener that serves them to Prometheus."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Literal

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from graphtide.errors import GraphtideError
from graphtide.spark import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark import SparkContext

    from graphtide.spark.job import JobSpec
    from graphtide.spark.partition.columns import TermColumn
    from graphtide.spark.state.cache import EngineCache

    Counts = Callable[[], Mapping[str, float]]


Kind = Literal["counter", "gauge"]
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Family:
    """One metric: its kind, its description, and its value for each set of labels."""

    kind: Kind
    description: str
    values: dict[Labels, float] = field(default_factory=dict)


class Metrics:
    """All metrics of a process; any thread may add and read.

    >>> metrics = Metrics()
    >>> metrics.add("graphtide_rows_total", "Rows read.", 3, query="sensors")
    >>> metrics.add("graphtide_rows_total", "Rows read.", 4, query="sensors")
    >>> print(metrics.text(), end="")
    # HELP graphtide_rows_total Rows read.
    # TYPE graphtide_rows_total counter
    graphtide_rows_total{query="sensors"} 7
    """

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._lock = threading.Lock()

    def add(self, name: str, description: str, amount: float, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            values = self._family(name, description, "counter").values
            key = tuple(sorted(labels.items()))
            values[key] = values.get(key, 0) + amount

    def set(
        self, name: str, description: str, value: float, kind: Kind = "gauge", **labels: str
    ) -> None:
        """Set a value; `kind` is "counter" for one that is counted elsewhere."""
        with self._lock:
            values = self._family(name, description, kind).values
            values[tuple(sorted(labels.items()))] = value

    def value(self, name: str, **labels: str) -> float:
        """The value of a metric for these labels; 0 if there is none."""
        with self._lock:
            found = self._families.get(name)
            return found.values.get(tuple(sorted(labels.items())), 0) if found else 0

    def text(self) -> str:
        """Everything in Prometheus' text format, version 0.0.4."""
        lines: list[str] = []
        with self._lock:
            for name, family in sorted(self._families.items()):
                if family.values:
                    lines.append(f"# HELP {name} {_escaped(family.description)}")
                    lines.append(f"# TYPE {name} {family.kind}")
                    lines += [_line(name, *item) for item in sorted(family.values.items())]
        return "".join(f"{line}\n" for line in lines)

    def _family(self, name: str, description: str, kind: Kind) -> Family:
        return self._families.setdefault(name, Family(kind, description))


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_quoted(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def number_at(report: Mapping[str, object], *path: str) -> float | None:
    """A number inside a report of nested dicts, or None if there is none.

    >>> number_at({"sink": {"numOutputRows": 3}}, "sink", "numOutputRows")
    3
    >>> number_at({"sink": None}, "sink", "numOutputRows")
    """
    found: object = report
    for key in path:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found if isinstance(found, (int, float)) else None


COUNTED: Final = {
    "hits": "hit",
    "caught_up": "behind",
    "rebuilt": "rebuilt",
    "started": "new",
}
"""The counters of an `EngineCache`, and their names in metrics."""


class CacheCounts:
    """Counters that travel with a stage, as Spark's accumulators.

    A micro-batch that is run again counts again: these are figures to look at, not results.
    """

    def __init__(self, context: SparkContext) -> None:
        self._counters = {name: context.accumulator(0) for name in COUNTED}
        self._loads = context.accumulator(load.Loads(), load.LatestLoads())
        self._terms = context.accumulator(load.TermCounts(), load.MergedCounts())
        self._reports: list[load.HubReport] = []

    def watch_hubs(self, job: JobSpec) -> None:
        """Report the hubs of a job (on the driver)."""
        self._reports.append(load.HubReport(job))

    def count(self, quads: Sequence[TermColumn]) -> None:
        """Count, from a worker, the terms of quads."""
        self._terms.add(load.count_terms(quads))

    def report(self, cache: EngineCache, before: Mapping[str, int], loads: load.Loads) -> None:
        """Add, from a worker, what its cache has counted since `before` (`counted_in`)."""
        now = counted_in(cache)
        for name, counter in self._counters.items():
            counter.add(now[name] - before[name])
        self._loads.add(loads)

    def values(self) -> Mapping[str, int]:
        """The sums so far (on the driver)."""
        return {word: self._counters[name].value for name, word in COUNTED.items()}

    def loads(self) -> Mapping[tuple[str, int], load.PartitionLoad]:
        """The last load of each partition of each stage (on the driver)."""
        known = dict(self._loads.value)
        return {(stage, number): each for (_, stage, number), each in sorted(known.items())}

    def state_bytes(self) -> Mapping[str, int]:
        """The bytes of the state of each stage, all its partitions together (on the driver)."""
        found: dict[str, int] = {}
        for (_, stage, _), each in dict(self._loads.value).items():
            found[stage] = found.get(stage, 0) + each.state
        return found

    def terms(self) -> load.TermCounts:
        """About how often each frequent term was seen (on the driver)."""
        return self._terms.value

    def hubs(self) -> Mapping[str, float]:
        """The share of each hub that a job was not given; new ones are logged (on the driver)."""
        counted = self.terms()
        return {hub: part for r in self._reports for hub, part in r.shares(counted).items()}


def counted_in(cache: EngineCache) -> dict[str, int]:
    """What a worker's cache has counted so far."""
    return {name: getattr(cache, name) for name in COUNTED}


CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

OBSERVATION: Final = "graphtide"
"""Numbers that a query observes (`DataFrame.observe`) become counters, if the name begins so."""

log = getLogger(__name__)


class MetricsListener(StreamingQueryListener):
    """Metrics of every streaming query of a session: `spark.streams.addListener(listener)`.

    `cache` gives how partitions found their engines (`CacheCounts.values`), `state` how large the
    state of each stage is (`CacheCounts.state_bytes`), `loads` what each partition did last
    (`CacheCounts.loads`), `hubs` the share of terms that should be hubs (`CacheCounts.hubs`, which
    also logs them); `totals` gives what is counted elsewhere on the driver, such as deltas and
    rejected rows.
    """

    def __init__(
        self,
        cache: Counts | None = None,
        totals: Counts | None = None,
        state: Counts | None = None,
        loads: Callable[[], Mapping[tuple[str, int], load.PartitionLoad]] | None = None,
        hubs: Counts | None = None,
    ) -> None:
        self.metrics = Metrics()
        self._cache = cache
        self._totals = totals
        self._state = state
        self._loads = loads
        self._hubs = hubs
        self._names: dict[str, str] = {}
        self._server: ThreadingHTTPServer | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """A query began (called by Spark)."""
        name = self._names[str(event.id)] = event.name or str(event.id)
        self.metrics.set("graphtide_query_up", "1 while the query runs.", 1, query=name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done (called by Spark)."""
        self.take(json.loads(event.progress.json))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing new has come in (called by Spark)."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """A query ended (called by Spark)."""
        failed = "yes" if event.exception else "no"
        self.metrics.add("graphtide_queries_ended_total", "Queries that ended.", 1, failed=failed)
        name = self._names.pop(str(event.id), str(event.id))
        self.metrics.set("graphtide_query_up", "1 while the query runs.", 0, query=name)

    def take(self, report: Mapping[str, Any]) -> None:
        """Take in Spark's report on a micro-batch."""
        name = str(report.get("name") or report["id"])
        self._take_input(report, name)
        for hub, share in (self._hubs() if self._hubs else {}).items():
            self.metrics.set("graphtide_hub_share", "Quads that have a term.", share, term=hub)
        self._take_state(report.get("stateOperators") or [], name)
        for observation, observed in (report.get("observedMetrics") or {}).items():
            if observation.startswith(OBSERVATION):
                self._take_observed(observed, name, int(number_at(report, "batchId") or 0))

    def _take_observed(self, observed: Mapping[str, Any], name: str, batch: int) -> None:
        for key in observed:
            amount = number_at(observed, key) or 0
            self.metrics.add(f"graphtide_{key}_total", f"Sum of {key}.", amount, query=name)
            if key == "rejected" and amount:
                log.warning("%s, micro-batch %d: %d rows rejected", name, batch, amount)

    def _take_input(self, report: Mapping[str, Any], name: str) -> None:
        add, put = self.metrics.add, self.metrics.set
        took = number_at(report, "durationMs", "triggerExecution") or 0
        rows = number_at(report, "numInputRows") or 0
        add("graphtide_batches_total", "Micro-batches that are done.", 1, query=name)
        add("graphtide_rows_total", "Changes read.", rows, query=name)
        add("graphtide_batch_seconds_total", "Time in micro-batches.", took / 1000, query=name)
        put("graphtide_batch_seconds", "Time of the last micro-batch.", took / 1000, query=name)
        batch = number_at(report, "batchId") or 0
        put("graphtide_batch", "Number of the last micro-batch.", batch, query=name)
        written = number_at(report, "sink", "numOutputRows")
        if written is not None and written >= 0:
            add("graphtide_written_rows_total", "Rows handed to the sink.", written, query=name)

    def _take_state(self, operators: list[Mapping[str, Any]], name: str) -> None:
        for number, operator in enumerate(operators):
            for key, metric, text in (
                ("numRowsTotal", "graphtide_state_rows", "Rows in the state store."),
                ("memoryUsedBytes", "graphtide_state_store_bytes", "Memory of the state store."),
            ):
                value = number_at(operator, key) or 0
                self.metrics.set(metric, text, value, query=name, operator=str(number))

    def text(self) -> str:
        """All metrics, with those that are counted elsewhere."""
        for found, count in (self._cache() if self._cache else {}).items():
            description = "How partitions found their engine."
            self.metrics.set("graphtide_cache_total", description, count, "counter", found=found)
        for stage, size in (self._state() if self._state else {}).items():
            description = "Bytes of chunks and heads that partitions hold."
            self.metrics.set("graphtide_state_bytes", description, size, stage=stage)
        for (stage, number), each in (self._loads() if self._loads else {}).items():
            self._set_load(stage, str(number), each)
        for key, count in (self._totals() if self._totals else {}).items():
            self.metrics.set(f"graphtide_{key}_total", f"Sum of {key}.", count, "counter")
        return self.metrics.text()

    def _set_load(self, stage: str, partition: str, each: load.PartitionLoad) -> None:
        for name, text, value in (
            ("bytes", "Input of the last micro-batch.", each.received),
            ("seconds", "Time of the last micro-batch.", each.seconds),
            ("state_bytes", "Bytes of the state.", each.state),
        ):
            of = f"graphtide_partition_{name}"
            self.metrics.set(of, text, value, stage=stage, partition=partition)

    def serve(self, port: int, host: str = "127.0.0.1") -> int:
        """Answer `GET /metrics` until `close`; port 0 chooses one. The port."""
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self.text))
        except OSError as error:
            raise GraphtideError(
                f"metrics cannot be served on {host}:{port}: {error.strerror}",
                hint="choose another port; 0 takes any that is free",
            ) from None
        threading.Thread(
            target=self._server.serve_forever, name="graphtide-metrics", daemon=True
        ).start()
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers with the metrics, whatever else is asked with 404."""

        def do_GET(self) -> None:
            """Answer one request."""
            if self.path.split("?")[0] not in ("/", "/metrics"):
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: a scrape comes every few seconds."""

    return Handler
