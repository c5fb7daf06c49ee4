"""How often cells found their engine: counted in the workers, added up on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import SparkContext

    from graphtide.spark.cache import Cache

COUNTED: Final = {
    "hits": "hit",
    "caught_up": "behind",
    "rebuilt": "rebuilt",
    "started": "new",
}
"""Attributes of a `Cache`, and the words by which they are shown."""


class CacheCounts:
    """Counters that travel with a stage, as Spark's accumulators.

    A micro-batch that is run again counts again: these are figures to look at, not results.
    """

    def __init__(self, context: SparkContext) -> None:
        self._counters = {name: context.accumulator(0) for name in COUNTED}

    def report(self, cache: Cache, before: Mapping[str, int]) -> None:
        """Tell, from a worker, what has happened in its cache since `before` (`counted_in`)."""
        now = counted_in(cache)
        for name, counter in self._counters.items():
            counter.add(now[name] - before[name])

    def values(self) -> Mapping[str, int]:
        """The sums so far (on the driver)."""
        return {word: self._counters[name].value for name, word in COUNTED.items()}


def counted_in(cache: Cache) -> dict[str, int]:
    """What a worker's cache has counted so far."""
    return {name: getattr(cache, name) for name in COUNTED}
