"""Advice for common mistakes: unknown prefixes and misspelt words."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WELL_KNOWN_PREFIXES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "qudt": "http://qudt.org/schema/qudt/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "sh": "http://www.w3.org/ns/shacl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

PATTERN_KEYWORDS = ("OPTIONAL", "FILTER", "UNION", "MINUS", "BIND", "VALUES", "GRAPH", "SERVICE")
QUERY_KEYWORDS = ("SELECT", "PREFIX", "BASE", "ASK", "CONSTRUCT", "DESCRIBE")


def prefix_hint(prefix: str, declared: Iterable[str]) -> str:
    """What to do about a prefix that is not declared.

    >>> prefix_hint("foaf", [])
    'add: PREFIX foaf: <http://xmlns.com/foaf/0.1/>'
    >>> prefix_hint("sensr", ["sensor", "ex"])
    "did you mean 'sensor:'?"
    """
    known = list(declared)
    if prefix in WELL_KNOWN_PREFIXES:
        return f"add: PREFIX {prefix}: <{WELL_KNOWN_PREFIXES[prefix]}>"
    near = difflib.get_close_matches(prefix, known, n=1)
    if near:
        return f"did you mean '{near[0]}:'?"
    names = ", ".join(f"{name}:" for name in known)
    return f"declared here: {names}" if known else f"add: PREFIX {prefix}: <...> above the query"


def word_hint(word: str, known: Iterable[str]) -> str | None:
    """The nearest known word, if one is near.

    >>> word_hint("FLTER", PATTERN_KEYWORDS)
    'did you mean FILTER?'
    """
    near = difflib.get_close_matches(word.upper(), list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def name_hint(name: str, known: Iterable[str], what: str = "name") -> str:
    """The nearest known name, or else which ones there are.

    >>> name_hint("alarms", ["Alarm", "Confirmation"])
    'did you mean Alarm?'
    >>> name_hint("x", ["Alarm", "Bell"]), name_hint("x", [], "event")
    ('there are Alarm, Bell', 'there is no event here')
    """
    names = list(dict.fromkeys(known))
    by_case = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), list(by_case), n=1)
    if near:
        return f"did you mean {by_case[near[0]]}?"
    if len(names) > 1:
        return f"there are {', '.join(names)}"
    return f"there is {names[0]}" if names else f"there is no {what} here"
