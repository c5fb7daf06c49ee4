"""Memo: a function of terms applied to id columns, computed once per distinct argument tuple."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import expression_variables
from graphtide.kernel.batch import VALUES, Ints

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.expressions import Expression
    from graphtide.algebra.variables import Schema
    from graphtide.functions import Row
    from graphtide.rdf.dictionary import TermDictionary

MOST_REMEMBERED = 200_000
"""Distinct argument tuples whose results are kept; then the memo starts afresh."""

Columns = tuple[tuple[Var, int], ...]


def argument_columns(expression: Expression, schema: Schema) -> Columns:
    """The variables that an expression reads, with their columns in a batch."""
    read = expression_variables(expression)
    return tuple((var, VALUES + i) for i, var in enumerate(schema) if var in read)


class Memo:
    """Results (small integers or ids) of a function of a row, by the ids of its arguments."""

    def __init__(
        self, function: Callable[[Row], int], columns: Columns, terms: TermDictionary
    ) -> None:
        self._function = function
        self._variables = tuple(var for var, _ in columns)
        self._at = [at for _, at in columns]
        self._terms = terms
        self._known: dict[tuple[int, ...], int] = {}

    def __call__(self, batch: Ints) -> Ints:
        """One result per row of the batch."""
        if len(batch) < 32:
            return np.array(
                [self._one(tuple(row)) for row in batch[:, self._at].tolist()], np.int32
            )
        if not self._at:
            return np.full(len(batch), self._one(()), np.int32)
        distinct, places = np.unique(batch[:, self._at], axis=0, return_inverse=True)
        results = np.array([self._one(tuple(row)) for row in distinct.tolist()], np.int32)
        return results[places.reshape(-1)]

    def _one(self, ids: tuple[int, ...]) -> int:
        found = self._known.get(ids)
        if found is None:
            row = {
                var: self._terms.decode(i) for var, i in zip(self._variables, ids, strict=True) if i
            }
            found = self._function(row)
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[ids] = found
        return found
