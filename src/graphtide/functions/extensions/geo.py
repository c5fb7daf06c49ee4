"""GeoSPARQL's functions of simple features, over geometries as WKT (extra `graphtide[geo]`).

https://docs.ogc.org/is/22-047r1/22-047r1.html: relations, `geof:relate`, and functions that measure
or make geometries. A `geo:wktLiteral` may begin with the IRI of its coordinate system; without one
it is CRS84. What is computed is plane geometry in the coordinates as they are written. Nothing is
converted: geometries of two systems, metres where coordinates are degrees, and a text that is not
WKT are errors.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pyoxigraph import Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions import numbers as num
from graphtide.functions.values import boolean_term, integer_term, number_of, plain_of, to_term
from graphtide.functions.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term

GEOF: Final = "http://www.opengis.net/def/function/geosparql/"
WKT: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
UNITS: Final = "http://www.opengis.net/def/uom/OGC/1.0/"
_IN_DEGREES: Final = {CRS84, "http://www.opengis.net/def/crs/EPSG/0/4326"}
_CACHE_SIZE: Final = 1 << 14
_RELATIONS: Final = {
    "sfEquals": "equals",
    "sfDisjoint": "disjoint",
    "sfIntersects": "intersects",
    "sfTouches": "touches",
    "sfCrosses": "crosses",
    "sfWithin": "within",
    "sfContains": "contains",
    "sfOverlaps": "overlaps",
}
_MADE_OF_TWO: Final = {
    "intersection": "intersection",
    "union": "union",
    "difference": "difference",
    "symDifference": "symmetric_difference",
}
_MADE_OF_ONE: Final = {
    "boundary": "boundary",
    "convexHull": "convex_hull",
    "envelope": "envelope",
}
_QUADRANT: Final = 8
"""Segments in which a buffer approximates a quarter of a circle."""


def is_available() -> bool:
    """Whether shapely is installed, which computes with geometries."""
    return find_spec("shapely") is not None


@lru_cache(_CACHE_SIZE)
def _geometry(text: str) -> tuple[str, Any]:
    """The coordinate system and the geometry of a WKT literal; an empty text is an empty one."""
    import shapely  # noqa: PLC0415 - an extra

    system, body = CRS84, text.strip()
    if body.startswith("<"):
        system, _, body = body[1:].partition(">")
    try:
        found = shapely.from_wkt(body.strip() or "GEOMETRYCOLLECTION EMPTY")
    except shapely.GEOSException as error:
        raise ExpressionError(f"not WKT: {error}") from error
    shapely.prepare(found)
    return system, found


def _read(term: Term) -> tuple[str, Any]:
    if not isinstance(term, Literal) or term.datatype.value != WKT:
        raise ExpressionError(f"{term} is not a geo:wktLiteral")
    return _geometry(term.value)


def _of_one_system(left: Term, right: Term) -> tuple[str, Any, Any]:
    (system, first), (other, second) = _read(left), _read(right)
    if system != other:
        raise ExpressionError(f"geometries in two coordinate systems: {system} and {other}")
    return system, first, second


def _computed(name: str, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - shapely's values
    import shapely  # noqa: PLC0415 - an extra

    try:
        return getattr(shapely, name)(*given, **options)
    except (shapely.GEOSException, ValueError) as error:
        raise ExpressionError(f"{name} of these geometries: {error}") from error


def _written(system: str, geometry: Any) -> Term:  # noqa: ANN401 - a geometry of shapely
    if geometry is None:
        raise ExpressionError("there is no such geometry")
    text = _computed("to_wkt", geometry, rounding_precision=-1)
    prefix = "" if system == CRS84 else f"<{system}> "
    return Literal(prefix + text, datatype=NamedNode(WKT))


def _relation(name: str) -> Callable[[Term, Term], Term]:
    def holds(left: Term, right: Term) -> Term:
        _, first, second = _of_one_system(left, right)
        return boolean_term(bool(_computed(name, first, second)))

    return holds


def _of_two(name: str) -> Callable[[Term, Term], Term]:
    def make(left: Term, right: Term) -> Term:
        system, first, second = _of_one_system(left, right)
        return _written(system, _computed(name, first, second))

    return make


def _of_one(name: str) -> Callable[[Term], Term]:
    def make(term: Term) -> Term:
        system, geometry = _read(term)
        return _written(system, _computed(name, geometry))

    return make


def _check_units(units: Term, system: str) -> None:
    """Raise unless lengths in these units are lengths in the coordinates of a system."""
    own = "degree" if system in _IN_DEGREES else "metre"
    if not isinstance(units, NamedNode) or units.value != UNITS + own:
        raise ExpressionError(f"lengths in {system} are in <{UNITS}{own}>, not in {units}")


def relate(left: Term, right: Term, pattern: Term) -> Term:
    """geof:relate: whether the DE-9IM matrix of two geometries fits a pattern such as T*F**F***."""
    _, first, second = _of_one_system(left, right)
    return boolean_term(bool(_computed("relate_pattern", first, second, plain_of(pattern))))


def distance(left: Term, right: Term, units: Term) -> Term:
    """geof:distance: the shortest one between two geometries, in the units of their coordinates."""
    system, first, second = _of_one_system(left, right)
    _check_units(units, system)
    found = float(_computed("distance", first, second))
    if found != found:  # noqa: PLR0124 - not a number
        raise ExpressionError("there is no distance to an empty geometry")
    return to_term(num.double(found))


def buffer(term: Term, radius: Term, units: Term) -> Term:
    """geof:buffer: all points within a distance; circles are polygons of 32 sides."""
    system, geometry = _read(term)
    _check_units(units, system)
    width = float(num.promote(number_of(radius), num.NumericType.DOUBLE).value)
    return _written(system, _computed("buffer", geometry, width, quad_segs=_QUADRANT))


def get_srid(term: Term) -> Term:
    """geof:getSRID: the coordinate system."""
    return Literal(_read(term)[0], datatype=NamedNode(f"{XSD}anyURI"))


def dimension(term: Term) -> Term:
    """geof:dimension: 0 for points, 1 for lines, 2 for areas."""
    return integer_term(int(_computed("get_dimensions", _read(term)[1])))


def _property(name: str) -> Callable[[Term], Term]:
    return lambda term: boolean_term(bool(_computed(name, _read(term)[1])))


_CALLS: Final[dict[str, tuple[Callable[..., Term], int]]] = {
    **{name: (_relation(word), 2) for name, word in _RELATIONS.items()},
    **{name: (_of_two(word), 2) for name, word in _MADE_OF_TWO.items()},
    **{name: (_of_one(word), 1) for name, word in _MADE_OF_ONE.items()},
    "relate": (relate, 3),
    "distance": (distance, 3),
    "buffer": (buffer, 3),
    "getSRID": (get_srid, 1),
    "dimension": (dimension, 1),
    "isEmpty": (_property("is_empty"), 1),
    "isSimple": (_property("is_simple"), 1),
}
CALLS: Final = {f"<{GEOF}{name}>": call for name, call in _CALLS.items()}
"""Each function by the name it has in a call, with its number of arguments."""
