"""A program in canonical form: one layout for the language; SPARQL and comments stay as they are.

A comment inside a declaration, outside of its SPARQL pieces, would have no place: such a program
is refused rather than robbed of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.errors import ProgramError
from graphtide.lang.format_pattern import laid_out_pattern
from graphtide.lang.tide_lexer import ALL_WORDS, RELATIONS, TOP_LEVEL, Chunk, cut
from graphtide.lang.tide_pattern_atoms import DEEPEST, TOO_DEEP, TOO_DEEP_HINT
from graphtide.lang.tide_source import Source
from graphtide.lang.tide_tree import tree_of, trees_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Token

WIDTH: Final = 100
_BREAKS: Final = {"WHEN": 2, "ON": 2, "WHERE": 2, "THEN": 2, "FACT": 7, "EVENT": 7, "NO": 7}
"""Words that begin a line of a rule, and how far it is indented."""


def format_program(text: str) -> str:
    r"""The program, laid out anew.

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
            source.report_at(offset, "a comment inside a declaration cannot be kept", hint)


def _refuse_depth(source: Source, chunk: Chunk) -> None:
    depth = 0
    for token in chunk.tokens if chunk.word == "PATTERN" else ():
        depth += (token.type == "OPEN") - (token.type == "CLOSE")
        if depth > DEEPEST:
            source.report(token, TOO_DEEP, TOO_DEEP_HINT)
            return


def _lines(text: str, chunks: list[Chunk]) -> Iterator[str]:
    """The declarations, and what stands between them."""
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
    """One declaration; a long one has a line for each of its conditions, actions or steps."""
    tokens = chunk.tokens
    if chunk.word == "PATTERN":
        return laid_out_pattern(tree_of(chunk), _written, WIDTH)
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
