"""The plain layout of drawings: no two boxes at one place, and no line through a box or a label."""

from __future__ import annotations

import random
import shutil
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from graphtide.diagram import Drawing, DrawnEdge, DrawnNode
from graphtide.layout import Link, place

SVG = "{http://www.w3.org/2000/svg}"


def random_graph(seed):
    draw = random.Random(seed)
    count = draw.randint(1, 9)
    sizes = [(draw.randint(30, 200), draw.randint(20, 90)) for _ in range(count)]
    links = [
        Link(draw.randrange(count), draw.randrange(count), *draw.choice([(0, 0), (70, 16)]))
        for _ in range(draw.randint(0, 14))
    ]
    return sizes, links


def inside(point, centre, size, slack=1.0):
    return all(abs(p - c) < s / 2 - slack for p, c, s in zip(point, centre, size, strict=True))


def steps(path):
    """Many points along a line."""
    for (x1, y1), (x2, y2) in pairwise(path):
        for part in range(21):
            yield x1 + (x2 - x1) * part / 20, y1 + (y2 - y1) * part / 20


@pytest.mark.parametrize("direction", ["down", "up", "right"])
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_drawn_over_anything(seed, direction):
    sizes, links = random_graph(seed)
    placed = place(sizes, links, direction)
    boxes = list(zip(placed.centres, sizes, strict=True))
    labelled = [at for at, link in enumerate(links) if link.width]
    boxes += [(placed.labels[at], (links[at].width, links[at].height)) for at in labelled]
    for i, (centre, size) in enumerate(boxes):
        for x, y, limit in (
            (centre[0], size[0], placed.width),
            (centre[1], size[1], placed.height),
        ):
            assert y / 2 <= x + 3 and x + y / 2 <= limit + 3  # within the picture
        for other, more in boxes[i + 1 :]:
            gaps = [
                abs(a - b) - (s + t) / 2
                for a, b, s, t in zip(centre, other, size, more, strict=True)
            ]
            assert max(gaps) >= -3
    for path in placed.paths:
        for point in steps(path):
            for centre, size in boxes:
                assert not inside(point, centre, size, 2.5)


@pytest.mark.parametrize("direction", ["down", "up", "right"])
def test_lines_begin_and_end_at_their_boxes_and_point_the_right_way(direction):
    sizes = [(60, 30), (80, 30), (60, 60)]
    placed = place(sizes, [Link(0, 1), Link(1, 2), Link(2, 0)], direction)
    axis, sign = (0, 1) if direction == "right" else (1, 1 if direction == "down" else -1)
    for source, target, path in (
        (0, 1, placed.paths[0]),
        (1, 2, placed.paths[1]),
        (2, 0, placed.paths[2]),
    ):
        for end, point in ((source, path[0]), (target, path[-1])):
            reach = abs(point[axis] - placed.centres[end][axis])
            assert reach == pytest.approx(sizes[end][axis] / 2)
    order = [sign * centre[axis] for centre in placed.centres]
    assert order == sorted(order)


DRAWING = Drawing(
    "right",
    [DrawnNode(["start"], "round"), DrawnNode(["a & b"], hot=True), DrawnNode(['"\\"'], "double")],
    [DrawnEdge(0, 1, "x < 1"), DrawnEdge(1, 1, "again"), DrawnEdge(1, 2)],
)


def test_a_drawing_is_well_formed_svg():
    root = ET.fromstring(DRAWING.plain_svg())
    assert len(root.findall(f"{SVG}rect")) == 4  # the last one has a rim
    assert len(root.findall(f"{SVG}path")) == 3
    texts = {text.text for text in root.findall(f"{SVG}text")}
    assert texts == {"start", "a & b", '"\\"', "x < 1", "again"}


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphviz_draws_it_where_it_is_installed():
    root = ET.fromstring(DRAWING.svg())
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert texts == {"start", "a & b", '"\\"', "x < 1", "again"}


def test_a_dot_that_fails_is_replaced_by_the_plain_layout(tmp_path, monkeypatch):
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert DRAWING.svg() == DRAWING.plain_svg()
