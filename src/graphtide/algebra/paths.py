"""Property path expressions as data.

https://www.w3.org/TR/sparql11-query/#sparqlPropertyPaths. A path is a set of pairs of terms. Only
what triple patterns cannot express reaches the algebra (`nodes.Path`): `?`, `*` and `+`, with any
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
    """One step along any predicate, to a blank node. Not part of SPARQL: DESCRIBE uses it."""

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
    """Paths one after the other: `path/path/…`."""

    steps: tuple[PathExpression, ...]

    def __str__(self) -> str:
        return f"({'/'.join(map(str, self.steps))})"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Any one of several paths: `path|path|…`."""

    choices: tuple[PathExpression, ...]

    def __str__(self) -> str:
        return f"({'|'.join(map(str, self.choices))})"


@dataclass(frozen=True, slots=True)
class ZeroOrOne:
    """The path, or zero length: `path?`."""

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


def matches_zero_length(path: PathExpression) -> bool:
    """Whether a path has zero-length matches, which connect every term with itself.

    >>> from pyoxigraph import NamedNode
    >>> step = Link(NamedNode("ex:p"))
    >>> matches_zero_length(OneOrMore(step)), matches_zero_length(OneOrMore(ZeroOrOne(step)))
    (False, True)
    """
    match path:
        case Link() | NegatedSet() | ToBlank():
            return False
        case ZeroOrOne() | ZeroOrMore():
            return True
        case Inverse(inner) | OneOrMore(inner):
            return matches_zero_length(inner)
        case Sequence(steps):
            return all(map(matches_zero_length, steps))
        case Alternative(choices):
            return any(map(matches_zero_length, choices))
        case _:
            assert_never(path)


def link_iris(path: PathExpression) -> tuple[NamedNode, ...] | None:
    """The predicates that a path can traverse; None if any.

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
        case Sequence(inside) | Alternative(inside):
            each = [link_iris(part) for part in inside]
            return None if None in each else tuple(dict.fromkeys(i for s in each for i in s or ()))
        case _:
            assert_never(path)
