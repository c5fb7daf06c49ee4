"""Pinned plans: join trees that a user has chosen, and the planner keeps to.

A tree is written over the triple patterns of a query, numbered from 0 in the order of the text:
`((0, 1), 2)` joins the first two and then the third. `"written"` keeps a plan as its algebra was
written: no condition moves, no pattern is merged with another, each leaf is one input node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from graphtide.errors import GraphtideError
from graphtide.plan import make

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.physical import Physical

JoinTree = int | tuple["JoinTree", "JoinTree"]
Pin = JoinTree | Literal["written"]


def numbers_of(tree: JoinTree) -> Iterator[int]:
    """The pattern numbers of a join tree, from left to right.

    >>> list(numbers_of(((2, 0), 1)))
    [2, 0, 1]
    """
    match tree:
        case int() if not isinstance(tree, bool):
            yield tree
        case (left, right):
            yield from numbers_of(left)
            yield from numbers_of(right)
        case _:
            raise GraphtideError(
                f"{tree!r} is not a join tree", hint="nest pairs of pattern numbers, as ((0, 1), 2)"
            )


def join_as_pinned(patterns: Sequence[TriplePattern], tree: JoinTree) -> Physical:
    """The plan of a basic graph pattern that a join tree describes."""
    numbers = list(numbers_of(tree))
    if sorted(numbers) != list(range(len(patterns))):
        raise GraphtideError(
            f"the plan {tree!r} does not name each of the query's patterns 0 to "
            f"{len(patterns) - 1} once",
            hint="number the triple patterns of the query's largest group from 0 in text order",
        )

    def build(part: JoinTree) -> Physical:
        if isinstance(part, int):
            return make.search((patterns[part],))
        return make.join(build(part[0]), build(part[1]))

    return build(tree)
