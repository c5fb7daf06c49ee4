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
from graphtide.plan.order import distinct, join_distinct
from graphtide.plan.patterns import connected
from graphtide.plan.physical import Search, Unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.algebra.variables import Schema
    from graphtide.plan.estimate import Estimator
    from graphtide.plan.physical import Physical


REPEATED = 0.5
"""The share of rows that differ up to which they are counted before a semijoin gets them."""


def searched(
    rows: Physical, keys: Schema, patterns: Sequence[TriplePattern], expect: Estimator
) -> Physical | None:
    """The keys of searched rows for which patterns have a match, by one search for both.

    It finds every match of a row, but stores no joined rows. None if it would be too large.
    """
    if not isinstance(rows, Search) or rows.checks:
        return None
    whole, *others = connected([*rows.patterns, *patterns])
    return None if others else _keys(make.search(whole), keys, rows, expect)


def _keys(found: Physical, keys: Schema, rows: Physical, expect: Estimator) -> Physical:
    """What was found for rows: their keys once, if otherwise each would be there several times."""
    every = expect(found)
    different = distinct(every, keys)
    different = different.scaled(min(1.0, expect(rows).rows / max(different.rows, 1e-9)))
    if isinstance(found, Unique) or different.rows > REPEATED * every.rows:
        return found
    once = make.unique(make.keep(found, keys))
    expect.learn(once, different)
    return once


def matched(rows: Physical, keys: Schema, parts: Sequence[Physical], expect: Estimator) -> Physical:
    """The keys of rows for which all parts have a match."""
    asked = make.keep(rows, keys)
    if not isinstance(rows, Search) or len(keys) < len(rows.schema):
        asked = make.unique(asked)  # rows of a search are different
    return _keys(join_distinct([asked, *parts], frozenset(keys), expect), keys, rows, expect)
