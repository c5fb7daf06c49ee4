"""Expressions with operators, built-in calls, casts, EXISTS and aggregates.

https://www.w3.org/TR/sparql11-query/#rExpression

Each aggregate of a query level is computed once, into a variable that replaces it in expressions:
https://www.w3.org/TR/sparql11-query/#sparqlAggregateAlgebra
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from graphtide.algebra.clock import NOW
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions.aggregates import AGGREGATES
from graphtide.functions.strings import PATTERN_FUNCTIONS, check_pattern
from graphtide.functions.table import VOLATILE, check_call, entry_of
from graphtide.functions.terms import ARITIES
from graphtide.functions.user import USER_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.nodes import Node
    from graphtide.lang.sparql.triples import TriplesParser


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


class ExpressionParser:
    """Parses expressions; `group` parses the `{ … }` of EXISTS.

    `level` is the query level of aggregates, None where aggregates are not allowed.
    """

    def __init__(self, triples: TriplesParser, group: Callable[[], Node]) -> None:
        self.tokens = triples.tokens
        self.terms = triples.terms
        self.triples = triples
        self.level: Level | None = None
        self._group = group

    def expression(self) -> Expression:
        """An expression of any precedence; operators in a row are one call."""
        either: list[Expression] = []
        while not either or self.tokens.accept("||"):
            both = [self._relation()]
            while self.tokens.accept("&&"):
                both.append(self._relation())
            either.append(_in_a_row("&&", both))
        return _in_a_row("||", either)

    def constraint(self, after: str) -> Expression:
        """The condition of FILTER or HAVING: brackets, a built-in call or a function call."""
        if self.tokens.accept("("):
            return self._rest_of_brackets()
        start = self.tokens.token
        called = self._primary() if self.at_constraint() else None
        if called is None or isinstance(called, Const):
            self.tokens.fail(
                f"expected '(' or a function after {after}, found {start}", at=start.start
            )
        return called

    def at_constraint(self) -> bool:
        """Whether a constraint comes next."""
        return self.tokens.at("(") or self.tokens.token.kind == "word" or self.terms.at_iri()

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
        if sign := self.tokens.accept(*_COMPARISONS):
            return Call(sign.text, (left, self._sum()))
        if self.tokens.token.kind == "iri":
            self.tokens.fail(
                f"expected an operator, found the IRI {self.tokens.token}", hint=_COMPARISON_HINT
            )
        if self.tokens.accept("IN"):
            return Call("IN", (left, *self._arguments()))
        if self.tokens.at("NOT") and self.tokens.follows("IN"):
            self.tokens.advance()
            self.tokens.advance()
            return Call("NOT IN", (left, *self._arguments()))
        return left

    def _sum(self) -> Expression:
        summands = [self._product()]
        signs = ""
        while sign := self.tokens.accept("+", "-"):
            signs += sign.text
            summands.append(self._product())
        return _in_a_row(signs, summands)

    def _product(self) -> Expression:
        factors = [self._signed()]
        signs = ""
        while sign := self.tokens.accept("*", "/"):
            signs += sign.text
            factors.append(self._signed())
        return _in_a_row(signs, factors)

    def _signed(self) -> Expression:
        if self.terms.at_literal():
            return Const(self.terms.literal())
        if sign := self.tokens.accept("!", "-", "+"):
            name = {"!": "!", "-": "UMINUS", "+": "UPLUS"}[sign.text]
            if name == "!" and self.tokens.at("!"):
                self.tokens.enter()
                inner = self._signed()
                self.tokens.leave()
                return Call("!", (inner,))
            return Call(name, (self._primary(),))
        return self._primary()

    def _primary(self) -> Expression:
        if self.tokens.accept("("):
            return self._rest_of_brackets()
        if self.tokens.token.kind == "var":
            return self._used_variable()
        if self.terms.at_literal():
            return Const(self.terms.literal())
        if self.terms.at_iri():
            return self._iri_or_cast()
        if self.tokens.at("<<("):
            return self._triple_term()
        if self.tokens.token.kind != "word":
            self.tokens.fail(f"expected an expression, found {self.tokens.token}")
        return self._builtin()

    def _used_variable(self) -> Var:
        start = self.tokens.token.start
        variable = self.terms.variable()
        if self.level is not None and not self.level.inside:
            self.level.uses.append((variable, start))
        return variable

    def _triple_term(self) -> Call:
        """`<<( s p o )>>`: the same as TRIPLE(s, p, o)."""
        self.tokens.enter()
        self.tokens.expect("<<(")
        variable = self.tokens.token.kind == "var"
        subject = self._used_variable() if variable else Const(self.terms.iri())
        variable = self.tokens.token.kind == "var"
        predicate = self._used_variable() if variable else Const(self.triples.paths.predicate())
        object_: Expression
        if self.tokens.at("<<("):
            object_ = self._triple_term()
        elif self.tokens.token.kind == "var":
            object_ = self._used_variable()
        else:
            object_ = Const(self.terms.constant("a term or variable"))
        self.tokens.expect(")>>")
        self.tokens.leave()
        return Call("TRIPLE", (subject, predicate, object_))

    def _rest_of_brackets(self) -> Expression:
        self.tokens.enter()
        inner = self.expression()
        self.tokens.leave()
        self.tokens.expect(")")
        return inner

    def _iri_or_cast(self) -> Expression:
        start = self.tokens.token.start
        iri = self.terms.iri()
        if not self.tokens.at("("):
            return Const(iri)
        return self._call(str(iri), start)

    def _builtin(self) -> Expression:
        word = self.tokens.token
        name = word.text.upper()
        if name == "EXISTS":
            self.tokens.advance()
            return Exists(self._group())
        if name == "NOT" and self.tokens.follows("EXISTS"):
            self.tokens.advance()
            self.tokens.advance()
            return Call("!", (Exists(self._group()),))
        if not self.tokens.follows("("):
            self.tokens.fail(f"expected an expression, found {word}")
        self.tokens.advance()
        if name in AGGREGATES:
            return self._aggregate(name, word.start)
        return self._call(_SYNONYMS.get(name, name), word.start)

    def _aggregate(self, name: str, start: int) -> Var:
        level = self.level
        if level is None:
            hint = "aggregates are allowed in SELECT, HAVING and ORDER BY"
            self.tokens.fail(f"the aggregate {name} is not allowed here", at=start, hint=hint)
        if level.inside:
            hint = "aggregate the inner values in a sub-SELECT"
            self.tokens.fail(f"the aggregate {name} is nested in another one", at=start, hint=hint)
        self.tokens.expect("(")
        distinct = self.tokens.accept("DISTINCT") is not None
        level.inside = True
        argument = None if name == "COUNT" and self.tokens.accept("*") else self.expression()
        level.inside = False
        separator = " "
        if name == "GROUP_CONCAT" and self.tokens.accept(";"):
            separator = self._separator()
        self.tokens.expect(")")
        call = AggregateCall(name, argument, distinct, separator)
        if call not in level.aggregates:
            level.aggregates[call] = self.triples.invent(name.lower())
        return level.aggregates[call]

    def _separator(self) -> str:
        self.tokens.expect("SEPARATOR")
        self.tokens.expect("=")
        if self.tokens.token.kind != "string":
            self.tokens.fail(f"expected a string, found {self.tokens.token}")
        return self.terms.string()

    def _call(self, name: str, start: int) -> Call:
        foreign = name.startswith("<") and entry_of(name) is None
        args = self._arguments(distinct=foreign)
        if self.terms.standing and name == NOW:
            self.terms.now_at = start
        elif self.terms.standing and name in VOLATILE:
            hint = "compute the value in the program that changes the graph, and insert it"
            self.tokens.refuse(name, f"{VOLATILE[name]}; {hint}", at=start)
        if self.terms.standing and foreign:
            hint = f'it is not known; register it with graphtide.function("{name[1:-1]}", f)'
            self.tokens.refuse(f"the function {name}", hint, at=start)
        if self.terms.standing and name in USER_FUNCTIONS and not USER_FUNCTIONS[name].pure:
            hint = "it is not pure: its result could change without a change of the graph"
            self.tokens.refuse(f"the function {name}", hint, at=start)
        if not foreign:
            self._check_call(name, args, start)
        if name == "IRI" and self.terms.base is not None:
            args = (*args, Const(NamedNode(self.terms.base)))
        return Call(name, args)

    def _check_call(self, name: str, args: tuple[Expression, ...], start: int) -> None:
        if name in ARITIES:
            least, most = ARITIES[name]
            if not least <= len(args) <= most:
                self.tokens.fail(
                    f"{name} takes {least} to {most} arguments, not {len(args)}", at=start
                )
            return
        try:
            check_call(name, len(args))
        except UnsupportedError as error:
            self.tokens.fail(error.message, at=start, hint=error.hint)
        if name == "BOUND" and not isinstance(args[0], Var):
            self.tokens.fail("BOUND takes a variable, not an expression", at=start)
        if name in PATTERN_FUNCTIONS:
            try:
                check_pattern(name, [a.term if isinstance(a, Const) else None for a in args[1:]])
            except ExpressionError as error:
                hint = "no row can satisfy it; see the syntax of XPath's regular expressions"
                self.tokens.fail(
                    f"{name} has an invalid constant: {error.message}", at=start, hint=hint
                )

    def _arguments(self, *, distinct: bool = False) -> tuple[Expression, ...]:
        self.tokens.expect("(")
        if self.tokens.accept(")"):
            return ()
        if distinct:
            self.tokens.accept("DISTINCT")
        self.tokens.enter()
        args = [self.expression()]
        while self.tokens.accept(","):
            args.append(self.expression())
        self.tokens.leave()
        self.tokens.expect(")")
        return tuple(args)


def _in_a_row(name: str, operands: list[Expression]) -> Expression:
    return operands[0] if len(operands) == 1 else Call(name, tuple(operands))
