"""The numbers of many facts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled
from graphtide.rules.kernel.facts import fact_number

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.rules.kernel.layout import FactArrays


@compiled
def fact_numbers(facts: FactArrays, rows: Ints, many: Int, out: Longs) -> None:
    """For each row, the number of the transaction since which the fact holds, or ABSENT."""
    for i in range(len(rows)):
        out[i] = fact_number(facts, rows[i], many)
