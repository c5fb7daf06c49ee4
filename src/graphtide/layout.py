"""A plain layered layout of a directed graph: where boxes, labels and lines are drawn.

Nodes are in layers, an edge leads from one layer to the next. A longer edge is broken by a point in
each layer between, and a label is such a point with a size. So lines run between the layers, or
through one at a place of their own: they cross neither boxes nor labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Size = tuple[float, float]
Point = tuple[float, float]

_APART: Final = 26.0
"""Between two boxes of a layer."""

_BETWEEN: Final = 26.0
"""Between two layers."""

_MARGIN: Final = 12.0
_LOOP: Final = 30.0
"""How far a loop goes out of its box."""

_BEND: Final = 12.0
"""Between the two lines of a loop."""

_SWEEPS: Final = 8


class Link(NamedTuple):
    """An edge, given by the indexes of its nodes, with the size of its label."""

    source: int
    target: int
    width: float = 0.0
    height: float = 0.0


class Placed(NamedTuple):
    """The centres of nodes and labels, the points of each line, and the size of it all."""

    centres: list[Point]
    labels: list[Point]
    paths: list[list[Point]]
    width: float
    height: float


@dataclass(slots=True)
class _Spot:
    """A node, a label or a bend: its size, its layer, its place, and its neighbours."""

    width: float
    height: float
    layer: int
    across: float = 0.0
    along: float = 0.0
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    room: float = 0.0  # for loops, on the far side
    loops: float = 0.0  # how high they are together
    aside: float = 0.0  # how far its line is from its centre: that of a label is beside the text

    @property
    def band(self) -> float:
        """How much of its layer it takes."""
        return max(self.height, self.loops)

    @property
    def line(self) -> float:
        """Where its line is."""
        return self.across - self.aside


def place(sizes: Sequence[Size], links: Sequence[Link], direction: str) -> Placed:
    """Place nodes of some sizes so that most links point down, up or to the right.

    >>> found = place([(50, 20), (50, 20)], [Link(0, 1)], "down")
    >>> [y for _, y in found.centres], found.paths
    ([22.0, 68.0], [[(37.0, 32.0), (37.0, 58.0)]])
    """
    flat = direction == "right"
    sizes = [size[::-1] if flat else size for size in sizes]
    turned = [
        link._replace(width=link.height, height=link.width) if flat else link for link in links
    ]
    if direction == "up":
        turned = [link._replace(source=link.target, target=link.source) for link in turned]
    spots = [_Spot(*size, layer=0) for size in sizes]
    chains = _chains(spots, turned, _backwards(len(sizes), links))
    layers = _ordered(spots)
    _across(spots, layers)
    height = _along(spots, layers)
    width = max(s.across + s.width / 2 + s.room for s in spots) + _MARGIN
    paths, labels = _lines(spots, turned, chains, layers)
    if direction == "up":
        paths = [path[::-1] for path in paths]
    centres = [(s.across, s.along) for s in spots[: len(sizes)]]
    if not flat:
        return Placed(centres, labels, paths, width, height)
    flipped = [[point[::-1] for point in path] for path in paths]
    return Placed([c[::-1] for c in centres], [p[::-1] for p in labels], flipped, height, width)


def _backwards(count: int, links: Sequence[Link]) -> set[int]:
    """The links that close a cycle: their target is finished later in a depth-first walk."""
    following: list[list[int]] = [[] for _ in range(count)]
    for link in links:
        following[link.source].append(link.target)
    finished: dict[int, int] = {}
    begun: set[int] = set()
    rest = [(node, False) for node in reversed(range(count))]
    while rest:
        node, done = rest.pop()
        if done:
            finished[node] = len(finished)
        elif node not in begun:
            begun.add(node)
            rest.append((node, True))
            rest += [(each, False) for each in reversed(following[node])]
    return {at for at, link in enumerate(links) if finished[link.source] < finished[link.target]}


def _chains(spots: list[_Spot], links: Sequence[Link], back: set[int]) -> list[list[int]]:
    """Set the layers of nodes; add the bends and labels of links. The spots along each link.

    Links of `back` lead backwards; without them there is no cycle.
    """
    ends = [
        (link.target, link.source) if at in back else (link.source, link.target)
        for at, link in enumerate(links)
    ]
    step = 2 if any(link.width for link in links) else 1  # labels have layers of their own
    for _ in spots:  # the longest way to each node
        moved = False
        for source, target in ends:
            if source != target and spots[target].layer < spots[source].layer + step:
                spots[target].layer = spots[source].layer + step
                moved = True
        if not moved:
            break
    chains: list[list[int]] = []
    for at, (link, (source, target)) in enumerate(zip(links, ends, strict=True)):
        chain = [source]
        if source == target:
            spots[source].room = max(spots[source].room, _LOOP + link.width)
            spots[source].loops += max(2 * _BEND, link.height)
        else:
            middle = (spots[source].layer + spots[target].layer) // 2
            for layer in range(spots[source].layer + 1, spots[target].layer):
                chain.append(len(spots))
                if layer == middle and link.width:
                    spots.append(_Spot(link.width, link.height, layer, aside=link.width / 2))
                else:
                    spots.append(_Spot(1.0, 1.0, layer))
            chain.append(target)
        for first, second in pairwise(chain):
            spots[first].after.append(second)
            spots[second].before.append(first)
        chains.append(chain[::-1] if at in back else chain)
    return chains


def _ordered(spots: list[_Spot]) -> list[list[int]]:
    """The layers, each in an order with few crossings: by the mean place of the neighbours."""
    layers: list[list[int]] = [[] for _ in range(max(s.layer for s in spots) + 1)]
    seen: set[int] = set()
    rest = [at for at in reversed(range(len(spots))) if not spots[at].before]
    while rest:
        at = rest.pop()
        if at not in seen:
            seen.add(at)
            layers[spots[at].layer].append(at)
            rest += reversed(spots[at].after)
    place_of = {at: float(index) for layer in layers for index, at in enumerate(layer)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            for at in layer:
                near = spots[at].before if down else spots[at].after
                place_of[at] = _mean(near, place_of, place_of[at])
            layer.sort(key=place_of.__getitem__)
            place_of.update({at: float(index) for index, at in enumerate(layer)})
    return layers


def _mean(near: Sequence[int], places: Mapping[int, float], otherwise: float) -> float:
    return sum(places[at] for at in near) / len(near) if near else otherwise


def _across(spots: list[_Spot], layers: list[list[int]]) -> None:
    """Set the places across: each spot near its neighbours, none over another."""
    for layer in layers:
        _spread(spots, layer, [0.0] * len(layer))
    for sweep in range(2 * _SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted = []
            for at in layer:
                near = spots[at].before if down else spots[at].after
                near = near or spots[at].before or spots[at].after
                known = [spots[each].line for each in near]
                middle = sum(known) / len(known) if known else spots[at].line
                wanted.append(middle + spots[at].aside)
            _spread(spots, layer, wanted)
    left = min(s.across - s.width / 2 for s in spots)
    for spot in spots:
        spot.across += _MARGIN - left


def _spread(spots: list[_Spot], layer: list[int], wanted: list[float]) -> None:
    """Place a layer as wanted, pushed apart evenly to both sides where it does not fit."""
    gaps = [
        spots[a].width / 2 + spots[a].room + _APART + spots[b].width / 2 for a, b in pairwise(layer)
    ]
    forth, back = list(wanted), list(wanted)
    for i, gap in enumerate(gaps):
        forth[i + 1] = max(forth[i + 1], forth[i] + gap)
    for i in reversed(range(len(gaps))):
        back[i] = min(back[i], back[i + 1] - gaps[i])
    for at, right, left in zip(layer, forth, back, strict=True):
        spots[at].across = (right + left) / 2


def _along(spots: list[_Spot], layers: list[list[int]]) -> float:
    """Set the places along the layers; the length of all."""
    top = _MARGIN
    for layer in layers:
        tallest = max(spots[at].band for at in layer)
        for at in layer:
            spots[at].along = top + tallest / 2
        top += tallest + (_BETWEEN if tallest > 1 else _BETWEEN / 2)
    return top - _BETWEEN + _MARGIN


def _lines(
    spots: list[_Spot], links: Sequence[Link], chains: list[list[int]], layers: list[list[int]]
) -> tuple[list[list[Point]], list[Point]]:
    """The points of each line, and the centre of each label."""
    half = [max(spots[at].band for at in layer) / 2 for layer in layers]
    paths: list[list[Point]] = []
    labels: list[Point] = []
    used: dict[int, float] = {}  # by the loops of a spot so far
    for link, chain in zip(links, chains, strict=True):
        first, last = spots[chain[0]], spots[chain[-1]]
        if len(chain) == 1:
            high = max(2 * _BEND, link.height)
            place = first.along - first.loops / 2 + used.get(chain[0], 0.0) + high / 2
            used[chain[0]] = used.get(chain[0], 0.0) + high
            paths.append(_loop(first, place))
            labels.append((first.across + first.width / 2 + _LOOP + link.width / 2, place))
            continue
        sign = 1 if first.along < last.along else -1
        points = [(first.across, first.along + sign * first.height / 2)]
        points.append((first.across, first.along + sign * half[first.layer]))
        for at in chain[1:-1]:
            spot = spots[at]
            reach = sign * half[spot.layer]
            points += [(spot.line, spot.along - reach), (spot.line, spot.along + reach)]
        points.append((last.across, last.along - sign * half[last.layer]))
        points.append((last.across, last.along - sign * last.height / 2))
        paths.append([p for i, p in enumerate(points) if i == 0 or p != points[i - 1]])
        named = [spots[at] for at in chain[1:-1] if spots[at].width > 1]
        labels.append((named[0].across + 2, named[0].along) if named else (0.0, 0.0))
    return paths, labels


def _loop(spot: _Spot, place: float) -> list[Point]:
    """A line out of a box and back into it; it comes from within the box where it is too low."""
    side = spot.across + spot.width / 2
    inner = [
        min(max(y, spot.along - spot.height / 2 + 2), spot.along + spot.height / 2 - 2)
        for y in (place - _BEND / 2, place + _BEND / 2)
    ]
    away = side + _LOOP - 4
    return [
        (side, inner[0]),
        (away, place - _BEND / 2),
        (away, place + _BEND / 2),
        (side, inner[1]),
    ]


def path_of(points: Sequence[Point]) -> str:
    """A line through points as SVG writes it.

    >>> path_of([(0, 0), (0, 9)])
    'M0.0 0.0L0.0 9.0'
    """
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
