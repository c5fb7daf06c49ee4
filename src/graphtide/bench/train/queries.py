"""The queries of the benchmark, in the order in which its workloads register them.

A query's first variables identify a match: matches are sorted by them. Those that follow are values
which a repair needs. The queries under `inject` find where an error can be put in. The extra ones
are checked only: the benchmark has no transformations for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Query:
    """A query of the benchmark, by name; `keys` of its variables identify a match."""

    name: str
    keys: int
    inject_keys: int

    @property
    def text(self) -> str:
        """Finds the violations.

        >>> "NOT EXISTS" in find_query("RouteSensor").text
        True
        """
        return query_text(self.name)

    @property
    def inject_text(self) -> str:
        """Finds where an error can be put in.

        >>> ":requires" in find_query("RouteSensor").inject_text
        True
        """
        return query_text(self.name, "inject")


QUERIES: Final = (
    Query("ConnectedSegments", 7, 3),
    Query("PosLength", 1, 1),
    Query("RouteSensor", 4, 2),
    Query("SemaphoreNeighbor", 7, 2),
    Query("SwitchSet", 4, 1),
    Query("SwitchMonitored", 1, 1),
)


EXTRA: Final = (
    Query("ActiveRoute", 3, 0),
    Query("RouteReachability", 5, 0),
    Query("RouteLength", 1, 0),
)
"""Queries beside the six: with property paths and sums."""


def query_text(name: str, *folders: str) -> str:
    """The text of a query that comes with the package.

    >>> query_text("SwitchMonitored", "inject").splitlines()[0]
    '# Any switch can lose its sensors.'
    """
    return files(__package__).joinpath("queries", *folders, f"{name}.rq").read_text("utf-8")


def find_query(name: str) -> Query:
    """The query of that name.

    >>> find_query("PosLength").keys
    1
    """
    for query in (*QUERIES, *EXTRA):
        if query.name == name:
            return query
    known = ", ".join(query.name for query in (*QUERIES, *EXTRA))
    raise GraphtideError(f"query {name!r} is unknown", hint=f"choose from {known}, or all")


def find_queries(names: Iterable[str]) -> tuple[Query, ...]:
    """The queries of these names, in the benchmark's order; `all` stands for the six.

    >>> [query.name for query in find_queries(["SwitchSet", "PosLength"])]
    ['PosLength', 'SwitchSet']
    """
    wanted = {
        query for name in names for query in (QUERIES if name == "all" else [find_query(name)])
    }
    if not wanted:
        raise GraphtideError("no query is named", hint="name one or more, or all")
    return tuple(query for query in (*QUERIES, *EXTRA) if query in wanted)
