"""Evaluation of expressions over rows of terms.

`compile_expression` turns an expression into one closure, once; the closure is then called per row
(or per distinct tuple of arguments). A row maps the bound variables; an unbound one is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import Node
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions.logic import Compiled, Row
from graphtide.functions.table import VOLATILE, BoundForm, Form, Function, check_call, entry_of
from graphtide.functions.values import boolean_term

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term


ExistsTest = Callable[[Node, Row], bool]
"""Whether a pattern has a solution that is compatible with the row."""

OtherFunctions = Mapping[str, Callable[..., "Term"]]
"""Functions that a one-off query may call besides those of the table, by name."""

_CACHE_SIZE = 4096


def evaluate(
    expression: Expression,
    row: Row,
    exists: ExistsTest | None = None,
    others: OtherFunctions | None = None,
) -> Term:
    """The value of `expression` for one row; raises `ExpressionError` where it has none.

    >>> from pyoxigraph import Literal
    >>> print(evaluate(Call("+", (Var("a"), Const(Literal(2)))), {Var("a"): Literal(1)}))
    "3"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    if exists is None and others is None:
        return _compile_cached(expression)(row)
    return compile_expression(expression, exists, others)(row)


def compile_expression(
    expression: Expression,
    exists: ExistsTest | None = None,
    others: OtherFunctions | None = None,
) -> Compiled:
    """A function from rows to the value of `expression`.

    Raises `UnsupportedError` for a call that `check_call` rejects, and for an EXISTS if `exists` is
    None. With `others`, an unknown function with an IRI is an error of each row, as the
    recommendation says.
    """
    match expression:
        case Var():
            return _compile_variable(expression)
        case Const(term):
            return lambda _: term
        case Exists(pattern):
            return _compile_exists(pattern, exists)
        case Call(name, args):
            if others is not None and (name in VOLATILE or _is_foreign(name)):
                arguments = [compile_expression(arg, exists, others) for arg in args]
                return _compile_function(others.get(name, _unknown), arguments)
            check_call(name, len(args))
            return _compile_call(name, args, exists, others)
        case _:
            assert_never(expression)


@lru_cache(_CACHE_SIZE)
def _compile_cached(expression: Expression) -> Compiled:
    return compile_expression(expression)


def _compile_variable(variable: Var) -> Compiled:
    def read(row: Row) -> Term:
        term = row.get(variable)
        if term is None:
            raise ExpressionError(f"{variable} is unbound")
        return term

    return read


def _compile_exists(pattern: Node, exists: ExistsTest | None) -> Compiled:
    if exists is None:
        raise UnsupportedError("EXISTS cannot be evaluated here: there is no graph")
    return lambda row: boolean_term(exists(pattern, row))


def _is_foreign(name: str) -> bool:
    return name.startswith("<") and name.endswith(">") and entry_of(name) is None


def _unknown(*_: Term) -> Term:
    raise ExpressionError("unknown function")


def _compile_call(
    name: str,
    args: tuple[Expression, ...],
    exists: ExistsTest | None,
    others: OtherFunctions | None,
) -> Compiled:
    entry = entry_of(name)
    match entry:
        case BoundForm():
            return _compile_bound(args[0])
        case Form(build):
            return build([compile_expression(arg, exists, others) for arg in args])
        case Function(apply):
            arguments = [compile_expression(arg, exists, others) for arg in args]
            return _compile_function(apply, arguments)
        case None:
            raise UnsupportedError(f"unknown function {name}")
        case _:
            assert_never(entry)


def _compile_bound(argument: Expression) -> Compiled:
    if not isinstance(argument, Var):
        raise UnsupportedError("BOUND takes a variable, not an expression")
    return lambda row: boolean_term(argument in row)


def _compile_function(apply: Callable[..., Term], arguments: list[Compiled]) -> Compiled:
    match arguments:
        case [only]:
            return lambda row: apply(only(row))
        case [left, right]:
            return lambda row: apply(left(row), right(row))
        case _:
            return lambda row: apply(*[argument(row) for argument in arguments])
