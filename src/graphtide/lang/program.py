"""Programs: named queries with shared prefixes in one file, the beginnings of the .tide language.

    PREFIX : <http://example.org/>       # holds for every query of the file
    QUERY Hot AS SELECT ?room WHERE { ?room :temperature ?t FILTER (?t > 30) }

A query's SPARQL text goes on until the next declaration. A `.rq` file is a program with one query,
named after the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NoReturn

from lark import Lark, Token, Tree, UnexpectedToken

from graphtide.errors import QueryError
from graphtide.lang.hints import word_hint
from graphtide.lang.scanner import Scanner, excerpt
from graphtide.lang.sparql import parse_query
from graphtide.lang.tide_lexer import MISFIT, TOP_LEVEL, TideLexer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

QUERY_SUFFIXES: Final = (".rq", ".sparql")

_EXPECTED: Final = {
    "NAMESPACE": "a prefix such as 'ex:'",
    "IRI": "an IRI such as <http://example.org/>",
    "NAME": "a name for the query",
    "AS": "AS",
    "BODY": "a SELECT query",
}
_EXCERPT = re.compile(r"\n  \d+ \| [^\n]*\n +\| *\^\Z")


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of a program: its name, its whole SPARQL text, and the line where that begins."""

    name: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Program:
    """The queries of a program, in the order of the file."""

    queries: tuple[NamedQuery, ...]

    @property
    def texts(self) -> dict[str, str]:
        """The SPARQL texts by name."""
        return {query.name: query.text for query in self.queries}


def parse_program(text: str) -> Program:
    r"""Read a program; every error knows its line and column in this text.

    >>> text = "PREFIX : <ex:>\nQUERY Hot AS SELECT ?r { ?r :is :hot }"
    >>> parse_program(text).queries
    (NamedQuery(name='Hot', text='PREFIX : <ex:>\nSELECT ?r { ?r :is :hot }', line=2),)
    >>> parse_program("QURY Hot AS SELECT * { }")
    Traceback (most recent call last):
        ...
    graphtide.errors.QueryError: 1:1: expected PREFIX or QUERY, found 'QURY'
      1 | QURY Hot AS SELECT * { }
        | ^
      hint: did you mean QUERY?
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedToken as error:
        _unexpected(text, error)
    declared = _prefixes(text, tree)
    prologue = " ".join(f"PREFIX {name} {iri}" for name, iri in declared.items())
    found: dict[str, tuple[NamedQuery, Token]] = {}
    for declaration in tree.find_data("query"):
        _, name, _, body = _tokens(declaration)
        if name in found:
            hint = f"the first one is in line {found[name][1].line}"
            _fail(text, name, f"there are two queries named {name}", hint)
        query = NamedQuery(str(name), f"{prologue}\n{body}", body.line or 1)
        _check(text, query.text, body)
        found[name] = query, name
    if not found:
        hint = "write one, such as QUERY All AS SELECT * WHERE { ?s ?p ?o }"
        raise QueryError("the program has no query", hint=hint)
    return Program(tuple(query for query, _ in sorted(found.values(), key=_place)))


def read_program(path: Path) -> Program:
    """Read the program of a file; errors name the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise QueryError("there is no such file", source=str(path)) from None
    except IsADirectoryError:
        raise QueryError("is a directory, not a program", source=str(path)) from None
    except UnicodeDecodeError:
        hint = "a program is a text file in UTF-8"
        raise QueryError("is not a text file", source=str(path), hint=hint) from None
    except OSError as error:
        raise QueryError(f"cannot be read: {error.strerror}", source=str(path)) from None
    try:
        if path.suffix in QUERY_SUFFIXES:
            parse_query(text)
            return Program((NamedQuery(path.stem, text, 1),))
        return parse_program(text)
    except QueryError as error:
        error.source = str(path)
        raise


@cache
def _parser() -> Lark:
    grammar = files("graphtide.lang").joinpath("tide.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=TideLexer)


def _tokens(declaration: Tree[Token]) -> list[Token]:
    return [child for child in declaration.children if isinstance(child, Token)]


def _place(found: tuple[NamedQuery, Token]) -> int:
    return found[1].start_pos or 0


def _prefixes(text: str, tree: Tree[Token]) -> Mapping[str, str]:
    declared: dict[str, str] = {}
    for declaration in tree.find_data("prefix"):
        _, name, iri = _tokens(declaration)
        if declared.setdefault(str(name), str(iri)) != iri:
            message = f"the prefix '{name}' already stands for {declared[name]}"
            _fail(text, name, message, "choose another prefix")
    return declared


def _check(text: str, query: str, body: Token) -> None:
    """Parse the SPARQL text; an error's place becomes that in the program."""
    try:
        parse_query(query)
    except QueryError as error:
        if error.line is None or error.column is None or error.line < 2:
            error.line, error.column = body.line, body.column
        else:
            first = error.line == 2
            error.line += (body.line or 1) - 2
            error.column += (body.column or 1) - 1 if first else 0
        misspelt = re.match(r"expected the end of the query, found '(\w+)'", error.message)
        if misspelt and error.hint is None:
            error.hint = word_hint(misspelt[1], TOP_LEVEL)
        shown = excerpt(text, error.line or 1, error.column or 1)
        error.message = f"{_EXCERPT.sub('', error.message)}\n{shown}"
        raise


def _unexpected(text: str, error: UnexpectedToken) -> NoReturn:
    """Say what was expected where Lark found something else, or the end."""
    names = [_EXPECTED[name] for name in sorted(error.expected) if name in _EXPECTED]
    expected = " or ".join(names) or "PREFIX or QUERY"
    scanner = Scanner(text)
    token: Token = error.token
    if token.type == "$END":
        message = f"expected {expected}, found the end of the program"
        scanner.fail(message, at=len(text.rstrip()))
    hint = word_hint(token, TOP_LEVEL) if token.type == MISFIT else None
    shown = token.split(maxsplit=1)[0]
    scanner.fail(f"expected {expected}, found '{shown}'", at=token.start_pos, hint=hint)


def _fail(text: str, token: Token, message: str, hint: str) -> NoReturn:
    line, column = token.line or 1, token.column or 1
    message = f"{message}\n{excerpt(text, line, column)}"
    raise QueryError(message, line=line, column=column, hint=hint)
