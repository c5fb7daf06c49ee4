"""Parse the SPARQL fragments of events and rules: patterns, templates, arguments, filters."""

from __future__ import annotations

import re
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

from graphtide.algebra.expressions import Call, Exists, Expression, Var
from graphtide.algebra.nodes import Bgp, DefaultGraph, Filter, Project, SelectQuery, TriplePattern
from graphtide.algebra.triple_terms import is_ground
from graphtide.algebra.updates import Modify
from graphtide.errors import QueryError
from graphtide.lang.durations import WrittenDuration, parse_duration
from graphtide.lang.sparql.parse import parse_query, parse_update
from graphtide.lang.sparql.scanner import Scanner
from graphtide.lang.sparql.terms import TermParser
from graphtide.lang.tide.lexer import RELATIONS
from graphtide.lang.tide.references import references_in, with_event_variables, with_time_variables
from graphtide.rdf.terms import TripleTerm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lark import Token
    from pyoxigraph import NamedNode

    from graphtide.lang.tide.source import Source
    from graphtide.rdf.terms import Term

Item = TypeVar("Item")

_RANGED: Final = ("AFTER", "BEFORE", "DURING", "INCLUDES", "OVERLAPS", "OVERLAPPEDBY")
"""Relations whose bounds are pairs of a lower and an upper bound."""


def facts_of(source: Source, groups: list[Token]) -> SelectQuery | None:
    """The FACT conditions of a rule as one query over all their variables."""
    read = [source.parse_fragment(group, parse_query, "SELECT * WHERE") for group in groups]
    if not groups or None in read:
        return None
    return parse_query(f"{source.prologue} SELECT * WHERE {{ {' '.join(groups)} }}")


def triples_of(
    source: Source, group: Token
) -> tuple[tuple[TriplePattern, ...], Expression | None] | None:
    """The triple patterns of an event, and the condition of its FILTERs."""
    query = source.parse_fragment(group, parse_query, "SELECT * WHERE")
    if query is None:
        return None
    node = query.root.child if isinstance(query.root, Project) else query.root
    tests: list[Expression] = []
    while isinstance(node, Filter):
        tests.append(node.condition)
        node = node.child
    if not isinstance(node, Bgp) or not _plain(node.patterns) or any(map(_has_exists, tests)):
        hint = "test facts with FACT in the rule"
        source.report(group, "the pattern of an event can only contain triples and FILTER", hint)
        return None
    if not node.patterns:
        source.report(group, "the pattern of an event must not be empty")
        return None
    return node.patterns, Call("&&", tuple(tests)) if len(tests) > 1 else next(iter(tests), None)


def _plain(patterns: tuple[TriplePattern, ...]) -> bool:
    return all(isinstance(pattern.graph, DefaultGraph) for pattern in patterns)


def template_of(source: Source, group: Token, word: str) -> tuple[TriplePattern, ...] | None:
    """The template of INSERT, DELETE, EMIT or PUBLISH."""
    head = "DELETE" if word == "DELETE" else "INSERT"
    timed = with_time_variables(group)
    update = source.parse_fragment(timed, _update, head, "WHERE {}")
    if update is None:
        return None
    (operation,) = update.operations
    assert isinstance(operation, Modify)  # noqa: S101 - that is what the text says
    template = operation.delete if word == "DELETE" else operation.insert
    if any(isinstance(t.object, TripleTerm) and not is_ground(t.object) for t in template):
        hint = "compute the term in a FACT: BIND (<<( … )>> AS ?t)"
        message = "a triple term in a template cannot contain variables or blank nodes"
        source.report(group, message, hint)
        return None
    if word in ("EMIT", "PUBLISH") and not _plain(template):
        source.report(group, f"{word} must not contain GRAPH", f"{word.lower()} plain triples")
        return None
    return template


_update = lru_cache(maxsize=1024)(parse_update)


def computed_in(source: Source, group: Token) -> tuple[Token, list[Token]]:
    """A template in which each `(expression AS ?v)` is the variable, and these as BIND has them.

    What is left has the same length and lines, so that errors have the right place.
    """
    opened: list[int] = []
    found: list[Token] = []
    text = str(group)
    try:
        scanner = Scanner(text)
        while scanner.token.kind != "end":
            token = scanner.advance()
            if token.kind == "sign" and token.text == "(":
                opened.append(token.start)
            elif token.kind == "sign" and token.text == ")" and opened:
                start = opened.pop()
                named = _NAMED.search(text, start, token.start)
                if named is None:
                    continue
                written = text[start : token.end]
                rest = _VISIBLE.sub(" ", written[len(named[1]) :])
                text = f"{text[:start]}{named[1]}{rest}{text[token.end :]}"
                found.append(_part(source, group, start, written))
    except QueryError:  # the parser of the template says what is wrong
        return group, []
    return group.update(value=text), found


_NAMED: Final = re.compile(r"\sAS\s+([?$]\w+)\s*\Z", re.IGNORECASE)
_VISIBLE: Final = re.compile(r"[^\n]")


def _part(source: Source, whole: Token, start: int, text: str) -> Token:
    """A part of a fragment as a token of its own."""
    part = whole.update(type="EXPRESSION", value=text)
    part.start_pos = (whole.start_pos or 0) + start
    part.line, part.column = source.place(part.start_pos)
    return part


class _ArgumentParser:
    """Parses `(?a, :b, 1)`, or one IRI."""

    def __init__(self, text: str) -> None:
        self._terms = TermParser(text)
        self._tokens = self._terms.tokens
        self._terms.prologue()

    def arguments(self) -> tuple[Var | Term, ...]:
        """The arguments."""
        return tuple(self._each(self._argument))

    def with_gaps(self) -> tuple[Var | Term | None, ...]:
        """The arguments; the wildcard `_` is None."""
        return tuple(self._each(lambda: None if self._tokens.accept("_") else self._argument()))

    def values(self) -> tuple[tuple[Var | None, Term | None], ...]:
        """Values by position, where the wildcard `_` is None, or by name as in `?x = 1`."""
        return tuple(self._each(self._value))

    def _value(self) -> tuple[Var | None, Term | None]:
        if self._tokens.token.kind != "var":
            return None, None if self._tokens.accept("_") else self._terms.constant("a value")
        variable = self._terms.variable()
        self._tokens.expect("=")
        return variable, self._terms.constant("a value")

    def _each(self, argument: Callable[[], Item]) -> Iterator[Item]:
        self._tokens.expect("(")
        if self._tokens.accept(")"):
            return
        yield argument()
        while not self._tokens.accept(")"):
            self._tokens.expect(",")
            yield argument()

    def _argument(self) -> Var | Term:
        if self._tokens.token.kind == "var":
            return self._terms.variable()
        if self._tokens.at("_"):
            hint = "_ is for patterns; here, write a variable that nothing else uses"
            self._tokens.fail("expected a variable or a term, found '_'", hint=hint)
        return self._terms.constant("a variable or a term")

    def stream(self) -> NamedNode:
        """The name of a stream."""
        return self._terms.iri()


def arguments_of(source: Source, token: Token) -> tuple[Var | Term, ...] | None:
    """The arguments in brackets after a name."""
    timed = with_time_variables(token)
    return source.parse_fragment(timed, _arguments)


@lru_cache(maxsize=1024)
def _arguments(text: str) -> tuple[Var | Term, ...]:
    """Arguments after a prologue: most names of a program are followed by the same few."""
    return _ArgumentParser(text).arguments()


def gapped_arguments_of(source: Source, token: Token) -> tuple[Var | Term | None, ...] | None:
    """The arguments of an event in a pattern; the wildcard `_` is None."""
    return source.parse_fragment(token, lambda text: _ArgumentParser(text).with_gaps())


def values_of(source: Source, token: Token) -> tuple[tuple[Var | None, Term | None], ...] | None:
    """The values in brackets after a name of a test, each with its variable if that is given."""
    return source.parse_fragment(token, lambda text: _ArgumentParser(text).values())


def variables_of(source: Source, token: Token) -> tuple[Var, ...] | None:
    """Distinct variables in brackets."""
    arguments = arguments_of(source, token)
    if arguments is None:
        return None
    variables = tuple(argument for argument in arguments if isinstance(argument, Var))
    if len(variables) < len(arguments) or references_in(variables):
        source.report(token, "only variables are allowed here")
        return None
    for place, variable in enumerate(variables):
        if variable in variables[:place]:
            source.report_variable(token, variable.name, f"{variable} is given twice", None)
            return None
    return variables


def stream_of(source: Source, token: Token) -> NamedNode | None:
    """The stream that EMIT names."""
    return source.parse_fragment(token, lambda text: _ArgumentParser(text).stream())


def filter_of(
    source: Source, token: Token, instead: str = "write it inside of FACT { … }"
) -> Expression | None:
    """The expression after FILTER or CHECK; `instead` is the hint for EXISTS."""
    return _filter_of(source, with_time_variables(token), instead)


def expression_of(source: Source, token: Token) -> Expression | None:
    """An expression over the events of a pattern, in brackets unless it is a CONDITION."""
    if token.type == "CONDITION":
        token = token.update(type="EXPRESSION", value=f"({token})")
        token.column = (token.column or 1) - 1  # so that errors have the right place
    return _filter_of(source, with_event_variables(token), "write a query, and an event of it")


def _filter_of(source: Source, token: Token, instead: str) -> Expression | None:
    query = source.parse_fragment(token, parse_query, "SELECT * WHERE { FILTER", "}")
    if query is None:
        return None
    assert isinstance(query.root, Project)  # noqa: S101 - that is what the text says
    assert isinstance(query.root.child, Filter)  # noqa: S101 - same
    if _has_exists(query.root.child.condition):
        source.report(token, "EXISTS is not allowed here", instead)
        return None
    return query.root.child.condition


def _has_exists(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(_has_exists(argument) for argument in expression.args)
    return isinstance(expression, Exists)


def bounds_of(
    source: Source, relation: Token, token: Token | None
) -> tuple[WrittenDuration, ...] | None:
    """The bounds of a temporal relation; `*` is unbounded."""
    if token is None:
        return ()
    written = [part.strip() for part in token[1:-1].split(",")]
    operator = relation.upper()
    found: list[WrittenDuration] = []
    for place, part in enumerate(written):
        below = operator in _RANGED and len(written) > 1 and place % 2 == 0
        number = WrittenDuration(-inf if below else inf) if part == "*" else parse_duration(part)
        if number is None:
            hint = "write ticks such as 5, a duration such as 10s, 500ms or PT2H, or * for no bound"
            shown = f"'{part}'" if part else "nothing"
            source.report(token, f"expected a duration, found {shown}", hint)
            return None
        found.append(number)
    return tuple(found) if _sound(source, token, operator, found) else None


def _sound(source: Source, token: Token, operator: str, numbers: list[WrittenDuration]) -> bool:
    most = RELATIONS[operator]
    if len(numbers) > most or len(numbers) == 3:
        source.report(token, f"{operator} takes up to {most} bounds, not {len(numbers)}")
        return False
    if operator in _RANGED and len(numbers) > 1:
        for low, high in zip(numbers[::2], numbers[1::2], strict=True):
            same = low.in_time == high.in_time or inf in (abs(low.amount), abs(high.amount))
            if same and low.amount > high.amount:
                hint = "write the lower bound first"
                source.report(token, "the lower bound is above the upper bound", hint)
                return False
    return True
