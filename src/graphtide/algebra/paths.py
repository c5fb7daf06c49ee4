"""Property path expressions as data.

https://www.w3.org/TR/sparql11-query/#sparqlPropertyPaths. A path is a set of pairs of terms. Only
what cannot be said with patterns reaches the algebra (`nodes.Path`): `?`, `*` and `+`, with any
expression inside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from pyoxigraph import NamedNode


@dataclass(frozen=True, slots=True)
class Link:
    """One step along a predicate: `iri`."""

    iri: NamedNode

    def __str__(self) -> str:
        return str(self.iri)


@dataclass(frozen=True, slots=True)
class NegatedSet:
    """One step along any predicate but these: `!(iri|…)`. Without IRIs: along any predicate."""

    iris: tuple[NamedNode, ...]

    def __str__(self) -> str:
        return f"!({'|'.join(map(str, self.iris))})"


@dataclass(frozen=True, slots=True)
class ToBlank:
    """One step along any predicate, to a blank node. No query says this: DESCRIBE follows it."""

    def __str__(self) -> str:
        return "to a blank node"


@dataclass(frozen=True, slots=True)
class Inverse:
    """A path walked backwards: `^path`."""

    path: PathExpression

    def __str__(self) -> str:
        return f"^({self.path})"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One path and then another: `first/second`."""

    first: PathExpression
    second: PathExpression

    def __str__(self) -> str:
        return f"({self.first}/{self.second})"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Either of two paths: `first|second`."""

    first: PathExpression
    second: PathExpression

    def __str__(self) -> str:
        return f"({self.first}|{self.second})"


@dataclass(frozen=True, slots=True)
class ZeroOrOne:
    """The path, or no step at all: `path?`."""

    path: PathExpression

    def __str__(self) -> str:
        return f"({self.path})?"


@dataclass(frozen=True, slots=True)
class ZeroOrMore:
    """The path any number of times: `path*`."""

    path: PathExpression

    def __str__(self) -> str:
        return f"({self.path})*"


@dataclass(frozen=True, slots=True)
class OneOrMore:
    """The path at least once: `path+`."""

    path: PathExpression

    def __str__(self) -> str:
        return f"({self.path})+"


PathExpression = (
    Link
    | NegatedSet
    | ToBlank
    | Inverse
    | Sequence
    | Alternative
    | ZeroOrOne
    | ZeroOrMore
    | OneOrMore
)


def may_stand_still(path: PathExpression) -> bool:
    """Whether a path connects every term with itself, without any triple.

    >>> from pyoxigraph import NamedNode
    >>> step = Link(NamedNode("ex:p"))
    >>> may_stand_still(OneOrMore(step)), may_stand_still(OneOrMore(ZeroOrOne(step)))
    (False, True)
    """
    match path:
        case Link() | NegatedSet() | ToBlank():
            return False
        case ZeroOrOne() | ZeroOrMore():
            return True
        case Inverse(inner) | OneOrMore(inner):
            return may_stand_still(inner)
        case Sequence(first, second):
            return may_stand_still(first) and may_stand_still(second)
        case Alternative(first, second):
            return may_stand_still(first) or may_stand_still(second)
        case _:
            assert_never(path)


def link_iris(path: PathExpression) -> tuple[NamedNode, ...] | None:
    """The predicates that a path leads over; None if it may be any.

    >>> from pyoxigraph import NamedNode
    >>> [str(iri) for iri in link_iris(OneOrMore(Link(NamedNode("ex:p")))) or ()]
    ['<ex:p>']
    """
    match path:
        case Link(iri):
            return (iri,)
        case NegatedSet() | ToBlank():
            return None
        case Inverse(inner) | ZeroOrOne(inner) | ZeroOrMore(inner) | OneOrMore(inner):
            return link_iris(inner)
        case Sequence(first, second) | Alternative(first, second):
            sides = link_iris(first), link_iris(second)
            return (
                None if None in sides else tuple(dict.fromkeys(i for s in sides for i in s or ()))
            )
        case _:
            assert_never(path)
