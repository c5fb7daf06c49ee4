"""The queries that come with the datasets, by name.

The texts are SPARQL files below `sparql/`, a folder for each dataset:

- train: the six well-formedness queries of the Train Benchmark and three more. Those below `inject`
  find the places where an error can be injected.
- lubm: the queries of paper 5 on LUBM. Q2, Q4 and Q5 are stars, Q6 is a path, Q1, Q3 and Q7 are
  triangles with types at their corners.
- seas: the queries of paper 5 on power measurements. Q1 matches all of them, Q2 few.
- gesture: the postures of the right arm, from which `program_text` makes a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

from benchmarks.harness import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterable

BODY: Final = "http://example.org/body#"
"""The vocabulary of the gesture dataset."""

LUBM_QUERIES: Final = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7")
SEAS_QUERIES: Final = ("Q1", "Q2")

FORWARD_START, FORWARD_END, BACKWARD_START = "ForwardStart", "ForwardEnd", "BackwardStart"
POSTURES: Final = (FORWARD_START, FORWARD_END, BACKWARD_START)
"""Two postures of the gesture, and one that is noise for it."""

NAMES: Final = {"lubm": LUBM_QUERIES, "seas": SEAS_QUERIES, "gesture": POSTURES}

GESTURE: Final = "Forward"

GESTURE_EVENTS: Final = """
EVENT StartFound(?body) ON APPEAR OF ForwardStart(?body)
EVENT StartLost(?body)  ON DISAPPEAR OF ForwardStart(?body)
EVENT EndFound(?body)   ON APPEAR OF ForwardEnd(?body)
EVENT EndLost(?body)    ON DISAPPEAR OF ForwardEnd(?body)
EVENT BackFound(?body)  ON APPEAR OF BackwardStart(?body)
EVENT BackLost(?body)   ON DISAPPEAR OF BackwardStart(?body)

PATTERN Forward(?body) AS
  StartFound(?body) -> StartLost(?body) -> NOT BackFound(?body) -> EndFound(?body) -> EndLost(?body)
  CONTEXT IMMEDIATE PER ?body
"""
"""IMMEDIATE PER ?body: any other event of the same body cancels the match."""


def query_text(dataset: Literal["lubm", "seas", "gesture"], name: str) -> str:
    """The text of a query.

    >>> "ub:FullProfessor" in query_text("lubm", "Q4")
    True
    """
    known = NAMES[dataset]
    if name not in known:
        raise BenchmarkError(f"unknown query {name!r}", hint=f"choose from {', '.join(known)}")
    return _read(dataset, name)


@cache
def _read(*path: str) -> str:
    return files(__package__).joinpath("sparql", *path[:-1], f"{path[-1]}.rq").read_text("utf-8")


def program_text(*, smoothed: bool = False) -> str:
    """A program with the posture queries, their events and the gesture.

    With `smoothed`, postures go by the smoothed angle of the arm, which the frames must have.

    >>> from graphtide.lang.tide.program import Program
    >>> [pattern.name for pattern in Program.parse(program_text()).patterns]
    ['Forward']
    """
    folder = ("gesture", "smoothed") if smoothed else ("gesture",)
    queries = (f"QUERY {name} AS {_select(_read(*folder, name))}" for name in POSTURES)
    return "\n".join((f"PREFIX : <{BODY}>", *queries, GESTURE_EVENTS))


def _select(text: str) -> str:
    """A query without its prefixes, which the program declares."""
    return text[text.index("SELECT") :]


# ---- the Train Benchmark -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrainQuery:
    """A query of the Train Benchmark.

    Its first `keys` variables identify a match, and matches are sorted by them; the others are
    values that a repair needs. `inject_keys` is the same number of its injection query.
    """

    name: str
    keys: int
    inject_keys: int

    @property
    def text(self) -> str:
        """Finds the violations.

        >>> "NOT EXISTS" in find_query("RouteSensor").text
        True
        """
        return train_query_text(self.name)

    @property
    def inject_text(self) -> str:
        """Finds the places where an error can be injected.

        >>> ":requires" in find_query("RouteSensor").inject_text
        True
        """
        return train_query_text(self.name, "inject")


TRAIN_QUERIES: Final = (
    TrainQuery("ConnectedSegments", 7, 3),
    TrainQuery("PosLength", 1, 1),
    TrainQuery("RouteSensor", 4, 2),
    TrainQuery("SemaphoreNeighbor", 7, 2),
    TrainQuery("SwitchSet", 4, 1),
    TrainQuery("SwitchMonitored", 1, 1),
)
"""In the order in which the benchmark's workloads register them."""

EXTRA_QUERIES: Final = (
    TrainQuery("ActiveRoute", 3, 0),
    TrainQuery("RouteReachability", 5, 0),
    TrainQuery("RouteLength", 1, 0),
)
"""Queries with property paths and sums; the benchmark has no transformations for them."""


def train_query_text(name: str, *folders: str) -> str:
    """The text of a query of the Train Benchmark.

    >>> train_query_text("SwitchMonitored", "inject").splitlines()[0]
    '# Any switch can lose its sensors.'
    """
    return _read("train", *folders, name)


def find_query(name: str) -> TrainQuery:
    """The query of the Train Benchmark with that name.

    >>> find_query("PosLength").keys
    1
    """
    for query in (*TRAIN_QUERIES, *EXTRA_QUERIES):
        if query.name == name:
            return query
    known = ", ".join(query.name for query in (*TRAIN_QUERIES, *EXTRA_QUERIES))
    raise BenchmarkError(f"unknown query {name!r}", hint=f"choose from {known}, or all")


def find_queries(names: Iterable[str]) -> tuple[TrainQuery, ...]:
    """The queries with these names, in the benchmark's order; `all` stands for the six.

    >>> [query.name for query in find_queries(["SwitchSet", "PosLength"])]
    ['PosLength', 'SwitchSet']
    """
    wanted = {
        query
        for name in names
        for query in (TRAIN_QUERIES if name == "all" else [find_query(name)])
    }
    if not wanted:
        raise BenchmarkError("no query given", hint="name one or more, or all")
    return tuple(query for query in (*TRAIN_QUERIES, *EXTRA_QUERIES) if query in wanted)
