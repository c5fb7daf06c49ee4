"""Format programs (`graphtide fmt`), and write patterns as text from Python (`PatternText`).

SPARQL fragments and comments between declarations stay as they are. Comments inside a declaration
are an error, because the formatter would lose them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

from lark import Token, Tree

from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError, ProgramError
from graphtide.lang.durations import parse_duration
from graphtide.lang.tide.lexer import ALL_WORDS, RELATIONS, TOP_LEVEL, Chunk, cut
from graphtide.lang.tide.parser import tree_of, trees_of
from graphtide.lang.tide.patterns import MAX_DEPTH, TOO_DEEP, TOO_DEEP_HINT
from graphtide.lang.tide.source import Source, tokens_of
from graphtide.rdf.terms import TERM_TYPES, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# --- PatternText: patterns with only the necessary brackets ---

Operator = Literal["->", "OR", "AND"]
Kind = Literal["whole", "times", "time", "absent", "->", "OR", "AND"]
_OPERATORS: Final = ("->", "OR", "AND")


@dataclass(frozen=True, slots=True)
class PatternText:
    """A pattern as text; `kind` is its outermost operator, `parts` its operands if it is a chain.

    `a >> b` is `a -> b`, `a | b` is OR and `a & b` is AND. Python has its own precedence: `>>`
    binds before `&`, and `&` before `|`.

    >>> broken, mended = event("Broken", "?r", "?s"), event("Mended", "?r", "?s")
    >>> print((broken >> mended).times(3).within("10s"))
    (Broken(?r, ?s) -> Mended(?r, ?s)){3} WITHIN 10s
    >>> print(broken >> absent(mended).within("1h"))
    Broken(?r, ?s) -> NOT Mended(?r, ?s) WITHIN 1h
    """

    parts: tuple[str, ...]
    kind: Kind = "whole"

    def __str__(self) -> str:
        return f" {self.kind} ".join(self.parts)

    def __rshift__(self, other: PatternText) -> PatternText:
        return chain("->", self, other)

    def __or__(self, other: PatternText) -> PatternText:
        return chain("OR", self, other)

    def __and__(self, other: PatternText) -> PatternText:
        return chain("AND", self, other)

    def times(self, number: int) -> PatternText:
        """`{number}`: repeated so many times."""
        return self.suffixed(f"{{{number}}}")

    def between(self, least: int, most: int | None = None, *, greedy: bool = False) -> PatternText:
        """`{least,most}`: repeated so many times; without `most`, without end."""
        number = f"{least},{'' if most is None else most}"
        return self.suffixed(f"{{{number}}}{' GREEDY' if greedy else ''}")

    def optional(self) -> PatternText:
        """`?`: at most once."""
        return self.suffixed("?")

    def named(self, name: str, where: str | None = None) -> PatternText:
        """`AS name WHERE (condition)`: the name of an event, and a condition on it.

        >>> print(event("B").at_least_once().named("up", "?up.v > PREV(?up.v)"))
        B{+} AS up WHERE (?up.v > PREV(?up.v))
        """
        made = self.suffixed(f" AS {name}")
        return made if where is None else made.suffixed(f" WHERE ({where})")

    def at_least_once(self) -> PatternText:
        """`{+}`: once or more."""
        return self.suffixed("{+}")

    def any_times(self) -> PatternText:
        """`{*}`: zero or more times."""
        return self.suffixed("{*}")

    def within(self, length: str | int) -> PatternText:
        """`WITHIN length`: ticks, or a duration such as "10s"."""
        return self.suffixed(f" WITHIN {_duration(length)}")

    def holds_for(self, length: str | int) -> PatternText:
        """`HOLDS FOR length`: ticks, or a duration such as "10s"."""
        return self.suffixed(f" HOLDS FOR {_duration(length)}")

    def suffixed(self, suffix: str) -> PatternText:
        """Append a suffix, with brackets if necessary."""
        timed = not suffix.startswith(("{", "?"))
        if self.kind == "absent" and suffix.startswith(" WITHIN"):
            return PatternText((f"{self}{suffix}",), "absent")
        plain = self.kind == "whole" or (timed and self.kind in ("times", "time"))
        text = str(self) if plain else f"({self})"
        timed = suffix.startswith((" WITHIN", " HOLDS"))
        return PatternText((text + suffix,), "time" if timed else "times")


def event(name: str, *arguments: str | float | Var | Term | None) -> PatternText:
    """One event. Arguments are written as in a program; None and "_" are wildcards.

    The default arguments are the parameters of the event.

    >>> print(event("Hot", "?s", None, ":kitchen", 5), event("Hot"))
    Hot(?s, _, :kitchen, 5) Hot
    """
    if not arguments:
        return PatternText((name,))
    return PatternText((f"{name}({', '.join(map(_argument, arguments))})",))


def absent(pattern: PatternText) -> PatternText:
    """`NOT pattern`; `.within(…)` sets for how long.

    >>> print(absent(event("A") >> event("B")).within("5s"))
    NOT (A -> B) WITHIN 5s
    >>> print(absent((event("A") >> event("B")).within("5s")))
    NOT ((A -> B) WITHIN 5s)
    """
    plain = pattern.kind in ("whole", "times")
    return PatternText((f"NOT {pattern}" if plain else f"NOT ({pattern})",), "absent")


def interleaved(*patterns: PatternText) -> PatternText:
    """`ALL(p, q, …)`: all of them, arbitrarily interleaved.

    >>> print(interleaved(event("A") >> event("B"), event("C")))
    ALL(A -> B, C)
    """
    if len(patterns) == 1:
        return patterns[0]
    return PatternText((f"ALL({', '.join(map(str, patterns))})",))


def chain(operator: Operator, *patterns: PatternText) -> PatternText:
    """A chain of one operator; operands with another operator get brackets.

    >>> print(chain("OR", event("A") >> event("B"), event("C") | event("D")))
    (A -> B) OR C OR D
    """
    parts: list[str] = []
    for pattern in patterns:
        if pattern.kind == operator:
            parts.extend(pattern.parts)
        else:
            parts.append(f"({pattern})" if pattern.kind in _OPERATORS else str(pattern))
    return PatternText(tuple(parts), operator)


def _argument(value: str | float | Var | Term | None) -> str:
    if value is None:
        return "_"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float, Var, *TERM_TYPES)):
        return str(value)
    raise GraphtideError(
        f"{value!r} cannot be an argument of an event",
        hint='write variables as "?x", IRIs as ":name" or "<…>", strings as \'"…"\'',
    )


def _duration(length: str | int) -> str:
    if parse_duration(str(length)) is None:
        hint = "write ticks such as 5, or a duration such as 10s, 500ms or PT2H"
        raise GraphtideError(f"invalid duration {length!r}", hint=hint)
    return str(length)


# --- format a PATTERN ---

_SPACES: Final = re.compile(r"(?<=[{,])\s+|\s+(?=[},])")
_SIGNS: Final[dict[str, Operator]] = {"ARROW": "->", "OR": "OR", "AND": "AND"}


def laid_out_pattern(tree: Tree[Token], written: Callable[[Token], str], width: int) -> str:
    """The declaration in one line, or with one line per step if it is too long."""
    head = [t for t in tree.children if isinstance(t, Token) and t.type != "AS"]
    expression, *scopes = (part for part in tree.children if isinstance(part, Tree))
    body = _Writer(written).text(expression)
    name = f"PATTERN {''.join(written(t) for t in head[1:] if t.type != 'INTERVAL')} AS"
    scope = "".join(_scope(part) for part in scopes)
    scope = " ".join([scope, *(t.upper() for t in head if t.type == "INTERVAL")]).strip()
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
            last = suffix.children[-1]
            token = str(last)
            match str(suffix.data):
                case "times":
                    count, *greedy = (t for t in suffix.children if isinstance(t, Token))
                    more = "".join(f" {t.upper()}" for t in greedy)
                    text = text.suffixed(_SPACES.sub("", count) + more)
                case "named":
                    text = text.suffixed(f" AS {token}")
                case "where":
                    bare = isinstance(last, Token) and last.type == "CONDITION"
                    text = text.suffixed(f" WHERE ({token})" if bare else f" WHERE {token}")
                case word:
                    name = "WITHIN" if word == "within" else "HOLDS FOR"
                    text = text.suffixed(f" {name} {' '.join(token.split())}")
        return text


WIDTH: Final = 100
_BREAKS: Final = {"WHEN": 2, "ON": 2, "WHERE": 2, "THEN": 2, "FACT": 7, "EVENT": 7, "NO": 7,
                  "BIND": 7}  # fmt: skip
"""Keywords that begin a line of a rule, and its indentation."""


def format_program(text: str) -> str:
    r"""Format a program.

    >>> print(format_program("prefix :<ex:>\n\n\nevent A( ?x )as { ?x a :A } # tells\n"), end="")
    PREFIX : <ex:>
    <BLANKLINE>
    EVENT A(?x) AS { ?x a :A }  # tells
    """
    source = Source(text)
    list(trees_of(source, set()))
    chunks = [chunk for chunk in cut(text) if chunk.tokens]
    for chunk in chunks:
        _refuse_comments(source, chunk)
        _refuse_depth(source, chunk)
    if source.errors:
        raise source.errors[0] if len(source.errors) == 1 else ProgramError(source.errors)
    lines = list(_lines(text, chunks))
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join([*lines, ""]) if lines else ""


def _refuse_comments(source: Source, chunk: Chunk) -> None:
    for token, following in zip(chunk.tokens, chunk.tokens[1:], strict=False):
        gap = source.text[token.end_pos : following.start_pos]
        if "#" in gap:
            hint = "move it above the declaration"
            offset = (token.end_pos or 0) + gap.index("#")
            source.report_at(offset, "a comment inside a declaration cannot be formatted", hint)


def _refuse_depth(source: Source, chunk: Chunk) -> None:
    depth = 0
    for token in chunk.tokens if chunk.word == "PATTERN" else ():
        depth += (token.type == "OPEN") - (token.type == "CLOSE")
        if depth > MAX_DEPTH:
            source.report(token, TOO_DEEP, TOO_DEEP_HINT)
            return


def _lines(text: str, chunks: list[Chunk]) -> Iterator[str]:
    """The formatted declarations, and the comments between them."""
    starts = [chunk.tokens[0].start_pos or 0 for chunk in chunks]
    before = _between(text[: starts[0] if starts else len(text)])
    yield from _trimmed(before)
    for chunk, end in zip(chunks, [*starts[1:], len(text)], strict=False):
        trailing, _, rest = text[chunk.tokens[-1].end_pos : end].partition("\n")
        comment = trailing.strip()
        yield laid_out(chunk) + (f"  {comment}" if comment else "")
        yield from _between(rest)


def _between(gap: str) -> list[str]:
    """Comments and single empty lines."""
    *lines, last = [line.strip() for line in gap.split("\n")]
    if last:  # only at the end of the text
        lines.append(last)
    kept: list[str] = []
    for line in lines:
        if line or not kept or kept[-1]:
            kept.append(line)
    return kept


def _trimmed(lines: list[str]) -> list[str]:
    return lines[1:] if lines and not lines[0] else lines


def laid_out(chunk: Chunk) -> str:
    """One declaration; a long one has one line per condition, action or step."""
    tokens = chunk.tokens
    if chunk.word == "PATTERN":
        return laid_out_pattern(tree_of(chunk), _written, WIDTH)
    if chunk.word == "TEST":
        return _laid_out_test(tree_of(chunk))
    whole = _joined(tokens)
    if tokens[0].type not in ("RULE", "FIX"):
        return whole
    waits = any(token.type == "WHEN" for token in tokens)
    if not waits and "\n" not in whole and len(whole) <= WIDTH:
        return whole
    rows: list[list[Token]] = [[]]
    indents = [0]
    for token in tokens:
        last = rows[-1][-1].type if rows[-1] else ""
        indent = 7 if last == "SEMICOLON" else _BREAKS.get(token.type)
        if indent is not None and last not in ("WHEN", "NO", ""):
            rows.append([])
            indents.append(indent)
        rows[-1].append(token)
    pairs = zip(indents, rows, strict=True)
    return "\n".join(" " * indent + _joined(row) for indent, row in pairs)


def _laid_out_test(tree: Tree[Token]) -> str:
    """A test, with one line per step and per claim."""
    lines = [f"TEST {tokens_of(tree, 'NAME')[0]}"]
    for part in (part for part in tree.children if isinstance(part, Tree)):
        word = "GIVEN" if part.data == "steps" else "EXPECT"
        if word == "EXPECT":
            lines += (f"  UNTIL {time}" for time in tokens_of(tree, "NUMBER"))
        trees = [each for each in part.children if isinstance(each, Tree)]
        rows = [_joined([*each.scan_values(lambda t: isinstance(t, Token))]) for each in trees]
        lines += [f"  {word} {rows[0]}", *(" " * (len(word) + 3) + row for row in rows[1:])]
    return "\n".join(lines)


def _joined(tokens: list[Token]) -> str:
    """Tokens in one line."""
    text = ""
    for place, token in enumerate(tokens):
        before = tokens[place - 1].type if place else ""
        close = token.type in ("ARGUMENTS", "BOUNDS", "CLOSE") or before in ("", "OPEN")
        text += ("" if close else " ") + _written(token)
    return text


def _written(token: Token) -> str:
    if token.type in (*ALL_WORDS, *TOP_LEVEL) or token.upper() in RELATIONS:
        return token.upper()
    if token.type in ("ARGUMENTS", "BOUNDS") and not {"'", '"', "#"}.intersection(token):
        inner = (", " if token.type == "ARGUMENTS" else ",").join(
            " ".join(part.split()) for part in token[1:-1].split(",")
        )
        return f"{token[0]}{inner}{token[-1]}"
    return str(token)
