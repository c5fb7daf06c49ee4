"""The tests of a rule: temporal relations and filters, joined with AND, OR and NOT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lark import Token, Tree

from graphtide.algebra.variables import expression_variables
from graphtide.lang.declarations import Combined, RuleTest, TimeTest, ValueTest
from graphtide.lang.hints import name_hint
from graphtide.lang.tide_pieces import bounds_of, filter_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.expressions import Var
    from graphtide.lang.tide_source import Source


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """A test as it was written: after an event, which it then is about, or after WHERE."""

    tree: Tree[Token]
    this: str | None


def read_test(
    source: Source, written: WrittenTest, known: list[str], bound: set[Var] | None
) -> RuleTest | None:
    """A test; None, and mistakes noted, if it is not sound."""
    return _Reader(source, written.this, known, bound).test(written.tree)


@dataclass(slots=True)
class _Reader:
    source: Source
    this: str | None
    known: list[str]
    bound: set[Var] | None

    def test(self, tree: Tree[Token]) -> RuleTest | None:
        match str(tree.data):
            case "time":
                return self._time(tree)
            case "filter":
                return self._filter(tree)
            case word:
                inner = [self.test(part) for part in tree.children if isinstance(part, Tree)]
                parts = tuple(part for part in inner if part is not None)
                return Combined(word.upper(), parts) if len(parts) == len(inner) else None

    def _time(self, tree: Tree[Token]) -> TimeTest | None:
        given, relation, bounds, other = tree.children
        assert isinstance(relation, Token)  # noqa: S101 - the grammar says so
        assert isinstance(other, Token)  # noqa: S101 - same
        numbers = bounds_of(self.source, relation, bounds if isinstance(bounds, Token) else None)
        named = [name for name in (given, other) if isinstance(name, Token)]
        unknown = [name for name in named if str(name) not in self.known]
        for name in unknown:
            hint = name_hint(str(name), self.known, "event")
            self.source.report(name, f"there is no event named {name} in this rule", hint)
        this = str(given) if isinstance(given, Token) else self.this
        if this is None:
            hint = f"write the name of an event before {relation}"
            self.source.report(relation, "this test does not say which event it is about", hint)
        elif this == str(other):
            self.source.report(other, f"the event {this} is compared with itself")
        elif numbers is not None and not unknown:
            return TimeTest(relation.upper(), this, str(other), numbers)
        return None

    def _filter(self, tree: Tree[Token]) -> ValueTest | None:
        token = tree.children[1]
        assert isinstance(token, Token)  # noqa: S101 - the grammar says so
        expression = filter_of(self.source, token)
        if expression is None or self.bound is None:
            return None
        mentioned = sorted(v.name for v in expression_variables(expression) - self.bound)
        for name in mentioned:
            hint = name_hint(f"?{name}", sorted(map(str, self.bound)), "variable")
            message = f"?{name} has no value in this rule"
            self.source.report_variable(token, name, message, hint)
        return None if mentioned else ValueTest(expression)


def check_parts(
    source: Source, tests: list[RuleTest], written: list[WrittenTest], denied: set[str]
) -> bool:
    """Whether each test speaks of one event at most that must not happen."""
    for test, each in zip(tests, written, strict=True):
        for part in _conjuncts(test):
            found = sorted(denied.intersection(_named(part)))
            if len(found) > 1:
                message = f"{' and '.join(found)} must not happen, so they cannot be compared"
                token = next(each.tree.scan_values(lambda value: isinstance(value, Token)))
                source.report(token, message, "compare each with an event that does happen")
                return False
    return True


def _conjuncts(test: RuleTest) -> Iterator[RuleTest]:
    if isinstance(test, Combined) and test.word == "AND":
        for part in test.parts:
            yield from _conjuncts(part)
    else:
        yield test


def _named(test: RuleTest) -> set[str]:
    match test:
        case TimeTest(_, this, other):
            return {this, other}
        case Combined(_, parts):
            return {name for part in parts for name in _named(part)}
        case _:
            return set()
