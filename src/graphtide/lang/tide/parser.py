"""Parse the tokens of declarations into Lark trees, and report syntax errors."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from lark import Lark, Token, Tree, UnexpectedToken
from lark.lexer import Lexer

from graphtide.errors import UnsupportedError
from graphtide.lang.sparql.scanner import excerpt, word_hint
from graphtide.lang.tide import lexer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark.common import LexerConf

    from graphtide.lang.tide.source import Source

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
    "CONDITION": "a condition",
    "OPEN": "'('",
    "CLOSE": "')'",
    "BOUNDS": "'['",
    "EQUALS": "'='",
    "SEMICOLON": "';'",
    "COMMA": "','",
    "ARROW": "'->'",
    "COUNT": "a repetition such as '{3}'",
    "DURATION": "a duration such as 10s",
    "RELATION": "a relation such as AFTER",
    "$END": "the next declaration",
}


class _NoLexer(Lexer):
    """No lexer: tokens are fed to Lark one by one."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        """lexer.py makes the tokens."""

    def lex(self, data: str) -> Iterator[Token]:  # type: ignore[override]  # noqa: ARG002
        """Yield nothing."""
        yield from ()


@cache
def _parser() -> Lark:
    grammar = files("graphtide.lang.tide").joinpath("tide.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=_NoLexer)


def trees_of(source: Source, broken: set[str]) -> Iterator[Tree[Token]]:
    """The declarations of a file; syntax errors are recorded in the source.

    Names of declarations that cannot be read are added to `broken`.
    """
    chunks = lexer.cut(source.text)
    for number, chunk in enumerate(chunks):
        following = chunks[number + 1] if number + 1 < len(chunks) else None
        tree = None
        if chunk.misspelt:
            _misspelt_declaration(source, chunk)
        if chunk.error is not None:
            source.add(chunk.error)
        elif chunk.word in lexer.RESERVED:
            _refuse_reserved(source, chunk.tokens[0])
        elif chunk.word == lexer.MISFIT:
            _unexpected(source, chunk.tokens[0], set(lexer.DECLARATIONS), chunk)
        else:
            end = following.tokens[0] if following and following.tokens else None
            tree = _tree(source, chunk, end)
            if tree is not None:
                yield tree
        if tree is None:
            broken.update([str(t) for t in chunk.tokens if t.type == "NAME"][:1])


def _tree(source: Source, chunk: lexer.Chunk, end: Token | None) -> Tree[Token] | None:
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


def tree_of(chunk: lexer.Chunk) -> Tree[Token]:
    """The tree of a declaration without syntax errors."""
    parsing = _parser().parse_interactive()
    for token in chunk.tokens:
        parsing.feed_token(token)
    whole: Tree[Token] = parsing.feed_eof(chunk.tokens[-1])  # type: ignore[no-untyped-call]
    declaration = whole.children[0]
    assert isinstance(declaration, Tree)  # noqa: S101 - the grammar says so
    return declaration


def _misspelt_declaration(source: Source, chunk: lexer.Chunk) -> None:
    """Report a word that was taken for the declaration to which it is similar."""
    expected = _wording(set(lexer.DECLARATIONS), chunk)
    message = f"expected {expected}, found '{chunk.tokens[0]}'"
    source.report(chunk.tokens[0], message, f"did you mean {chunk.word}?")


def _misspelt(source: Source, chunk: lexer.Chunk, found: Token | None, accepts: set[str]) -> bool:
    """Whether the word before, read as the name of an event, looks like a misspelt keyword."""
    at = next((i for i, token in enumerate(chunk.tokens) if token is found), 0)
    if accepts != {"RELATION"} or not at:
        return False
    word = chunk.tokens[at - 1]
    hint = word_hint(word, (*lexer.WORDS, *lexer.RELATIONS))
    if hint is not None:
        source.report(word, f"unexpected '{word}'", hint)
    return hint is not None


def _unexpected(source: Source, found: Token | None, accepts: set[str], chunk: lexer.Chunk) -> None:
    """Report what was expected and what was found."""
    expected = _wording(accepts, chunk)
    if found is None:
        message = f"expected {expected}, found the end of the program"
        source.report_at(len(source.text.rstrip()), message)
        return
    known = [*accepts, *(lexer.RELATIONS if "RELATION" in accepts else ())]
    known += lexer.DECLARATIONS if "$END" in accepts else ()
    words = (
        lexer.TOP_LEVEL
        if found.type == lexer.MISFIT
        else [w for w in known if w in (*lexer.DECLARATIONS, *lexer.ALL_WORDS, *lexer.RELATIONS)]
    )
    hint = word_hint(found, words) if found.type in (lexer.MISFIT, "NAME") else None
    if "NAME" in accepts and found.type in (*lexer.ALL_WORDS, "RELATION"):
        hint = f"'{found}' is a keyword: choose another name"
    source.report(found, f"expected {expected}, found '{found.split(maxsplit=1)[0]}'", hint)


def _wording(accepts: set[str], chunk: lexer.Chunk) -> str:
    """The accepted tokens as text: keywords as they are, other tokens described."""
    known = (*_EXPECTED, *lexer.DECLARATIONS, *lexer.ALL_WORDS)
    ordered = sorted(accepts, key=lambda name: known.index(name) if name in known else -1)
    names = list(dict.fromkeys(_EXPECTED.get(name, name) for name in ordered))
    if len(chunk.tokens) == 1 or (len(chunk.tokens) > 1 and accepts == {"NAME"}):
        first = chunk.word.lower()
        if chunk.word in lexer.NAMED and _misses_name(chunk):
            names = [f"a name for the {first}"]
    return ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1]


def _misses_name(chunk: lexer.Chunk) -> bool:
    return len(chunk.tokens) < 2 or chunk.tokens[1].type != "NAME"


def _refuse_reserved(source: Source, token: Token) -> None:
    """Report a reserved declaration."""
    line, column = token.line or 1, token.column or 1
    message = f"{token.type} is not available yet\n{excerpt(source.text, line, column)}"
    hint = (
        f"a program consists of {', '.join(lexer.DECLARATIONS[:-1])} and {lexer.DECLARATIONS[-1]}"
    )
    source.add(UnsupportedError(message, line=line, column=column, hint=hint))
