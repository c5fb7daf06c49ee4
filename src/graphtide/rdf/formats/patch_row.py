"""A parser for single rows of RDF Patch: code, terms, and the column of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphtide.errors import TermError
from graphtide.rdf.terms import POSITIONS, canonical_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_CODE = re.compile(r"\s*([A-Za-z]+)(?=[\s.]|$)")
_TOKEN = re.compile(
    r"(?P<iri><[^<>]*>)"
    r'|(?P<literal>"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]*|\^\^<[^<>]*>)?)(?P<datatype>\^\^[^\s<]\S*?(?=\.?(?:\s|$)))?'
    r"|(?P<blank>_:(?:[^\s.]|\.(?=[^\s]))*)"
    r'|(?P<name>(?P<prefix>[\w.-]*):(?P<local>(?:\\.|[^\s<>"#;,.\\]|\.(?=[^\s.]))*))'
    r'|(?P<word>[^\s<>"]+?(?=\.?(?:\s|$)))'
)
_LOCAL_ESCAPE = re.compile(r"\\(.)")
_BLANK_IRI = re.compile(r"<_:(.*)>")

SHAPES: Final = {
    "A": ("A s p o [g] .", 3, 4),
    "D": ("D s p o [g] .", 3, 4),
    "H": ("H key value .", 2, 2),
    "PA": ("PA prefix iri .", 2, 2),
    "PD": ("PD prefix .", 1, 1),
    "TX": ("TX .", 0, 0),
    "TC": ("TC .", 0, 0),
    "TA": ("TA .", 0, 0),
}
"""Code of a row -> its syntax, and its least and greatest number of values."""


class RowError(Exception):
    """An invalid row: the reason, and the column (from 1)."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PatchValue:
    """A value of a row as it is written, and where it starts (column from 1)."""

    column: int
    match: re.Match[str]

    @property
    def text(self) -> str:
        """The value as it is written."""
        return self.match.group()


@dataclass(frozen=True, slots=True)
class PatchRow:
    """A row: its code (`A`, `TX`…), the column of that code, and its values."""

    code: str
    column: int
    values: tuple[PatchValue, ...]


def split_row(line: str) -> PatchRow:
    """Split a row into its parts, or raise `RowError`.

    >>> [value.text for value in split_row("A ex:a <ex:p> 'x'@en . # new").values][:2]
    ['ex:a', '<ex:p>']
    >>> split_row("TX").column
    Traceback (most recent call last):
        ...
    graphtide.rdf.formats.patch_row.RowError: the row does not end with ' .'
    """
    code = _CODE.match(line)
    if code is None or code.group(1) not in SHAPES:
        start = len(line) - len(line.lstrip())
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        raise RowError(start + 1, f"unknown row {word!r}; rows start with {', '.join(SHAPES)}")
    values, at = _values(line, code.end())
    shape, least, most = SHAPES[code.group(1)]
    if not least <= len(values) <= most:
        column = values[most].column if len(values) > most else at + 1
        raise RowError(column, f"{len(values)} values where the row is {shape!r}")
    return PatchRow(code.group(1), code.start(1) + 1, tuple(values))


def _values(line: str, at: int) -> tuple[list[PatchValue], int]:
    """Return the values up to the final dot, and the index of that dot."""
    values: list[PatchValue] = []
    while True:
        while at < len(line) and line[at].isspace():
            at += 1
        if at >= len(line) or line[at] == "#":
            raise RowError(at + 1, "the row does not end with ' .'")
        if line[at] == ".":
            rest = line[at + 1 :].lstrip()
            if rest and not rest.startswith("#"):
                raise RowError(len(line) - len(rest) + 1, "text after the end of the row")
            return values, at
        found = _TOKEN.match(line, at)
        if found is None:
            raise RowError(at + 1, _token_reason(line[at]))
        values.append(PatchValue(at + 1, found))
        at = found.end()


def _token_reason(first: str) -> str:
    match first:
        case '"':
            return "the closing quote is missing"
        case "<":
            return "the closing '>' is missing"
        case _:
            return f"unexpected {first!r}"


def change_terms(row: PatchRow, prefixes: Mapping[str, str]) -> list[str]:
    """Return the canonical texts of an `A` or `D` row's terms, or raise `RowError`.

    >>> change_terms(split_row("A ex:a ex:p 'x' ."), {"ex": "http://example.org/"})
    Traceback (most recent call last):
        ...
    graphtide.rdf.formats.patch_row.RowError: "'x'" is not a term
    """
    texts = [term_text(value, prefixes) for value in row.values]
    for value, text, (starts, rule) in zip(row.values, texts, POSITIONS.values(), strict=False):
        if text[0] not in starts:
            raise RowError(value.column, rule)
    return texts


def term_text(value: PatchValue, prefixes: Mapping[str, str]) -> str:
    """Return the canonical text of a value, with prefixed names written out.

    >>> term_text(split_row("PD ex:a .").values[0], {"ex": "http://example.org/"})
    '<http://example.org/a>'
    """
    found = value.match
    text = found.group()
    if found["name"] is not None and found["blank"] is None:
        text = _expand(found["prefix"], found["local"], prefixes, value.column)
    elif found["datatype"] is not None:
        prefix, _, local = found["datatype"][2:].partition(":")
        column = value.column + len(found["literal"]) + 2
        text = f"{found['literal']}^^{_expand(prefix, local, prefixes, column)}"
    elif found["iri"] is not None:
        blank = _BLANK_IRI.fullmatch(text)
        text = f"_:{blank[1]}" if blank else text
    elif found["word"] is not None:
        raise RowError(value.column, f"{text!r} is not a term")
    try:
        return canonical_text(text)
    except TermError as error:
        raise RowError(value.column, error.message) from None


def _expand(prefix: str, local: str, prefixes: Mapping[str, str], column: int) -> str:
    if prefix not in prefixes:
        raise RowError(column, f"unknown prefix '{prefix}:'; declare it with PA {prefix}: <…> .")
    plain = _LOCAL_ESCAPE.sub(r"\1", local)
    return f"<{prefixes[prefix]}{plain}>"
