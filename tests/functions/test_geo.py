"""GeoSPARQL's functions: rectangles by their sides and unit squares, and other cases by hand."""

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


def value(name: str, *terms):
    call = Call(f"<{geo.GEOF}{name}>", (A, B, C)[: len(terms)])
    return evaluate(call, dict(zip((A, B, C), terms, strict=False)))


def holds(name: str, *terms) -> bool:
    return effective_boolean(value(name, *terms))


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


def cells(sides) -> set:
    """The unit squares of a rectangle."""
    x1, y1, x2, y2 = sides
    return {(x, y) for x in range(x1, x2) for y in range(y1, y2)}


def covered(geometry) -> set:
    """The unit squares that a geometry covers, by their centres."""
    inside = set()
    for x in range(7):
        for y in range(7):
            if holds("sfIntersects", wkt(f"POINT({x}.5 {y}.5)"), geometry):
                inside.add((x, y))
    return inside


def test_sets_of_points_of_rectangles():
    random = Random(7)
    for _ in range(60):
        sides = []
        for _ in range(2):
            x, y = random.randint(0, 3), random.randint(0, 3)
            sides.append((x, y, x + random.randint(1, 3), y + random.randint(1, 3)))
        one, other = map(cells, sides)
        a, b = map(box, sides)
        assert covered(value("union", a, b)) == one | other
        assert covered(value("intersection", a, b)) == one & other
        assert covered(value("difference", a, b)) == one - other
        assert covered(value("symDifference", a, b)) == one ^ other
        whole = tuple(f(s[i] for s in sides) for i, f in enumerate((min, min, max, max)))
        assert covered(value("envelope", value("union", a, b))) == cells(whole)
        gaps = [
            max(0, sides[0][i] - sides[1][i + 2], sides[1][i] - sides[0][i + 2]) for i in (0, 1)
        ]
        found = value("distance", a, b, NamedNode(f"{geo.UNITS}degree"))
        assert float(found.value) == pytest.approx((gaps[0] ** 2 + gaps[1] ** 2) ** 0.5)


EPSG = "<http://www.opengis.net/def/crs/EPSG/0/3857>"
HULL = "POLYGON ((0 0, 1 1, 1 0, 0 0))"
BOX = f"{EPSG} POLYGON ((0.1 0, 1 0, 1 2, 0.1 2, 0.1 0))"
METRE, DEGREE = (NamedNode(geo.UNITS + unit) for unit in ("metre", "degree"))


@pytest.mark.parametrize(
    ("name", "terms", "wanted"),
    [
        ("boundary", (wkt("LINESTRING(0 0, 1 1)"),), "MULTIPOINT ((0 0), (1 1))"),
        ("convexHull", (wkt("MULTIPOINT(0 0, 1 1, 0.5 0.2, 1 0)"),), HULL),
        ("envelope", (wkt(f"{EPSG} LINESTRING(0.1 0, 1 2)"),), BOX),
        ("distance", (wkt(f"{EPSG} POINT(0 0)"), wkt(f"{EPSG} POINT(3 4)"), METRE), "5"),
        ("getSRID", (wkt("POINT(0 0)"),), geo.CRS84),
        ("getSRID", (wkt(f"{EPSG} POINT(0 0)"),), EPSG[1:-1]),
        ("dimension", (wkt("LINESTRING(0 0, 1 1)"),), "1"),
        ("isEmpty", (wkt("POLYGON EMPTY"),), "true"),
        ("isSimple", (wkt("LINESTRING(0 0, 2 2, 0 2, 2 0)"),), "false"),
        ("intersection", (wkt("POINT(0 0)"), wkt("POINT(1 1)")), "POINT EMPTY"),
    ],
)  # fmt: skip
def test_geometries_that_are_made_and_measured(name, terms, wanted):
    assert value(name, *terms).value == wanted


def test_a_buffer_is_between_two_circles():
    round_ = value("buffer", wkt("POINT(0 0)"), Literal(2), DEGREE)
    for distance, inside in ((1.98, True), (2.01, False)):
        assert (
            holds("sfIntersects", wkt(f"POINT({distance / 2**0.5} {distance / 2**0.5})"), round_)
            is inside
        )


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("distance", (wkt("POINT(0 0)"), wkt("POINT(1 1)"), METRE)),
        ("distance", (wkt(f"{EPSG} POINT(0 0)"), wkt(f"{EPSG} POINT(1 1)"), DEGREE)),
        ("distance", (wkt("POINT(0 0)"), wkt(""), DEGREE)),
        ("distance", (wkt("POINT(0 0)"), wkt(f"{EPSG} POINT(1 1)"), DEGREE)),
        ("buffer", (wkt("POINT(0 0)"), Literal("wide"), DEGREE)),
        ("boundary", (wkt("GEOMETRYCOLLECTION(POINT(1 1))"),)),
        ("union", (wkt("POINT(0 0)"), NamedNode("a:a"))),
    ],
)
def test_what_has_no_value(name, terms):
    with pytest.raises(ExpressionError):
        value(name, *terms)


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
