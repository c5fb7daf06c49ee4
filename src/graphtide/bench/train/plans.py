"""The plans that the benchmark can run a query with, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from graphtide.errors import GraphtideError
from graphtide.plan.patterns import STRATEGIES, Strategy

if TYPE_CHECKING:
    from graphtide.bench.train.queries import Query
    from graphtide.engine import LiveGraph, Watch
    from graphtide.plan.pinned import Pin

Choice: TypeAlias = Strategy | Literal["auto"]
"""A strategy, or `auto` for the planner's choice."""

CHOICES: Final[tuple[Choice, ...]] = ("auto", *STRATEGIES)

DEFAULT_PLAN = "default"
"""The plan that the planner chooses."""

UNBOUNDED = 2**62
"""The driver takes deltas out after every round: nothing must be forgotten before."""


def check_strategy(text: str) -> Choice:
    """The strategy of that name.

    >>> check_strategy("rete")
    'rete'
    """
    if text not in CHOICES:
        known = ", ".join(CHOICES)
        raise GraphtideError(f"strategy {text!r} is unknown", hint=f"choose from {known}")
    return text


def plan_for(query: Query, plan: str) -> Pin | None:
    """The plan of that name for a query; None lets the planner choose.

    >>> from graphtide.bench.train.queries import find_query
    >>> plan_for(find_query("PosLength"), "A")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: PosLength has no plan named 'A'
      hint: choose from default
    """
    if plan != DEFAULT_PLAN:
        raise GraphtideError(
            f"{query.name} has no plan named {plan!r}", hint=f"choose from {DEFAULT_PLAN}"
        )
    return None


def watch_query(graph: LiveGraph, query: Query, strategy: Choice, plan: str) -> Watch:
    """Register a query with a strategy and a plan."""
    return graph.watch(
        query.text,
        strategy=None if strategy == "auto" else strategy,
        plan=plan_for(query, plan),
        name=query.name,
        history=UNBOUNDED,
    )
