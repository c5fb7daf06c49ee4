"""The numbers of many facts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled
from graphtide.rules.kernel.facts import fact_number

if TYPE_CHECKING:
    from graphtide.arrays import Ints2, Longs1
    from graphtide.kernel.batch import Int
    from graphtide.rules.kernel.layout import FactArrays


@compiled
def fact_numbers(facts: FactArrays, rows: Ints2, many: Int, out: Longs1) -> None:
    """For each row, the number of the transaction since which the fact holds, or ABSENT."""
    for i in range(len(rows)):
        out[i] = fact_number(facts, rows[i], many)
