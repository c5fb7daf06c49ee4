"""The text of a program file, the errors found in it, and the names that a program declares."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from lark import Token, Tree

from graphtide.errors import QueryError
from graphtide.lang.sparql.scanner import excerpt, name_hint, place, word_hint
from graphtide.lang.tide.lexer import TOP_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.expressions import Var
    from graphtide.lang.tide import ast as tide

_EXCERPT: Final = re.compile(r"\n  \d+ \| [^\n]*\n +\| *\^\Z")
T = TypeVar("T")


class Source:
    """The text of a program file; collects the prefixes and errors found in it."""

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text = text
        self.name = name
        self.prefixes: dict[str, str] = {}
        self.errors: list[QueryError] = []

    @property
    def prologue(self) -> str:
        """The prefixes as a SPARQL prologue."""
        return " ".join(f"PREFIX {name} {iri}" for name, iri in self.prefixes.items())

    def add(self, error: QueryError) -> None:
        """Record an error that has a line and column."""
        error.source = error.source or self.name
        self.errors.append(error)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset of the text."""
        return place(self.text, offset)

    def report(self, token: Token, message: str, hint: str | None = None) -> None:
        """Record an error at a token."""
        self.report_at(token.start_pos or 0, message, hint)

    def report_at(self, offset: int, message: str, hint: str | None = None) -> None:
        """Record an error at an offset of the text."""
        line, column = place(self.text, offset)
        shown = f"{message}\n{excerpt(self.text, line, column)}"
        self.add(QueryError(shown, line=line, column=column, hint=hint))

    def report_variable(self, token: Token, name: str, message: str, hint: str | None) -> None:
        """Record an error at the first occurrence of a variable in a fragment."""
        written = re.search(rf"[?$]{re.escape(name)}\b", token)
        inside = written.start() if written else 0
        self.report_at((token.start_pos or 0) + inside, message, hint)

    def parse_fragment(
        self, token: Token, read: Callable[[str], T], head: str = "", tail: str = ""
    ) -> T | None:
        """Parse a SPARQL fragment; None, and the error recorded, if that fails.

        The parser gets a line with the prologue and `head`, then the fragment, then a line `tail`.
        """
        try:
            return read(f"{self.prologue} {head}\n{token}" + (f"\n{tail}" if tail else ""))
        except QueryError as error:
            self.add(self._placed(error, token))
            return None

    def _placed(self, error: QueryError, token: Token) -> QueryError:
        """Convert line and column of an error from the fragment to the file."""
        lines = token.count("\n") + 1
        if error.line is None or error.column is None or not 2 <= error.line <= lines + 1:
            error.line, error.column = token.line or 1, token.column or 1
        else:
            error.column += (token.column or 1) - 1 if error.line == 2 else 0
            error.line += (token.line or 1) - 2
        misspelt = re.match(r"expected the end of the query, found '(\w+)'", error.message)
        if misspelt and error.hint is None:
            error.hint = word_hint(misspelt[1], TOP_LEVEL)
        shown = excerpt(self.text, error.line, error.column)
        error.message = f"{_EXCERPT.sub('', error.message)}\n{shown}"
        return error


def tokens_of(tree: Tree[Token], kind: str) -> list[Token]:
    """The tokens of a kind among the children of a tree."""
    return [t for t in tree.children if isinstance(t, Token) and t.type == kind]


def token_of(tree: Tree[Token], kind: str) -> Token | None:
    """The first token of a kind among the children of a tree, if any."""
    found = tokens_of(tree, kind)
    return found[0] if found else None


@dataclass(slots=True)
class DeclaredNames:
    """The symbol table of a program: its declarations by name.

    `variables` has the columns of each query without errors; `broken` the names of declarations
    that could not be read, so that their uses are not reported as well.
    """

    queries: dict[str, tide.NamedQuery] = field(default_factory=dict)
    events: dict[str, tide.EventDeclaration] = field(default_factory=dict)
    patterns: dict[str, tide.PatternDeclaration] = field(default_factory=dict)
    rules: dict[str, tide.RuleDeclaration] = field(default_factory=dict)
    goals: dict[str, tide.GoalDeclaration] = field(default_factory=dict)
    fixes: dict[str, tide.FixDeclaration] = field(default_factory=dict)
    tests: dict[str, tide.TestDeclaration] = field(default_factory=dict)
    variables: dict[str, tuple[Var, ...]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    _places: dict[tuple[str, str], tuple[str | None, int]] = field(default_factory=dict)

    def declare(self, source: Source, kind: str, name: Token) -> bool:
        """Declare a name; False, and an error recorded, if it is already in use."""
        key = kind, str(name)
        if key in self._places:
            file, line = self._places[key]
            where = f"line {line}" if file in (None, source.name) else f"{file}, line {line}"
            plural = {"query": "queries", "fix": "fixes"}.get(kind, f"{kind}s")
            source.report(
                name, f"there are two {plural} named {name}", f"the first one is in {where}"
            )
            return False
        self._places[key] = source.name, name.line or 1
        return True

    def is_declared(self, name: str) -> bool:
        """Whether a query, rule or pattern with errors has this name."""
        pattern = ("event", name) in self._places and name not in self.events
        return pattern or any((kind, name) in self._places for kind in ("query", "rule"))

    def columns(self, source: Source, name: Token) -> tuple[Var, ...] | None:
        """The columns of a query; None, and an error recorded, if it is unknown."""
        found = self.variables.get(str(name))
        known = ("query", str(name)) in self._places or str(name) in self.broken
        if found is None and not known:
            hint = name_hint(str(name), self.queries, "query")
            source.report(name, f"there is no query named {name}", hint)
        return found

    def event(self, source: Source, name: Token) -> tide.EventDeclaration | None:
        """An event; None, and an error recorded, if it is unknown."""
        found = self.events.get(str(name))
        known = ("event", str(name)) in self._places or str(name) in self.broken
        if found is None and not known:
            hint = name_hint(str(name), self.events, "event")
            source.report(name, f"there is no event named {name}", hint)
        return found
