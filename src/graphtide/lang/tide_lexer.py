"""Tokens of the .tide language; the SPARQL text of a query is one token, with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lark import Token as LarkToken
from lark.lexer import Lexer

from graphtide.errors import UnsupportedError
from graphtide.lang.scanner import Scanner, Token, excerpt, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark.common import LexerConf

DECLARATIONS: Final = ("PREFIX", "QUERY")
RESERVED: Final = ("EVENT", "PATTERN", "RULE", "GOAL", "FIX", "STREAM")
MISFIT: Final = "MISFIT"
"""A token that the grammar has no place for: Lark reports it with what was expected."""

TOP_LEVEL: Final = (*DECLARATIONS, *RESERVED)
"""Words that start a declaration, wherever no bracket is open."""

_OPENING, _CLOSING = ("{", "(", "["), ("}", ")", "]")


class TideLexer(Lexer):
    """Cuts a program into tokens, for Lark."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        """Lark gives the terminals of the grammar; all of them are made here."""

    def lex(self, data: str) -> Iterator[LarkToken]:  # type: ignore[override]
        """Every token of a program."""
        scanner = Scanner(data)
        while scanner.token.kind != "end":
            token = scanner.token
            if scanner.at(*RESERVED):
                refuse_reserved(data, token)
            if scanner.at("PREFIX"):
                yield from _prefix(scanner)
            elif scanner.at("QUERY"):
                yield from _query(scanner)
            else:
                yield _token(MISFIT, scanner)


def refuse_reserved(text: str, token: Token) -> None:
    """Report a declaration that the language is going to have."""
    line, column = place(text, token.start)
    raise UnsupportedError(
        f"{token.text.upper()} is not available yet\n{excerpt(text, line, column)}",
        line=line,
        column=column,
        hint="for now a program holds PREFIX and QUERY declarations",
    )


def _prefix(scanner: Scanner) -> Iterator[LarkToken]:
    yield _token("PREFIX", scanner)
    names = scanner.token.kind == "name" and scanner.token.text.endswith(":")
    yield from _one(scanner, "NAMESPACE", fits=names)
    yield from _one(scanner, "IRI", fits=scanner.token.kind == "iri")


def _query(scanner: Scanner) -> Iterator[LarkToken]:
    yield _token("QUERY", scanner)
    named = scanner.token.kind == "word" and not scanner.at("AS", "SELECT")
    yield from _one(scanner, "NAME", fits=named)
    yield from _one(scanner, "AS", fits=scanner.at("AS"))
    first = last = scanner.token
    depth = 0
    while scanner.token.kind != "end" and not (depth <= 0 and scanner.at(*TOP_LEVEL)):
        depth += scanner.at(*_OPENING) - scanner.at(*_CLOSING)
        last = scanner.advance()
    if scanner.token is not first:
        yield _lark("BODY", scanner.text[first.start : last.end], scanner.text, first.start)


def _one(scanner: Scanner, kind: str, *, fits: bool) -> Iterator[LarkToken]:
    """The token that should come; or a misfit, unless the next declaration or the end comes."""
    if fits and not scanner.at(*TOP_LEVEL):
        yield _token(kind, scanner)
    elif scanner.token.kind != "end" and not scanner.at(*TOP_LEVEL):
        yield _token(MISFIT, scanner)


def _token(kind: str, scanner: Scanner) -> LarkToken:
    token = scanner.advance()
    return _lark(kind, token.text, scanner.text, token.start)


def _lark(kind: str, value: str, text: str, start: int) -> LarkToken:
    line, column = place(text, start)
    return LarkToken(kind, value, start_pos=start, line=line, column=column)
