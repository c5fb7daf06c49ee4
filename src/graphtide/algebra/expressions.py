"""SPARQL expressions as data.

Operators and built-in functions are all `Call`s: their names are the keys of one table
(`graphtide.functions.table`), which gives each its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Node
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Var:
    """A variable. Blank nodes of a query become variables whose name starts with `_:`."""

    name: str

    def __hash__(self) -> int:  # without the tuple that a dataclass hashes
        return hash(self.name)

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Const:
    """A constant term."""

    term: Term

    def __str__(self) -> str:
        return str(self.term)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or built-in function applied to arguments.

    `name` is an operator sign (`=`, `!=`, `<`, `<=`, `>`, `>=`, `+`, `-`, `*`, `/`, `&&`, `||`,
    `!`, `IN`, `NOT IN`; unary minus and plus are `UMINUS` and `UPLUS`), the upper-case name of a
    built-in (`STRLEN`, `ENCODE_FOR_URI`, `ISIRI`, `IF`, `COALESCE`, `BOUND`), or the IRI of a cast
    (`<http://www.w3.org/2001/XMLSchema#integer>`). The first argument of `IN` and `NOT IN` is the
    needle, the others the list.

    Operators in a row are one call, however many there are: `&&` and `||` take any number of
    arguments, and `a + b - c` is the call `+-` of three, computed from left to right, because sums
    of floating-point numbers depend on their order.
    """

    name: str
    args: tuple[Expression, ...]


SIGNS = (frozenset("+-"), frozenset("*/"))
"""The signs of one precedence that one call may have in a row."""


def is_calculation(name: str) -> bool:
    """Whether a name consists of signs in a row, each between two arguments.

    >>> is_calculation("+-+"), is_calculation("+*"), is_calculation("UMINUS")
    (True, False, False)
    """
    return bool(name) and any(signs.issuperset(name) for signs in SIGNS)


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS { pattern }`; `NOT EXISTS` is `Call("!", (Exists(pattern),))`."""

    pattern: Node


Expression = Var | Const | Call | Exists
