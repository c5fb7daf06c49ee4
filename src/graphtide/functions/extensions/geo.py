"""GeoSPARQL's relations of simple features, over geometries as WKT (extra `graphtide[geo]`).

https://docs.ogc.org/is/22-047r1/22-047r1.html, Simple Features relations and `geof:relate`. A
`geo:wktLiteral` may begin with the IRI of its coordinate system; without one it is CRS84. Two
geometries of different systems have no relation: that is an error, as is a text that is not WKT.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pyoxigraph import Literal

from graphtide.errors import ExpressionError
from graphtide.functions.values import boolean_term, plain_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term

GEOF: Final = "http://www.opengis.net/def/function/geosparql/"
WKT: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
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


def is_available() -> bool:
    """Whether shapely is installed, which computes the relations."""
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


def _geometries(left: Term, right: Term) -> tuple[Any, Any]:
    found = []
    for term in (left, right):
        if not isinstance(term, Literal) or term.datatype.value != WKT:
            raise ExpressionError(f"{term} is not a geo:wktLiteral")
        found.append(_geometry(term.value))
    (one, first), (other, second) = found
    if one != other:
        raise ExpressionError(f"geometries in two coordinate systems: {one} and {other}")
    return first, second


def _relation(name: str) -> Callable[[Term, Term], Term]:
    def holds(left: Term, right: Term) -> Term:
        import shapely  # noqa: PLC0415 - an extra

        first, second = _geometries(left, right)
        try:
            return boolean_term(bool(getattr(shapely, name)(first, second)))
        except shapely.GEOSException as error:
            raise ExpressionError(f"no relation of these geometries: {error}") from error

    return holds


def relate(left: Term, right: Term, pattern: Term) -> Term:
    """geof:relate: whether the DE-9IM matrix of two geometries fits a pattern such as T*F**F***."""
    import shapely  # noqa: PLC0415 - an extra

    first, second = _geometries(left, right)
    try:
        return boolean_term(bool(shapely.relate_pattern(first, second, plain_of(pattern))))
    except (shapely.GEOSException, ValueError) as error:
        raise ExpressionError(f"no relation of these geometries: {error}") from error


CALLS: Final[dict[str, tuple[Callable[..., Term], int]]] = {
    **{f"<{GEOF}{name}>": (_relation(word), 2) for name, word in _RELATIONS.items()},
    f"<{GEOF}relate>": (relate, 3),
}
"""Each function by the name it has in a call, with its number of arguments."""
