"""Hubs: values so frequent that the partition of one of them would do most of the work.

A hash divides values, not rows: all quads with one value of a variable are in one part. For known
hubs a query is divided differently (as SharesSkew does it): the rows with that value by its other
variables. So the quads of the hub's larger side are spread by what else they bind, and those of its
smaller side are copied. A grid of several dimensions spreads a hub by itself, and stays as it is.

Why it is exact. The partition of a row is still a function of its values: if it has a hub, the
point in the grid of that hub, otherwise the point in the grid of the query. A quad is sent to every
partition of a row that may consist of it, as far as its own values tell. Nothing else is needed for
the proof in `partition.grids`.

The hubs of a stream are fixed, and part of the fingerprint of its state. So a quad that is deleted
goes where it was inserted, whether or not its value still is frequent. With other hubs another
stream goes on from that state (`driver.rescale`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from graphtide.errors import GraphtideError, TermError
from graphtide.rdf.terms import parse_term
from graphtide.spark.partition.grids import Grid, Hub, Leaf, lightest_grid, partition_variables

if TYPE_CHECKING:
    from graphtide.algebra import nodes as alg
    from graphtide.algebra.expressions import Var

Hubs = Sequence[str] | Mapping[str, Mapping[str, int]]
"""Terms, perhaps with the number of their quads by predicate and position."""

HubCounts = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""The same as plain data."""

AUTO: Final = "auto"
"""Among the hubs of a run: find others in the stream, and divide them."""

MAX_HUBS: Final = 16
"""How many hubs a job may have: patterns that do not bind a hub are routed once more for each."""


def hub_counts(hubs: Hubs) -> HubCounts:
    """Hubs with their counts; an error if there are too many, or one is no term.

    >>> hub_counts(["<ex:a>"]), hub_counts({"<ex:a>": {"<ex:p> o": 7}})
    ((('<ex:a>', ()),), (('<ex:a>', (('<ex:p> o', 7),)),))
    >>> hub_counts([f"<ex:{n}>" for n in range(17)])
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
    known: Mapping[str, Mapping[str, int]] = (
        hubs if isinstance(hubs, Mapping) else {term: {} for term in hubs}
    )
    for term in known:
        _check_term(term)
    return tuple((term, tuple(sorted(counts.items()))) for term, counts in known.items())


def named_hubs(hubs: Hubs) -> HubCounts:
    """The hubs of a run, without "auto".

    >>> named_hubs("auto"), named_hubs(["auto", "<ex:a>"])
    ((), (('<ex:a>', ()),))
    """
    if hubs == AUTO:
        return ()
    if isinstance(hubs, Mapping):
        return hub_counts({term: counts for term, counts in hubs.items() if term != AUTO})
    return hub_counts([hubs] if isinstance(hubs, str) else [term for term in hubs if term != AUTO])


def _check_term(text: str) -> None:
    try:
        parse_term(text)
    except TermError as error:
        raise GraphtideError(
            f"hubs: {error.message}",
            hint="write it as in N-Triples, such as <http://example.org/hub>; run and graphtide "
            "run also take auto",
        ) from None


def frequent(
    counts: Mapping[str, Mapping[str, int]], total: int, partitions: int
) -> dict[str, Mapping[str, int]]:
    """Of `total` quads, the values of more than an even share, most frequent first.

    >>> frequent({"<ex:a>": {"<ex:p> o": 50}, "<ex:b>": {"<ex:p> o": 1}}, 100, 4)
    {'<ex:a>': {'<ex:p> o': 50}}
    """
    often = sorted(counts, key=lambda term: -sum(counts[term].values()))[:MAX_HUBS]
    return {t: counts[t] for t in often if sum(counts[t].values()) > total / partitions}


def with_hubs(grid: Grid, body: alg.Node, hubs: HubCounts, partitions: int) -> Grid:
    """A grid of one dimension with the hubs that pay; if there is no other variable, as it is.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> from graphtide.spark.partition.grids import best_grid, body_of
    >>> star = parse_standing("SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?c }")
    >>> def divided(counts):
    ...     hubs = hub_counts({"<ex:hub>": counts})
    ...     (hub,) = with_hubs(best_grid(star, 4), body_of(star), hubs, 4).hubs
    ...     return hub.grid.variables, hub.grid.shares
    >>> divided({}), divided({"<ex:p> s": 1000, "<ex:q> s": 1})
    (((Var(name='b'), Var(name='c')), (2, 2)), ((Var(name='b'),), (4,)))
    """
    if len(grid.variables) != 1:
        return grid
    candidates = [_candidate(grid, body, *hub, partitions) for hub in hubs]
    found = sorted((each for each in candidates if each.hub.grid.variables), key=lambda c: -c.quads)
    unknown = [each for each in found if not each.known]
    known = [each for each in found if each.known]
    # The busiest partition has the largest value that is no hub, and its part of every hub.
    busiest = [
        (known[at].quads if at < len(known) else 0) + sum(each.load for each in known[:at])
        for at in range(len(known) + 1)
    ]
    paying = known[: busiest.index(min(busiest))]
    return replace(grid, hubs=tuple(each.hub for each in (*unknown, *paying)))


class HubCandidate(NamedTuple):
    """A hub, the quads that it has, and how many more a partition gets if they are spread."""

    hub: Hub
    quads: int
    load: float
    known: bool


def _candidate(
    grid: Grid, body: alg.Node, term: str, counts: tuple[tuple[str, int], ...], partitions: int
) -> HubCandidate:
    """A hub with the grid that divides its quads best; of its larger side, so that is spread."""
    (variable,) = grid.variables
    known = dict(counts)

    def size(leaf: Leaf) -> int:
        return _quads(leaf, variable, known)

    others = partition_variables(body) - {variable}
    divided = lightest_grid(body, others, partitions, size, {}, frozenset((variable,)))
    quads = sum(map(size, divided.leaves))
    sent = sum(size(leaf) * divided.copies(leaf) for leaf in divided.leaves)
    load = sent / divided.partitions - quads / partitions
    return HubCandidate(Hub(variable, term, divided), quads, load, bool(counts))


def _quads(leaf: Leaf, variable: Var, counts: Mapping[str, int]) -> int:
    """The quads of a pattern that have the hub; of patterns without the variable, many."""
    pattern = leaf.pattern
    if variable not in (pattern.subject, pattern.object):
        return max(counts.values(), default=1)
    place = "s" if pattern.subject == variable else "o"
    return max(counts.get(f"{pattern.predicate} {place}", 1), 1)
