"""A PATTERN in canonical form: brackets wherever two operators meet, and nowhere in vain."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from graphtide.lang.pattern_text import PatternText, absent, chain, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.lang.pattern_text import Operator

_COUNT: Final = re.compile(r"^\{\s*(\d+|\+|\*)\s*\}$")
_SIGNS: Final[dict[str, Operator]] = {"ARROW": "->", "OR": "OR", "AND": "AND"}


def laid_out_pattern(tree: Tree[Token], written: Callable[[Token], str], width: int) -> str:
    """The declaration in one line, or with a line for each step if it would be too long."""
    head = [t for t in tree.children if isinstance(t, Token) and t.type != "AS"]
    expression, *scopes = (part for part in tree.children if isinstance(part, Tree))
    body = _Writer(written).text(expression)
    name = f"PATTERN {''.join(map(written, head[1:]))} AS"
    scope = "".join(_scope(part) for part in scopes)
    line = f"{name} {body}" + (f" {scope}" if scope else "")
    if len(line) <= width and "\n" not in line:
        return line
    first, *others = body.parts
    steps = [first, *(f"{body.kind} {part}" for part in others)]
    return "\n  ".join([name, *steps, *([scope] if scope else [])])


def _scope(tree: Tree[Token]) -> str:
    """CONTEXT and PER."""
    tokens = [t for t in tree.children if isinstance(t, Token) and t.type != "COMMA"]
    words = " ".join(t.upper() for t in tokens if t.type != "VAR")
    variables = ", ".join(t for t in tokens if t.type == "VAR")
    return f"{words} {variables}".rstrip()


class _Writer:
    """Writes the parts of an expression."""

    def __init__(self, written: Callable[[Token], str]) -> None:
        self._written = written

    def text(self, tree: Tree[Token]) -> PatternText:
        """A part as text."""
        parts = [part for part in tree.children if isinstance(part, Tree)]
        match str(tree.data):
            case "atom":
                tokens = (part for part in tree.children if isinstance(part, Token))
                return PatternText(("".join(map(self._written, tokens)),))
            case "group":
                return self.text(parts[0])
            case "all":
                return interleaved(*map(self.text, parts))
            case "chain":
                return self._chain(tree, [self.text(part) for part in parts])
            case "suffixed":
                return self._suffixed(self.text(parts[0]), parts[1:])
            case _:
                return self._absent(tree, parts)

    def _chain(self, tree: Tree[Token], parts: list[PatternText]) -> PatternText:
        whole, *others = parts
        signs = [_SIGNS[t.type] for t in tree.children if isinstance(t, Token)]
        for sign, run in groupby(zip(signs, others, strict=True), key=itemgetter(0)):
            whole = chain(sign, whole, *(part for _, part in run))
        return whole

    def _absent(self, tree: Tree[Token], parts: list[Tree[Token]]) -> PatternText:
        suffixes = parts[1:]
        ends = [place for place, suffix in enumerate(suffixes) if suffix.data == "within"]
        end = ends[0] if ends else len(suffixes)
        text = self._suffixed(self.text(parts[0]), suffixes[:end])
        for _ in (t for t in tree.children if isinstance(t, Token)):
            text = absent(text)
        return self._suffixed(text, suffixes[end:])

    def _suffixed(self, text: PatternText, suffixes: list[Tree[Token]]) -> PatternText:
        for suffix in suffixes:
            token = str(suffix.children[-1])
            match str(suffix.data):
                case "times":
                    text = text.suffixed(_COUNT.sub(r"{\1}", token))
                case word:
                    name = "WITHIN" if word == "within" else "HOLDS FOR"
                    text = text.suffixed(f" {name} {' '.join(token.split())}")
        return text
