"""GeoSPARQL's relations: rectangles by comparing their sides, and cases of the standard by hand."""

from __future__ import annotations

from random import Random

import pytest
from pyoxigraph import Literal, NamedNode

import graphtide as gt
from graphtide.algebra.expressions import Call, Var
from graphtide.errors import ExpressionError
from graphtide.functions import table
from graphtide.functions.evaluate import evaluate
from graphtide.functions.extensions import geo
from graphtide.functions.values import effective_boolean

pytest.importorskip("shapely")
A, B, C = Var("a"), Var("b"), Var("c")
HEAD = f"""PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <{geo.GEOF}> PREFIX : <http://e/>
"""


def wkt(text: str) -> Literal:
    return Literal(text, datatype=NamedNode(geo.WKT))


def holds(name: str, *terms) -> bool:
    call = Call(f"<{geo.GEOF}{name}>", (A, B, C)[: len(terms)])
    return effective_boolean(evaluate(call, dict(zip((A, B, C), terms, strict=False))))


def box(sides) -> Literal:
    x1, y1, x2, y2 = sides
    return wkt(f"POLYGON(({x1} {y1}, {x2} {y1}, {x2} {y2}, {x1} {y2}, {x1} {y1}))")


def relations(a, b) -> set[str]:
    """Of closed rectangles, by their sides."""
    apart = any(a[i + 2] < b[i] or b[i + 2] < a[i] for i in (0, 1))
    inner = all(a[i] < b[i + 2] and b[i] < a[i + 2] for i in (0, 1))
    within = all(b[i] <= a[i] and a[i + 2] <= b[i + 2] for i in (0, 1))
    contains = all(a[i] <= b[i] and b[i + 2] <= a[i + 2] for i in (0, 1))
    found = {
        "sfDisjoint": apart,
        "sfIntersects": not apart,
        "sfTouches": not apart and not inner,
        "sfWithin": within,
        "sfContains": contains,
        "sfEquals": a == b,
        "sfOverlaps": inner and not within and not contains,
        "sfCrosses": False,
    }
    return {name for name, there in found.items() if there}


def test_rectangles():
    random, seen = Random(5), set()
    for _ in range(2000):
        sides = []
        for _ in range(2):
            x, y = random.randint(0, 3), random.randint(0, 3)
            sides.append((x, y, x + random.randint(1, 3), y + random.randint(1, 3)))
        wanted = relations(*sides)
        found = {name for name in geo._RELATIONS if holds(name, *map(box, sides))}
        assert found == wanted, sides
        seen |= wanted
    assert seen == set(geo._RELATIONS) - {"sfCrosses"}


@pytest.mark.parametrize(
    ("name", "left", "right", "wanted"),
    [
        ("sfCrosses", "LINESTRING(0 0, 2 2)", "LINESTRING(0 2, 2 0)", True),
        ("sfCrosses", "LINESTRING(0 0, 1 1)", "LINESTRING(1 1, 2 0)", False),
        ("sfTouches", "LINESTRING(0 0, 1 1)", "LINESTRING(1 1, 2 0)", True),
        ("sfWithin", "POINT(1 1)", "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", True),
        ("sfWithin", "POINT(0 1)", "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", False),
        ("sfTouches", "POINT(0 1)", "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", True),
        ("sfEquals", "LINESTRING(0 0, 2 2)", "LINESTRING(2 2, 1 1, 0 0)", True),
        ("sfDisjoint", "", "POINT(1 1)", True),
        ("sfIntersects", f"<{geo.CRS84}> POINT(1 1)", "POINT(1 1)", True),
    ],
)
def test_other_geometries(name, left, right, wanted):
    assert holds(name, wkt(left), wkt(right)) is wanted


def test_relate_by_pattern():
    inside = "POINT(1 1)", "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))"
    assert holds("relate", *map(wkt, inside), Literal("T*F**F***"))
    assert not holds("relate", *map(wkt, inside), Literal("FF*FF****"))


@pytest.mark.parametrize(
    "terms",
    [
        (wkt("POINT(1"), wkt("POINT(1 1)")),
        (wkt("POINT(1 1)"), Literal("POINT(1 1)")),
        (wkt("POINT(1 1)"), NamedNode("a:a")),
        (wkt("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 1)"), wkt("POINT(1 1)")),
    ],
)
def test_errors_are_those_of_their_rows(terms):
    with pytest.raises(ExpressionError):
        holds("sfIntersects", *terms)


def test_a_standing_query_over_places():
    graph = gt.LiveGraph()
    inside = graph.watch(f"""{HEAD} SELECT ?x ?zone {{
        ?x :at ?p . ?zone :covers ?area FILTER (geof:sfWithin(?p, ?area)) }}""")
    graph.insert("<http://e/z>", "<http://e/covers>", box((0, 0, 10, 10)))
    graph.insert("<http://e/t1>", "<http://e/at>", wkt("POINT(5 5)"))
    assert inside.count() == 1
    with graph.transaction() as tx:
        tx.delete("<http://e/t1>", "<http://e/at>", wkt("POINT(5 5)"))
        tx.insert("<http://e/t1>", "<http://e/at>", wkt("POINT(50 5)"))
    assert inside.count() == 0


def test_without_shapely_it_is_refused_at_registration(monkeypatch):
    monkeypatch.setattr(table.geo, "is_available", lambda: False)
    with pytest.raises(gt.GraphtideError, match="shapely") as refused:
        gt.LiveGraph().watch(f"{HEAD} SELECT * {{ ?x :at ?p FILTER (geof:sfWithin(?p, ?p)) }}")
    assert "graphtide[geo]" in str(refused.value)
