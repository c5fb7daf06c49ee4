"""One query of each class, over the graph of `people`."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "PREFIX : <http://example.org/>\n"

QUERIES: Final[dict[str, str]] = {
    "ground": """SELECT * {
        :person1 :status :status1 . :person2 :status :status2 .
        :person3 :region :region3 . :person4 :grade :grade4 }""",
    "star": "SELECT ?x { ?x :status :status1 . ?x :region :region2 . ?x :grade :grade3 }",
    "loosely connected": """SELECT * {
        ?x :status :status1 . ?x :region :region2 . ?x :grade :grade3 .
        ?y :status :status2 . ?y :region :region3 . ?y :grade :grade4 .
        :person1 :status :status1 }""",
    "connected": """SELECT * {
        ?x :status :status1 . ?x :knows ?y . ?y :worksFor ?z . ?y :region :region2 .
        ?z :grade :grade3 }""",
}


def query_text(of_class: str) -> str:
    """The query of a class.

    >>> query_text("star").count("?x :")
    3
    """
    return PREFIX + QUERIES[of_class]
