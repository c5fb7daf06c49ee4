"""Expressions: operators by precedence, built-in calls, casts, EXISTS.

https://www.w3.org/TR/sparql11-query/#rExpression
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Call, Const, Exists, Expression
from graphtide.errors import UnsupportedError
from graphtide.functions import FUNCTIONS, VOLATILE, check_call
from graphtide.lang.triples import TriplesParser
from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.nodes import Node

AGGREGATES = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))
_SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}
_COMPARISON_HINT = "to compare with <, write a space after it"
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class ExpressionParser(TriplesParser, ABC):
    """Reads expressions; the patterns inside EXISTS are left to the next layer."""

    @abstractmethod
    def group(self) -> Node:
        """`{ … }` as an algebra node."""

    def expression(self) -> Expression:
        """An expression of any precedence."""
        return self._chain(self._conjunction, "||")

    def constraint(self) -> Expression:
        """What may follow FILTER: brackets, a built-in call or a function call."""
        if self.accept("("):
            return self._rest_of_brackets()
        if self.token.kind != "word" and not self.at_iri():
            self.fail(f"expected '(' or a function after FILTER, found {self.token}")
        return self._primary()

    def _chain(self, operand: Callable[[], Expression], *signs: str) -> Expression:
        left = operand()
        while sign := self.accept(*signs):
            left = Call(sign.text, (left, operand()))
        return left

    def _conjunction(self) -> Expression:
        return self._chain(self._relation, "&&")

    def _relation(self) -> Expression:
        left = self._sum()
        if sign := self.accept(*_COMPARISONS):
            return Call(sign.text, (left, self._sum()))
        if self.token.kind == "iri":
            self.fail(f"expected an operator, found the IRI {self.token}", hint=_COMPARISON_HINT)
        if self.accept("IN"):
            return Call("IN", (left, *self._arguments()))
        if self.at("NOT") and self.follows("IN"):
            self.advance()
            self.advance()
            return Call("NOT IN", (left, *self._arguments()))
        return left

    def _sum(self) -> Expression:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Expression:
        return self._chain(self._signed, "*", "/")

    def _signed(self) -> Expression:
        if self.at_literal():
            return Const(self.literal())
        if sign := self.accept("!", "-", "+"):
            name = {"!": "!", "-": "UMINUS", "+": "UPLUS"}[sign.text]
            return Call(name, (self._primary(),))
        return self._primary()

    def _primary(self) -> Expression:
        if self.accept("("):
            return self._rest_of_brackets()
        if self.token.kind == "var":
            return self.variable()
        if self.at_literal():
            return Const(self.literal())
        if self.at_iri():
            return self._iri_or_cast()
        if self.at("<<"):
            self.refuse("a triple term", "compare the parts of the statement instead")
        if self.token.kind != "word":
            self.fail(f"expected an expression, found {self.token}")
        return self._builtin()

    def _rest_of_brackets(self) -> Expression:
        inner = self.expression()
        self.expect(")")
        return inner

    def _iri_or_cast(self) -> Expression:
        start = self.token.start
        iri = self.iri()
        if not self.at("("):
            return Const(iri)
        return self._call(str(iri), start)

    def _builtin(self) -> Expression:
        word = self.token
        name = word.text.upper()
        if name == "EXISTS":
            self.advance()
            return Exists(self.group())
        if name == "NOT" and self.follows("EXISTS"):
            self.advance()
            self.advance()
            return Call("!", (Exists(self.group()),))
        if not self.follows("("):
            self.fail(f"expected an expression, found {word}")
        if name in AGGREGATES:
            hint = "watch the plain rows and aggregate them where you use them"
            self.refuse(f"the aggregate {name}", hint)
        self.advance()
        return self._call(_SYNONYMS.get(name, name), word.start)

    def _call(self, name: str, start: int) -> Call:
        args = self._arguments()
        if name in VOLATILE:
            hint = "compute the value where you change the graph, and insert it as data"
            self.refuse(name, f"{VOLATILE[name]}; {hint}", at=start)
        if name.startswith("<") and name not in FUNCTIONS:
            hint = "functions with an IRI are the casts, such as xsd:integer(?x)"
            self.refuse(f"the function {name}", hint, at=start)
        try:
            check_call(name, len(args))
        except UnsupportedError as error:
            self.fail(error.message, at=start, hint=error.hint)
        if name == "IRI" and self.base is not None:
            args = (*args, Const(NamedNode(self.base)))
        return Call(name, args)

    def _arguments(self) -> tuple[Expression, ...]:
        self.expect("(")
        if self.accept(")"):
            return ()
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        self.expect(")")
        return tuple(args)
