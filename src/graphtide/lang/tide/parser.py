"""From the tokens of a declaration to its tree, by Lark; and what was expected where it fails."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypeVar

from lark import Lark, Token, Tree, UnexpectedToken
from lark.lexer import Lexer

from graphtide.errors import QueryError, UnsupportedError
from graphtide.lang.sparql.scanner import excerpt, place, word_hint
from graphtide.lang.tide.lexer import (
    ALL_WORDS,
    DECLARATIONS,
    MISFIT,
    NAMED,
    RELATIONS,
    RESERVED,
    TOP_LEVEL,
    WORDS,
    Chunk,
    cut,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lark.common import LexerConf

Piece = Token | Tree[Token] | None

_EXPECTED: Final = {
    "NAMESPACE": "a prefix such as 'ex:'",
    "IRI": "an IRI such as <http://example.org/>",
    "STRING": 'a file such as "other.tide"',
    "BODY": "a SELECT query",
    "NAME": "a name",
    "VAR": "a variable",
    "NUMBER": "a number",
    "GROUP": "'{'",
    "ARGUMENTS": "'('",
    "EXPRESSION": "'('",
    "OPEN": "'('",
    "CLOSE": "')'",
    "BOUNDS": "'['",
    "EQUALS": "'='",
    "SEMICOLON": "';'",
    "COMMA": "','",
    "ARROW": "'->'",
    "COUNT": "a number such as '{3}'",
    "DURATION": "a duration such as 10s",
    "RELATION": "a relation such as AFTER",
    "$END": "the next declaration",
}


class _NoLexer(Lexer):
    """Lark is fed with tokens, one by one."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        """All tokens are made elsewhere."""

    def lex(self, data: str) -> Iterator[Token]:  # type: ignore[override]  # noqa: ARG002
        """Nothing."""
        yield from ()


@cache
def _parser() -> Lark:
    grammar = files("graphtide.lang").joinpath("tide.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=_NoLexer)


def trees_of(source: Source, reserved: set[str]) -> Iterator[Tree[Token]]:
    """The declarations of a file that can be read; mistakes in others are noted.

    Names of declarations that the language does not have yet go to `reserved`.
    """
    chunks = cut(source.text)
    for number, chunk in enumerate(chunks):
        following = chunks[number + 1] if number + 1 < len(chunks) else None
        if chunk.error is not None:
            source.add(chunk.error)
        elif chunk.word in RESERVED:
            reserved.update(str(t) for t in chunk.tokens if t.type == "NAME")
            _refuse_reserved(source, chunk.tokens[0])
        elif chunk.word == MISFIT:
            _unexpected(source, chunk.tokens[0], set(DECLARATIONS), chunk)
        else:
            end = following.tokens[0] if following and following.tokens else None
            tree = _tree(source, chunk, end)
            if tree is not None:
                yield tree


def _tree(source: Source, chunk: Chunk, end: Token | None) -> Tree[Token] | None:
    parsing = _parser().parse_interactive()
    try:
        for token in chunk.tokens:
            parsing.feed_token(token)
        whole: Tree[Token] = parsing.feed_eof(chunk.tokens[-1])  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        found = error.token if error.token.type != "$END" else end
        accepts: set[str] = parsing.accepts()  # type: ignore[no-untyped-call]
        if not _misspelt(source, chunk, found, accepts):
            _unexpected(source, found, accepts, chunk)
        return None
    declaration = whole.children[0]
    return declaration if isinstance(declaration, Tree) else None


def tree_of(chunk: Chunk) -> Tree[Token]:
    """The tree of a declaration in which nothing is wrong."""
    parsing = _parser().parse_interactive()
    for token in chunk.tokens:
        parsing.feed_token(token)
    whole: Tree[Token] = parsing.feed_eof(chunk.tokens[-1])  # type: ignore[no-untyped-call]
    declaration = whole.children[0]
    assert isinstance(declaration, Tree)  # noqa: S101 - the grammar says so
    return declaration


def _misspelt(source: Source, chunk: Chunk, found: Token | None, accepts: set[str]) -> bool:
    """Whether the word before was taken for the name of an event, but is near another word."""
    if accepts != {"RELATION"} or found not in chunk.tokens:
        return False
    word = chunk.tokens[chunk.tokens.index(found) - 1]
    hint = word_hint(word, WORDS)
    if hint is not None:
        source.report(word, f"'{word}' has no meaning here", hint)
    return hint is not None


def _unexpected(source: Source, found: Token | None, accepts: set[str], chunk: Chunk) -> None:
    """Say what was expected where something else was found, or the end."""
    expected = _wording(accepts, chunk)
    if found is None:
        message = f"expected {expected}, found the end of the program"
        source.report_at(len(source.text.rstrip()), message)
        return
    known = [*accepts, *(RELATIONS if "RELATION" in accepts else ())]
    words = (
        TOP_LEVEL if found.type == MISFIT else [w for w in known if w in (*ALL_WORDS, *RELATIONS)]
    )
    hint = word_hint(found, words) if found.type in (MISFIT, "NAME") else None
    if "NAME" in accepts and found.type in (*ALL_WORDS, "RELATION"):
        hint = f"'{found}' is a word of the language: a name has to be another one"
    source.report(found, f"expected {expected}, found '{found.split(maxsplit=1)[0]}'", hint)


def _wording(accepts: set[str], chunk: Chunk) -> str:
    """What may come, in the order of the language: words as they are, other tokens described."""
    known = (*_EXPECTED, *DECLARATIONS, *ALL_WORDS)
    ordered = sorted(accepts, key=lambda name: known.index(name) if name in known else -1)
    names = list(dict.fromkeys(_EXPECTED.get(name, name) for name in ordered))
    if len(chunk.tokens) == 1 or (len(chunk.tokens) > 1 and accepts == {"NAME"}):
        first = chunk.word.lower()
        if chunk.word in NAMED and _misses_name(chunk):
            names = [f"a name for the {first}"]
    return ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1]


def _misses_name(chunk: Chunk) -> bool:
    return len(chunk.tokens) < 2 or chunk.tokens[1].type != "NAME"


def _refuse_reserved(source: Source, token: Token) -> None:
    """Report a declaration that the language is going to have."""
    line, column = token.line or 1, token.column or 1
    message = f"{token.type} is not available yet\n{excerpt(source.text, line, column)}"
    hint = f"for now a program holds {', '.join(DECLARATIONS[:-1])} and {DECLARATIONS[-1]}"
    source.add(UnsupportedError(message, line=line, column=column, hint=hint))


# --- Source: the text of one program file, its SPARQL pieces, and the mistakes found in it.

_EXCERPT: Final = re.compile(r"\n  \d+ \| [^\n]*\n +\| *\^\Z")
T = TypeVar("T")


class Source:
    """A file of a program while it is read."""

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text = text
        self.name = name
        self.prefixes: dict[str, str] = {}
        self.errors: list[QueryError] = []

    @property
    def prologue(self) -> str:
        """The prefixes, as a SPARQL text has them."""
        return " ".join(f"PREFIX {name} {iri}" for name, iri in self.prefixes.items())

    def add(self, error: QueryError) -> None:
        """Note a mistake whose place is known."""
        error.source = error.source or self.name
        self.errors.append(error)

    def report(self, token: Token, message: str, hint: str | None = None) -> None:
        """Note a mistake at a token."""
        self.report_at(token.start_pos or 0, message, hint)

    def report_at(self, offset: int, message: str, hint: str | None = None) -> None:
        """Note a mistake at an offset of the text."""
        line, column = place(self.text, offset)
        shown = f"{message}\n{excerpt(self.text, line, column)}"
        self.add(QueryError(shown, line=line, column=column, hint=hint))

    def report_variable(self, token: Token, name: str, message: str, hint: str | None) -> None:
        """Note a mistake about a variable inside a piece, where it is first written."""
        written = re.search(rf"[?$]{re.escape(name)}\b", token)
        inside = written.start() if written else 0
        self.report_at((token.start_pos or 0) + inside, message, hint)

    def piece(
        self, token: Token, read: Callable[[str], T], head: str = "", tail: str = ""
    ) -> T | None:
        """Let a SPARQL parser read a piece; None, and a mistake noted, if it cannot.

        The parser sees a line of prefixes and `head`, then the piece, then a line `tail`.
        """
        try:
            return read(f"{self.prologue} {head}\n{token}" + (f"\n{tail}" if tail else ""))
        except QueryError as error:
            self.add(self._placed(error, token))
            return None

    def _placed(self, error: QueryError, token: Token) -> QueryError:
        """Turn the place of an error inside a piece into that in the file."""
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
