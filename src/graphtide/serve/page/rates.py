"""Rows per second of each query, over the last minute: for the sparklines of the page."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from graphtide.kernel.batch import DIFF, TX

if TYPE_CHECKING:
    from collections.abc import Collection

    from graphtide.engine.results import Stats
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph

SECONDS: Final = 60
"""Seconds that a sparkline shows."""


class Rates:
    """Samples queries about once a second while somebody looks; never before.

    It reads the deltas that queries retain, so of more than those in one second the rest is not
    counted.
    """

    def __init__(self, graph: LiveGraph) -> None:
        self.changes_per_second = 0.0
        self._graph = graph
        self._sampled = 0.0
        self._changes = 0
        self._seen: dict[str, int] = {}
        self._added: dict[str, deque[int]] = {}
        self._removed: dict[str, deque[int]] = {}

    def sample(self, queries: Collection[Query], stats: Stats) -> None:
        """Count what came since the last sample, unless that was just now."""
        now = time.monotonic()
        passed = now - self._sampled
        if passed < 0.9:
            return
        changes = stats.inserted + stats.deleted
        fresh = self._sampled == 0
        self.changes_per_second = 0.0 if fresh else round((changes - self._changes) / passed, 1)
        self._sampled, self._changes = now, changes
        names = {query.name for query in queries}
        for name in self._seen.keys() - names:
            del self._seen[name], self._added[name], self._removed[name]
        for query in queries:
            self._count(query)

    def of(self, query: Query) -> tuple[list[int], list[int]]:
        """The added and the removed rows of each of the last seconds."""
        empty: deque[int] = deque()
        return (
            list(self._added.get(query.name, empty)),
            list(self._removed.get(query.name, empty)),
        )

    def _count(self, query: Query) -> None:
        """One more second of a query; at the first sight of it, only where it is."""
        name, history = query.name, query.history()
        seen = self._seen.get(name)
        last, added, removed = -1 if seen is None else seen, 0, 0
        for net, stamps in reversed(history):
            numbers = net[:, TX] + stamps.first
            last = max(last, int(numbers[-1]))
            if seen is None or numbers[-1] <= seen:
                break
            diffs = net[numbers > seen, DIFF]
            added += int(diffs[diffs > 0].sum())
            removed -= int(diffs[diffs < 0].sum())
        self._seen[name] = last
        for kept, number in ((self._added, added), (self._removed, removed)):
            kept.setdefault(name, deque([0] * SECONDS, SECONDS)).append(number)
