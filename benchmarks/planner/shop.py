"""A shop and its customers: the templates of WatDiv, over a smaller graph with the same relations.

[Aluç, Hartig, Özsu, Daudjee: Diversified Stress Testing of RDF Data Management Systems, ISWC 2014]:
L are linear, S stars, F snowflakes, C complex. Namespaces are left out, and the parameter of a
template is one node of its kind. Of the original, `friendOf` alone is more than a third: here it is
a fifth, so that the other relations are not tiny.
"""

from __future__ import annotations

from typing import Final

QUADS: Final = 40
"""Quads per user."""

NODES: Final[dict[str, float]] = {
    "user": 1, "product": 0.5, "offer": 0.9, "purchase": 1.5, "review": 1.5, "retailer": 0.012,
    "website": 0.1, "city": 0.24, "country": 0.025, "topic": 0.25, "genre": 0.15, "kind": 0.01,
    "language": 0.025, "category": 0.015, "role": 0.003, "age": 0.009, "gender": 0.002,
    "name": 0.3, "text": 2, "number": 0.2, "date": 0.3,
}  # fmt: skip
"""Kind of node -> nodes per user."""

EDGES: Final[dict[str, tuple[str, str, float]]] = {
    "likes": ("user", "product", 1.5),
    "friendOf": ("user", "user", 9),
    "subscribes": ("user", "website", 1),
    "Location": ("user", "city", 0.4),
    "nationality": ("user", "country", 0.5),
    "age": ("user", "age", 0.5),
    "gender": ("user", "gender", 0.6),
    "givenName": ("user", "name", 0.7),
    "familyName": ("user", "name", 0.7),
    "jobTitle": ("user", "name", 0.1),
    "homepage": ("user", "website", 0.1),
    "homepage of products": ("product", "website", 0.15),
    "type": ("user", "role", 1),
    "type of products": ("product", "category", 0.5),
    "type of genres": ("genre", "kind", 0.15),
    "hasGenre": ("product", "genre", 1.2),
    "tag": ("product", "topic", 1),
    "tag of genres": ("genre", "topic", 0.3),
    "caption": ("product", "text", 0.4),
    "text": ("product", "text", 0.3),
    "title": ("product", "text", 0.5),
    "description": ("product", "text", 0.3),
    "keywords": ("product", "text", 0.3),
    "trailer": ("product", "text", 0.05),
    "publisher": ("product", "name", 0.05),
    "contentRating": ("product", "number", 0.4),
    "contentSize": ("product", "number", 0.2),
    "actor": ("product", "user", 0.6),
    "artist": ("product", "user", 0.2),
    "conductor": ("product", "user", 0.05),
    "language": ("product", "language", 0.3),
    "language of websites": ("website", "language", 0.1),
    "url": ("website", "text", 0.1),
    "hits": ("website", "number", 0.1),
    "hasReview": ("product", "review", 1.5),
    "headline": ("review", "text", 0.7),
    "reviewer": ("review", "user", 1.5),
    "totalVotes": ("review", "number", 0.7),
    "legalName": ("retailer", "name", 0.012),
    "offers": ("retailer", "offer", 0.9),
    "includes": ("offer", "product", 0.9),
    "price": ("offer", "number", 0.9),
    "serialNumber": ("offer", "text", 0.9),
    "validFrom": ("offer", "date", 0.6),
    "validThrough": ("offer", "date", 0.6),
    "priceValidUntil": ("offer", "date", 0.2),
    "eligibleQuantity": ("offer", "number", 0.9),
    "eligibleRegion": ("offer", "country", 2),
    "makesPurchase": ("user", "purchase", 1.5),
    "purchaseFor": ("purchase", "product", 1.5),
    "purchaseDate": ("purchase", "date", 0.5),
    "parentCountry": ("city", "country", 0.24),
}
"""Predicate, if need be with its subjects -> kinds of its ends, and edges per user."""

OWNED: Final = frozenset({"hasReview", "offers", "makesPurchase"})
"""Predicates with one edge at most to each object."""

SINGLE: Final = frozenset(EDGES).difference(
    OWNED,
    (
        "likes",
        "friendOf",
        "subscribes",
        "hasGenre",
        "tag",
        "tag of genres",
        "actor",
        "artist",
        "eligibleRegion",
    ),
)
"""Predicates with one edge at most of each subject."""

DRIFTING: Final = ("likes", "hasGenre", "reviewer", "purchaseFor")
"""Predicates whose edges are replaced by others."""

QUERIES: Final[dict[str, str]] = {
    "WatDiv L1": "SELECT ?a ?b ?c { ?a :subscribes :website1 . ?b :caption ?c . ?a :likes ?b }",
    "WatDiv L2": (
        "SELECT ?a ?b { :city1 :parentCountry ?a . ?b :likes :product1 . ?b :nationality ?a }"
    ),
    "WatDiv L3": "SELECT ?a ?b { ?a :likes ?b . ?a :subscribes :website1 }",
    "WatDiv L4": "SELECT ?a ?b { ?a :tag :topic1 . ?a :caption ?b }",
    "WatDiv L5": (
        "SELECT ?a ?b ?c { ?a :jobTitle ?b . :city1 :parentCountry ?c . ?a :nationality ?c }"
    ),
    "WatDiv S1": (
        "?a :includes ?b . :retailer1 :offers ?a . ?a :price ?c . ?a :serialNumber ?d . "
        "?a :validFrom ?e . ?a :validThrough ?f . ?a :eligibleQuantity ?g . "
        "?a :eligibleRegion ?h . ?a :priceValidUntil ?i"
    ),
    "WatDiv S2": (
        "SELECT ?a ?b ?c { ?a :Location ?b . ?a :nationality :country1 . ?a :gender ?c . "
        "?a a :role1 }"
    ),
    "WatDiv S3": "?a a :category1 . ?a :caption ?b . ?a :hasGenre ?c . ?a :publisher ?d",
    "WatDiv S4": (
        "SELECT ?a ?b ?c { ?a :age :age1 . ?a :familyName ?b . ?c :artist ?a . "
        "?a :nationality :country1 }"
    ),
    "WatDiv S5": (
        "SELECT ?a ?b ?c { ?a a :category1 . ?a :description ?b . ?a :keywords ?c . "
        "?a :language :language1 }"
    ),
    "WatDiv S6": "SELECT ?a ?b ?c { ?a :conductor ?b . ?a a ?c . ?a :hasGenre :genre1 }",
    "WatDiv S7": "SELECT ?a ?b ?c { ?a a ?b . ?a :text ?c . :user1 :likes ?a }",
    "WatDiv F1": (
        "?a :tag :topic1 . ?a a ?b . ?c :trailer ?d . ?c :keywords ?e . "
        "?c :hasGenre ?a . ?c a :category2"
    ),
    "WatDiv F2": (
        "SELECT ?a ?b ?c ?e ?f ?g ?h { ?a :homepage ?b . ?a :title ?c . ?a a ?d . ?a :caption ?e . "
        "?a :description ?f . ?b :url ?g . ?b :hits ?h . ?a :hasGenre :genre1 }"
    ),
    "WatDiv F3": (
        "?a :contentRating ?b . ?a :contentSize ?c . ?a :hasGenre :genre1 . "
        "?d :makesPurchase ?e . ?e :purchaseDate ?f . ?e :purchaseFor ?a"
    ),
    "WatDiv F4": (
        "?a :homepage ?b . ?c :includes ?a . ?a :tag :topic1 . ?a :description ?d . "
        "?a :contentSize ?h . ?b :url ?e . ?b :hits ?f . ?b :language :language1 . ?g :likes ?a"
    ),
    "WatDiv F5": (
        "?a :includes ?b . :retailer1 :offers ?a . ?a :price ?c . ?a :validThrough ?d . "
        "?b :title ?e . ?b a ?f"
    ),
    "WatDiv C1": (
        "SELECT ?a ?e ?g ?h { ?a :caption ?b . ?a :text ?c . ?a :contentRating ?d . "
        "?a :hasReview ?e . ?e :headline ?f . ?e :reviewer ?g . ?h :actor ?g . ?h :language ?i }"
    ),
    "WatDiv C2": (
        "SELECT ?a ?d ?e ?i { ?a :legalName ?b . ?a :offers ?c . ?c :eligibleRegion :country1 . "
        "?c :includes ?d . ?e :jobTitle ?f . ?e :homepage ?g . ?e :makesPurchase ?h . "
        "?h :purchaseFor ?d . ?d :hasReview ?i . ?i :totalVotes ?j }"
    ),
    "WatDiv C3": (
        "SELECT ?a { ?a :likes ?b . ?a :friendOf ?c . ?a :Location ?d . ?a :age ?e . "
        "?a :gender ?f . ?a :givenName ?g }"
    ),
}
"""Name -> template of WatDiv, or its pattern if it selects everything."""
