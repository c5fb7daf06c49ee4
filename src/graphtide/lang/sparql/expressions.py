"""Parser layer 4: expressions with operators, built-in calls, casts, EXISTS and aggregates.

https://www.w3.org/TR/sparql11-query/#rExpression

Each aggregate of a query level is computed once, into a variable that replaces it in expressions:
https://www.w3.org/TR/sparql11-query/#sparqlAggregateAlgebra
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions.aggregates import AGGREGATES
from graphtide.functions.strings import PATTERN_FUNCTIONS, check_pattern
from graphtide.functions.table import FUNCTIONS, VOLATILE, check_call
from graphtide.functions.terms import ARITIES
from graphtide.lang.sparql.triples import TriplesParser

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Node


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate as written; `argument` is None for `*`."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str = " "


@dataclass(slots=True)
class Level:
    """A SELECT, ASK, CONSTRUCT or DESCRIBE being parsed: its aggregates and variables."""

    aggregates: dict[AggregateCall, Var] = field(default_factory=dict)
    inside: bool = False  # whether the argument of an aggregate is being parsed
    uses: list[tuple[Var, int]] = field(default_factory=list)  # variables outside aggregates


_SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}
_COMPARISON_HINT = "write a space after the operator <"
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class ExpressionParser(TriplesParser, ABC):
    """Parses expressions; `group` is left to the next layer."""

    # The query level of aggregates; None where aggregates are not allowed.
    level: Level | None = None

    @abstractmethod
    def group(self) -> Node:
        """`{ … }` as an algebra node."""

    def expression(self) -> Expression:
        """An expression of any precedence; operators in a row are one call."""
        either: list[Expression] = []
        while not either or self.accept("||"):
            both = [self._relation()]
            while self.accept("&&"):
                both.append(self._relation())
            either.append(_in_a_row("&&", both))
        return _in_a_row("||", either)

    def constraint(self, after: str) -> Expression:
        """The condition of FILTER or HAVING: brackets, a built-in call or a function call."""
        if self.accept("("):
            return self._rest_of_brackets()
        start = self.token
        called = self._primary() if self.at_constraint() else None
        if called is None or isinstance(called, Const):
            self.fail(f"expected '(' or a function after {after}, found {start}", at=start.start)
        return called

    def at_constraint(self) -> bool:
        """Whether a constraint comes next."""
        return self.at("(") or self.token.kind == "word" or self.at_iri()

    def expression_in(self, level: Level) -> tuple[Expression, list[tuple[Var, int]]]:
        """An expression that may use aggregates, and the variables it uses outside of them."""
        outer, self.level = self.level, level
        level.uses = []
        found = self.expression()
        self.level = outer
        uses, level.uses = level.uses, []
        return found, uses

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
        summands = [self._product()]
        signs = ""
        while sign := self.accept("+", "-"):
            signs += sign.text
            summands.append(self._product())
        return _in_a_row(signs, summands)

    def _product(self) -> Expression:
        factors = [self._signed()]
        signs = ""
        while sign := self.accept("*", "/"):
            signs += sign.text
            factors.append(self._signed())
        return _in_a_row(signs, factors)

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
            return self._used_variable()
        if self.at_literal():
            return Const(self.literal())
        if self.at_iri():
            return self._iri_or_cast()
        if self.at("<<"):
            self.refuse("a triple term", "compare the parts of the statement instead")
        if self.token.kind != "word":
            self.fail(f"expected an expression, found {self.token}")
        return self._builtin()

    def _used_variable(self) -> Var:
        start = self.token.start
        variable = self.variable()
        if self.level is not None and not self.level.inside:
            self.level.uses.append((variable, start))
        return variable

    def _rest_of_brackets(self) -> Expression:
        self.enter()
        inner = self.expression()
        self.leave()
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
        self.advance()
        if name in AGGREGATES:
            return self._aggregate(name, word.start)
        return self._call(_SYNONYMS.get(name, name), word.start)

    def _aggregate(self, name: str, start: int) -> Var:
        level = self.level
        if level is None:
            hint = "aggregates are allowed in SELECT, HAVING and ORDER BY"
            self.fail(f"the aggregate {name} is not allowed here", at=start, hint=hint)
        if level.inside:
            hint = "aggregate the inner values in a sub-SELECT"
            self.fail(f"the aggregate {name} is nested in another one", at=start, hint=hint)
        self.expect("(")
        distinct = self.accept("DISTINCT") is not None
        level.inside = True
        argument = None if name == "COUNT" and self.accept("*") else self.expression()
        level.inside = False
        separator = " "
        if name == "GROUP_CONCAT" and self.accept(";"):
            separator = self._separator()
        self.expect(")")
        call = AggregateCall(name, argument, distinct, separator)
        if call not in level.aggregates:
            level.aggregates[call] = self.invent(name.lower())
        return level.aggregates[call]

    def _separator(self) -> str:
        self.expect("SEPARATOR")
        self.expect("=")
        if self.token.kind != "string":
            self.fail(f"expected a string, found {self.token}")
        return self.string()

    def _call(self, name: str, start: int) -> Call:
        foreign = name.startswith("<") and name not in FUNCTIONS
        args = self._arguments(distinct=foreign)
        if self.standing and name in VOLATILE:
            hint = "compute the value in the program that changes the graph, and insert it"
            self.refuse(name, f"{VOLATILE[name]}; {hint}", at=start)
        if self.standing and foreign:
            hint = "the only functions with an IRI are casts, such as xsd:integer(?x)"
            self.refuse(f"the function {name}", hint, at=start)
        if not foreign:
            self._check_call(name, args, start)
        if name == "IRI" and self.base is not None:
            args = (*args, Const(NamedNode(self.base)))
        return Call(name, args)

    def _check_call(self, name: str, args: tuple[Expression, ...], start: int) -> None:
        if name in ARITIES:
            least, most = ARITIES[name]
            if not least <= len(args) <= most:
                self.fail(f"{name} takes {least} to {most} arguments, not {len(args)}", at=start)
            return
        try:
            check_call(name, len(args))
        except UnsupportedError as error:
            self.fail(error.message, at=start, hint=error.hint)
        if name == "BOUND" and not isinstance(args[0], Var):
            self.fail("BOUND takes a variable, not an expression", at=start)
        if name in PATTERN_FUNCTIONS:
            try:
                check_pattern(name, [a.term if isinstance(a, Const) else None for a in args[1:]])
            except ExpressionError as error:
                hint = "no row can satisfy it; see the syntax of XPath's regular expressions"
                self.fail(f"{name} has an invalid constant: {error.message}", at=start, hint=hint)

    def _arguments(self, *, distinct: bool = False) -> tuple[Expression, ...]:
        self.expect("(")
        if self.accept(")"):
            return ()
        if distinct:
            self.accept("DISTINCT")
        self.enter()
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        self.leave()
        self.expect(")")
        return tuple(args)


def _in_a_row(name: str, operands: list[Expression]) -> Expression:
    return operands[0] if len(operands) == 1 else Call(name, tuple(operands))
