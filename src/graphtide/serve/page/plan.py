"""The plan of a query for the page: a drawing with live numbers, and why it is so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphtide.plan import choose
from graphtide.plan.explain import drawing

if TYPE_CHECKING:
    from graphtide.engine.watch import Query

MAX_COUNTED: Final = 20_000
"""Quads up to which the rows of every node are counted again and again."""


def plan(query: Query) -> dict[str, Any]:
    """The plan of a query: nodes and edges, text, strategy, and why that was chosen."""
    with query.lock:
        facts = query.facts(actual=False)
        known = facts.statistics
        if known is not None and known.quads <= MAX_COUNTED:
            facts = query.facts(actual=True)
        asked = query.asked
        why = (
            ""
            if known is None
            else choose.reason(asked.select, query.plan, known, asked.strategy, asked.pinned)
        )
        size = query.cache_size()
        return {
            **drawing(query.plan, facts).json(),
            "text": query.explain(actual=facts.actual is not None),
            "strategy": query.strategy,
            "why": why,
            "stored": size.entries,
            "bytes": size.bytes,
        }
