"""Connect: which windows have to close together, and which streams they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.engine.windows.continuous import Continuous
    from graphtide.engine.windows.stream import Stream


def connected(queries: Iterable[Continuous]) -> list[tuple[set[int], dict[str, Stream]]]:
    """Windows that queries have in common or side by side, and all streams of these queries.

    All windows of a query are as of the same time when it reports, so none of them may go ahead of
    another; nor of those that the other goes with for the sake of further queries.
    """
    groups: list[tuple[set[int], dict[str, Stream]]] = []
    for query in queries:
        windows, streams = set(query.windows), dict(query.streams)
        apart = []
        for group in groups:
            if group[0].isdisjoint(windows):
                apart.append(group)
            else:
                windows |= group[0]
                streams |= group[1]
        groups = [*apart, (windows, streams)]
    return groups
