"""The plans that the benchmark can run a query with, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from graphtide.algebra.nodes import SelectQuery
from graphtide.bench.train.layouts import LAYOUTS
from graphtide.bench.train.segment_links import keep_segment_links
from graphtide.errors import GraphtideError
from graphtide.lang.sparql import parse_query
from graphtide.plan.patterns import STRATEGIES, Strategy

if TYPE_CHECKING:
    from graphtide.algebra.relational import Relation
    from graphtide.datasets.queries import TrainQuery
    from graphtide.engine import LiveGraph, Watch

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


def plan_for(query: TrainQuery, plan: str) -> Relation | None:
    """The layout of that name for a query; None lets the planner choose.

    >>> from graphtide.datasets.queries import find_query
    >>> plan_for(find_query("RouteSensor"), "A").attributes
    ('route', 'swP', 'sw', 'sensor')
    >>> plan_for(find_query("PosLength"), "A")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: PosLength has no plan named 'A'
      hint: choose from default
    """
    layouts = LAYOUTS.get(query.name, {})
    if plan in layouts:
        return layouts[plan]()
    if plan != DEFAULT_PLAN:
        known = ", ".join((DEFAULT_PLAN, *layouts))
        raise GraphtideError(
            f"{query.name} has no plan named {plan!r}", hint=f"choose from {known}"
        )
    return None


def check_plan(query: TrainQuery, strategy: Choice, plan: str) -> None:
    """Raise unless a query can be run with a strategy and a plan."""
    if plan_for(query, plan) is not None and strategy == "search":
        raise GraphtideError(
            f"plan {plan} of {query.name} is a network of joins, which a search does without",
            hint="use the strategy rete or auto with plans by name",
        )


def watch_query(graph: LiveGraph, query: TrainQuery, strategy: Choice, plan: str) -> Watch:
    """Register a query with a strategy and a plan."""
    if query.name == "RouteLength":
        keep_segment_links(graph)
    layout = plan_for(query, plan)
    if layout is not None:
        parsed = parse_query(query.text)
        return graph.watch(
            SelectQuery(parsed.variables, layout.node, query.text),
            plan="written",
            name=query.name,
            history=UNBOUNDED,
        )
    return graph.watch(
        query.text,
        strategy=None if strategy == "auto" else strategy,
        name=query.name,
        history=UNBOUNDED,
    )
