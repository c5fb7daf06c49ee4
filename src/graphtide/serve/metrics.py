"""Metrics of the server and its graph, in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import resource
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.graph import LiveGraph

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "WEBSOCKET"})


class Metrics:
    """Counters of a server; they are counted on the event loop only."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.request_seconds = 0.0
        self.readers = 0
        self.subscriptions = 0
        self.events = 0
        self.event_bytes = 0
        self.slow_readers = 0
        self.changes = 0

    def count_request(self, method: str, status: int, seconds: float) -> None:
        """Count a request that is done; unknown methods are one label, so that labels are few."""
        self.requests[method if method in _METHODS else "OTHER", status] += 1
        self.request_seconds += seconds

    def text(self, graph: LiveGraph) -> str:
        """All metrics now."""
        return "".join(self._lines(graph))

    def _lines(self, graph: LiveGraph) -> Iterator[str]:
        labelled = {
            f'{{method="{method}",status="{status}"}}': count
            for (method, status), count in sorted(self.requests.items())
        }
        yield from _metric("http_requests_total", "counter", "Requests that are done", labelled)
        for name, kind, what, value in (
            ("http_request_seconds_total", "counter", "Time of all requests", self.request_seconds),
            ("subscribers", "gauge", "Connections that read deltas", self.readers),
            ("subscriptions", "gauge", "Subscriptions", self.subscriptions),
            ("events_total", "counter", "Events sent to subscribers", self.events),
            ("event_bytes_total", "counter", "Bytes sent to subscribers", self.event_bytes),
            ("slow_subscribers_total", "counter", "Subscribers cut off", self.slow_readers),
            ("changes_total", "counter", "Changes received by /changes", self.changes),
        ):
            yield from _metric(name, kind, what, {"": value})
        stats = graph.stats()
        for name in (
            "quads",
            "terms",
            "queries",
            "clock",
            "quad_bytes",
            "term_bytes",
            "query_bytes",
        ):
            value = getattr(stats, name)
            yield from _metric(f"graph_{name}", "gauge", f"Of the graph: {name}", {"": value})
        for name in ("transactions", "inserted", "deleted", "redundant"):
            value = getattr(stats, name)
            yield from _metric(
                f"graph_{name}_total", "counter", f"Of the graph: {name}", {"": value}
            )
        rows = {f'{{query="{_escaped(q.name)}"}}': q.count() for q in graph.queries}
        yield from _metric("query_rows", "gauge", "Rows of the answers of queries", rows)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        yield from _metric("peak_memory_bytes", "gauge", "Largest resident memory", {"": peak})


def _metric(name: str, kind: str, what: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP graphtide_{name} {what}\n# TYPE graphtide_{name} {kind}\n"
    for labels, value in values.items():
        yield f"graphtide_{name}{labels} {value}\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
