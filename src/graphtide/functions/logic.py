"""Three-valued logic: true, false and error, and the forms that do not evaluate every argument.

https://www.w3.org/TR/sparql11-query/#evaluation. Each builder takes the compiled arguments and
returns the compiled form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphtide.algebra.expressions import Var
from graphtide.errors import ExpressionError
from graphtide.functions.comparison import equal
from graphtide.functions.values import FALSE, TRUE, boolean_term, effective_boolean
from graphtide.rdf.terms import Term

Row = Mapping[Var, Term]
Compiled = Callable[[Row], Term]


def build_and(arguments: Sequence[Compiled]) -> Compiled:
    """`&&`: false as soon as one side is false, even if the other is an error."""
    return _build_junction(arguments, decisive=False)


def build_or(arguments: Sequence[Compiled]) -> Compiled:
    """`||`: true as soon as one side is true, even if the other is an error."""
    return _build_junction(arguments, decisive=True)


def build_not(arguments: Sequence[Compiled]) -> Compiled:
    """`!`: negation; an error stays an error."""
    (argument,) = arguments
    return lambda row: FALSE if effective_boolean(argument(row)) else TRUE


def build_if(arguments: Sequence[Compiled]) -> Compiled:
    """IF: only the chosen branch is evaluated."""
    condition, then, otherwise = arguments
    return lambda row: then(row) if effective_boolean(condition(row)) else otherwise(row)


def build_coalesce(arguments: Sequence[Compiled]) -> Compiled:
    """COALESCE: the first argument that is not an error."""

    def coalesce(row: Row) -> Term:
        for argument in arguments:
            try:
                return argument(row)
            except ExpressionError:
                continue
        raise ExpressionError("no argument of COALESCE has a value")

    return coalesce


def build_in(arguments: Sequence[Compiled]) -> Compiled:
    """IN: true when the needle equals a member; errors of members count only if none does."""
    member = _build_membership(arguments)
    return lambda row: boolean_term(member(row))


def build_not_in(arguments: Sequence[Compiled]) -> Compiled:
    """NOT IN: the opposite of IN."""
    member = _build_membership(arguments)
    return lambda row: boolean_term(not member(row))


def _build_junction(arguments: Sequence[Compiled], *, decisive: bool) -> Compiled:
    decided, undecided = boolean_term(decisive), boolean_term(not decisive)

    def junction(row: Row) -> Term:
        error: ExpressionError | None = None
        for argument in arguments:
            try:
                if effective_boolean(argument(row)) is decisive:
                    return decided
            except ExpressionError as caught:
                error = caught
        if error is not None:
            raise error
        return undecided

    return junction


def _build_membership(arguments: Sequence[Compiled]) -> Callable[[Row], bool]:
    needle, *members = arguments

    def is_member(row: Row) -> bool:
        value = needle(row)
        error: ExpressionError | None = None
        for member in members:
            try:
                if equal(value, member(row)):
                    return True
            except ExpressionError as caught:
                error = caught
        if error is not None:
            raise error
        return False

    return is_member
