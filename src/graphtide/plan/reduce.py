"""Semijoin reduction: (NOT) EXISTS by joins that start from the rows in question.

A semijoin stores all keys for which its right side has a match, which may be far more than there
are rows to test: all pairs with a common tag, where few pairs are asked for. So the distinct keys
of the rows are joined with the patterns, in the best order. Columns that no later join reads are
dropped early, and equal rows counted once: whether there is a match does not depend on how many
there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.plan import make
from graphtide.plan.order import join_distinct
from graphtide.plan.physical import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.variables import Schema
    from graphtide.plan.estimate import Estimator
    from graphtide.plan.physical import Physical


def matched(rows: Physical, keys: Schema, parts: Sequence[Physical], expect: Estimator) -> Physical:
    """The keys of rows for which all parts have a match."""
    asked = make.keep(rows, keys)
    if not isinstance(rows, Search) or len(keys) < len(rows.schema):
        asked = make.unique(asked)  # rows of a search are different
    return join_distinct([asked, *parts], frozenset(keys), expect)
