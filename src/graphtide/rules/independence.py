"""Which actions cannot concern the rules: what they insert, no query of the program can match.

The actions of many firings may then be carried out together.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import GraphNames, Path, TriplePattern
from graphtide.algebra.paths import link_iris, may_stand_still
from graphtide.lang.declarations import CallFunction, Delete, Emit, Insert, Retract
from graphtide.rdf.term import BlankNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.lang.declarations import RuleDeclaration
    from graphtide.rdf.term import Term

Reads = tuple["Var | Term | None", "Var | Term | None", "Var | Term | None"]
"""A triple that a query looks for; None is anything."""


def only_inserts(rule: RuleDeclaration, queries: Iterable[SelectQuery]) -> bool:
    """Whether a rule does nothing but insert what none of some queries can match."""
    inserts = [action for action in rule.actions if isinstance(action, Insert)]
    if len(inserts) < len(rule.actions):
        return False
    written = [triple for insert in inserts for triple in insert.template]
    reads = [read for query in queries for read in _reads(query.root)]
    return not any(_meet(triple, read) for triple in written for read in reads)


def why_one_by_one(rule: RuleDeclaration, queries: Iterable[SelectQuery]) -> str | None:
    """Why the actions of a rule are carried out event by event; None if they need not be."""
    if only_inserts(rule, queries):
        return None
    words = {CallFunction: "CALL", Delete: "DELETE", Emit: "EMIT", Retract: "RETRACT"}
    found = dict.fromkeys(words[type(a)] for a in rule.actions if type(a) in words)
    return ", ".join(found) or "INSERT of what rules look at"


def _reads(part: object) -> Iterator[Reads]:
    """Every kind of triple that a node looks for, in whichever graph."""
    match part:
        case TriplePattern():
            yield part.subject, part.predicate, part.object
        case Path():
            links = link_iris(part.path)
            if links is None or may_stand_still(part.path):
                yield None, None, None
            else:
                yield from ((None, link, None) for link in links)
        case GraphNames():
            yield None, None, None
        case tuple() | frozenset():
            for each in part:
                yield from _reads(each)
        case _ if is_dataclass(part):
            for each in fields(part):
                yield from _reads(getattr(part, each.name))
        case _:
            pass


def _meet(triple: TriplePattern, read: Reads) -> bool:
    parts = (triple.subject, triple.predicate, triple.object)
    return all(
        wanted is None or isinstance(wanted, Var) or isinstance(given, Var | BlankNode)
        or given == wanted
        for given, wanted in zip(parts, read, strict=True)
    )  # fmt: skip
