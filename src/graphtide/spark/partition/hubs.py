"""Hubs: values so frequent that the partition of one of them would do most of the work.

A hash divides values, not rows: all quads with one value of a variable are in one part. For known
hubs a query is divided differently (as SharesSkew does it): the rows with that value by its other
variables. So the quads of the hub are spread by what else they bind, and copied along the other
dimensions. A grid of several dimensions spreads a hub by itself, and stays as it is.

Why it is exact. The partition of a row is still a function of its values: if it has a hub, the
point in the grid of that hub, otherwise the point in the grid of the query. A quad is sent to every
partition of a row that may consist of it, as far as its own values tell. Nothing else is needed for
the proof in `partition.grids`.

The hubs of a job are fixed, and part of the fingerprint of its checkpoint. So a quad that is
deleted goes where it was inserted, whether or not its value still is frequent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from graphtide.errors import GraphtideError
from graphtide.spark.partition.grids import Grid, Hub, lightest_grid, partition_variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.algebra import nodes as alg

MAX_HUBS: Final = 16
"""How many hubs a job may have: patterns that do not bind a hub are routed once more for each."""


def check_hubs(hubs: Sequence[str]) -> None:
    """Raise an error if there are too many.

    >>> check_hubs([f"<ex:{n}>" for n in range(17)])
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: 17 hubs: at most 16 are supported
      hint: name the most frequent values only
    """
    if len(hubs) > MAX_HUBS:
        raise GraphtideError(
            f"{len(hubs)} hubs: at most {MAX_HUBS} are supported",
            hint="name the most frequent values only",
        )


def with_hubs(
    grid: Grid,
    body: alg.Node,
    hubs: Sequence[str],
    partitions: int,
    sizes: Mapping[str, int] | None = None,
) -> Grid:
    """A grid of one dimension with hubs; any other, or if there is no other variable, as it is.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> from graphtide.spark.partition.grids import best_grid, body_of
    >>> star = parse_standing("SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?c }")
    >>> grid = with_hubs(best_grid(star, 4), body_of(star), ["<ex:hub>"], 4)
    >>> [(str(hub.variable), hub.grid.shares) for hub in grid.hubs]
    [('?a', (2, 2))]
    """
    if len(grid.variables) != 1 or not hubs:
        return grid
    (variable,) = grid.variables
    others = partition_variables(body) - {variable}
    divided = lightest_grid(body, others, partitions, sizes, {}, frozenset((variable,)))
    if not divided.variables:
        return grid
    return replace(grid, hubs=tuple(Hub(variable, term, divided) for term in hubs))
