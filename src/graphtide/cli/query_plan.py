"""The plan of a query, over windows or not, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.nodes import SelectQuery
from graphtide.plan.build import build_plan
from graphtide.plan.explain import explain
from graphtide.plan.patterns import DEFAULT_STRATEGY
from graphtide.streams.query import explain_windows

if TYPE_CHECKING:
    from graphtide.algebra.windows import WindowedQuery
    from graphtide.plan.patterns import Strategy


def plan_of(query: SelectQuery | WindowedQuery, strategy: Strategy | None = None) -> str:
    """The plan of a query, and before it the windows that it looks at, if any.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> print(plan_of(parse_standing("SELECT * { ?a <ex:p> ?b }")))
    strategy search
    answer ?a ?b
    └─ [1] input ?a :ex:p ?b
    """
    if isinstance(query, SelectQuery):
        return explain(build_plan(query, strategy or DEFAULT_STRATEGY))
    return f"{explain_windows(query)}\n{plan_of(query.select, strategy)}"
