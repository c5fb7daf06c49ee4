"""RDF terms: pyoxigraph's classes, the canonical text of each, its kind and number.

Canonical is what `str()` of a term prints, so one term has one text and one id. Two lexical forms
of one value (`"1"` and `"01"`) are two terms, as in RDF. Triple terms have a class of their own,
because `str()` of pyoxigraph's `Triple` is a statement, not a term.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Triple

from graphtide.errors import TermError
from graphtide.rdf import kinds
from graphtide.rdf.kinds import EXACT_DIGITS, EXACT_NUMBER, INTEGER_RANGES, TAGGED_DATATYPES, XSD


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """A triple as a term of RDF 1.2; in templates of queries its parts may be variables.

    >>> a = NamedNode("ex:a")
    >>> print(TripleTerm(a, a, Literal("x")))
    <<( <ex:a> <ex:a> "x" )>>
    """

    subject: NamedNode | BlankNode
    predicate: NamedNode
    object: Term

    def __str__(self) -> str:
        return f"<<( {self.subject} {self.predicate} {self.object} )>>"


Term = NamedNode | BlankNode | Literal | TripleTerm

TERM_TYPES = (NamedNode, BlankNode, Literal, TripleTerm)


class Position(NamedTuple):
    """A position of a quad: the first characters of the terms allowed there, and the rule."""

    starts: str
    rule: str
    triples: bool = False

    def allows(self, text: str) -> bool:
        """Whether the term of a text may stand there.

        >>> POSITIONS["s"].allows("<ex:a>"), POSITIONS["s"].allows("<<( <ex:a> <ex:p> 1 )>>")
        (True, False)
        """
        return text[:1] in self.starts and (self.triples or not text.startswith(TRIPLE_START))


POSITIONS: Final = {
    "s": Position("<_", "a subject is an IRI or a blank node"),
    "p": Position("<", "a predicate is an IRI"),
    "o": Position('<_"', "an object is an IRI, a blank node, a literal or a triple term", True),
    "g": Position("<_", "a graph name is an IRI or a blank node"),
}
"""The positions of a quad, in order."""

TRIPLE_START: Final = "<<"

_IRI = re.compile(r"<([^\x00-\x20<>\"{}|^`]*)>")
_BLANK = re.compile(r"_:(\S+)")
_INNER_BLANK = re.compile(r'_:[^\s<>()"]+')
_SPACE = re.compile(r"[ \t]*")
# Possessive: what may be given back takes a hundred bytes for each character.
_LITERAL = re.compile(
    r'"((?:[^"\\\n\r]++|\\.)*+)"(?:\^\^<([^\x00-\x20<>"{}|^`]*)>|@([A-Za-z0-9-]*?)(?:--(ltr|rtl))?)?'
)
_INSIDE = (_IRI, _INNER_BLANK, re.compile(_LITERAL.pattern + "(?![A-Za-z0-9-])"))
# The most common spellings, which are canonical already and need not be parsed.
_PLAIN = re.compile(
    r"<[A-Za-z][A-Za-z0-9+.-]*:(?://[\w.~-]*(?::[0-9]*)?(?=[/?#>]))?(?!//)[\w.~!$&'()*+,;=:@/?-]*"
    r"(?:#[\w.~!$&'()*+,;=:@/?-]*)?>"
    r"|_:[A-Za-z0-9_](?:[\w-]|\.(?=[\w.-]*[\w-]))*"
    r'|"[ !#-\[\]-~]*"(?:\^\^<http://www\.w3\.org/2001/XMLSchema#(?!string>)[A-Za-z]+>)?',
    re.ASCII,
)
is_plain = _PLAIN.fullmatch
_TAGGED = tuple(f"^^<{datatype}>" for datatype in TAGGED_DATATYPES)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SIMPLE_ESCAPES: Final = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
}
DIRECTIONS: Final = {"ltr": BaseDirection.LTR, "rtl": BaseDirection.RTL}
_HINT: Final = 'write <iri>, _:label, "text", "text"@tag, "text"^^<datatype> or <<( s p o )>>'
MAX_NESTED: Final = 50


def parse_term(text: str) -> Term:
    r"""Parse the N-Triples text of a term, or raise `TermError` with the reason.

    >>> parse_term('"a\\u0041"^^<http://www.w3.org/2001/XMLSchema#string>')
    <Literal value=aA datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>
    """
    try:
        match text[:1]:
            case "<":
                return _triple_term(text) if text.startswith(TRIPLE_START) else _iri(text)
            case "_":
                return _blank(text)
            case '"':
                return _literal(text)
            case "":
                raise ValueError("the text is empty")
            case first:
                raise ValueError(f"a term does not start with {first!r}")
    except (ValueError, OverflowError) as error:
        raise TermError(f"not an RDF term: {shorten(text)!r}: {error}", hint=_HINT) from None


def canonical_text(text: str) -> str:
    r"""Return the canonical text of the same term, or raise `TermError`.

    >>> canonical_text('"caf\\u00e9"@FR')
    '"café"@fr'
    """
    return text if is_plain(text) else str(parse_term(text))


def shorten(text: str, limit: int = 80) -> str:
    """Cut a text for an error message.

    >>> shorten("abcdef", limit=3)
    'abc…'
    """
    return text if len(text) <= limit else text[:limit] + "…"


def unescape(text: str) -> str:
    r"""Replace N-Triples escapes by the characters they stand for.

    >>> unescape("a\\tb\\u0041")
    'a\tbA'
    """
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(escape: re.Match[str]) -> str:
    short, long, simple = escape.groups()
    if simple is None:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError(f"{escape.group()} is not a Unicode character")
        return chr(code)
    if simple not in _SIMPLE_ESCAPES:
        raise ValueError(f"unknown escape {escape.group()!r}")
    return _SIMPLE_ESCAPES[simple]


def _iri(text: str) -> NamedNode:
    found = _IRI.fullmatch(text)
    if found is None:
        raise ValueError("an IRI ends with '>' and has no spaces or any of < > \" { } | ^ `")
    return NamedNode(_unescape_iri(found.group(1)))


def _unescape_iri(iri: str) -> str:
    for escape in _ESCAPE.finditer(iri):
        if escape.group(3) is not None:
            raise ValueError("in an IRI a backslash only starts \\uXXXX or \\UXXXXXXXX")
    if iri.endswith("\\") and "\\" in _ESCAPE.sub("", iri):
        raise ValueError("an IRI does not end with a backslash")
    return unescape(iri)


def _blank(text: str) -> BlankNode:
    found = _BLANK.fullmatch(text)
    if found is None:
        raise ValueError("a blank node is _: and a label without spaces")
    return BlankNode(found.group(1))


def _literal(text: str) -> Literal:
    found = _LITERAL.fullmatch(text)
    if found is None:
        raise ValueError(_literal_reason(text))
    lexical, datatype, language, direction = found.groups()
    value = unescape(lexical)
    if datatype is not None:
        if datatype in TAGGED_DATATYPES:
            raise ValueError("this datatype needs a language tag instead of ^^")
        return Literal(value, datatype=NamedNode(_unescape_iri(datatype)))
    if direction is not None:
        return Literal(value, language=language, direction=DIRECTIONS[direction])
    return Literal(value) if language is None else Literal(value, language=language)


def _triple_term(text: str) -> TripleTerm:
    term, end = _triple_term_at(text, 0, 1)
    if end != len(text):
        raise ValueError("after )>> nothing may follow")
    return term


def _triple_term_at(text: str, at: int, depth: int) -> tuple[TripleTerm, int]:
    if not text.startswith("<<(", at):
        raise ValueError("a triple term is <<( subject predicate object )>>")
    if depth > MAX_NESTED:
        raise ValueError(too_deep())
    at += 3
    parts: list[Term] = []
    for _ in range(3):
        part, at = _part_at(text, _after_space(text, at), depth)
        parts.append(part)
    at = _after_space(text, at)
    if not text.startswith(")>>", at):
        raise ValueError("a triple term ends with )>> after its object")
    return triple_term(*parts), at + 3


def _part_at(text: str, at: int, depth: int) -> tuple[Term, int]:
    """The term that begins at an offset of a triple term, and where it ends."""
    if text.startswith(TRIPLE_START, at):
        return _triple_term_at(text, at, depth + 1)
    found = next((m for each in _INSIDE if (m := each.match(text, at)) is not None), None)
    if found is None:
        raise ValueError("a triple term has a subject, a predicate and an object")
    return parse_term(found.group()), found.end()


def triple_end(text: str, at: int) -> int:
    """Where the triple term ends that begins at an offset of a text.

    >>> triple_end("<<( <ex:a> <ex:p> <ex:b> )>> .", 0)
    28
    """
    try:
        return _triple_term_at(text, at, 1)[1]
    except (ValueError, OverflowError) as error:
        raise TermError(f"not a triple term: {error}") from None


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def triple_term(subject: Term, predicate: Term, object_: Term) -> TripleTerm:
    """A triple term, or a `ValueError` if a part cannot stand where it is."""
    if not isinstance(subject, NamedNode | BlankNode):
        raise ValueError(f"in a triple term, {POSITIONS['s'].rule}")  # noqa: TRY004 - as other terms
    if not isinstance(predicate, NamedNode):
        raise ValueError(f"in a triple term, {POSITIONS['p'].rule}")  # noqa: TRY004 - as other terms
    return TripleTerm(subject, predicate, object_)


def too_deep() -> str:
    """The reason why a triple term is refused."""
    return f"triple terms are nested more than {MAX_NESTED} levels deep"


def from_pyoxigraph(term: Term | Triple, depth: int = 1) -> Term:
    """A term of pyoxigraph as one of ours: only its triples differ.

    >>> a = NamedNode("ex:a")
    >>> str(from_pyoxigraph(Triple(a, a, a)))
    '<<( <ex:a> <ex:a> <ex:a> )>>'
    """
    if isinstance(term, Triple):
        if depth > MAX_NESTED:
            raise TermError(too_deep())
        object_ = from_pyoxigraph(term.object, depth + 1)
        return triple_term(term.subject, term.predicate, object_)  # type: ignore[arg-type] # its subject is no triple
    return term


def to_pyoxigraph(term: Term) -> NamedNode | BlankNode | Literal | Triple:
    """A term as pyoxigraph has it."""
    if isinstance(term, TripleTerm):
        return Triple(term.subject, term.predicate, to_pyoxigraph(term.object))
    return term


def _literal_reason(text: str) -> str:
    body = re.match(r'"(?:[^"\\\n\r]++|\\.)*+', text)
    end = body.end() if body else 0
    if end >= len(text):
        return "the closing quote is missing"
    if text[end] in "\n\r":
        return "a line break in a literal is written \\n or \\r"
    return "after the closing quote only ^^<datatype> or @language may follow"


# --- kind and number in plain Python: twin and fallback of `rdf.kernels.values` ---

Typed = tuple[int, float]
"""A kind and a number; the number is 0.0 where the kind has none."""

_OTHER: Final[Typed] = (kinds.OTHER, 0.0)
_MAX_LEXICAL = 4000
"""Longer forms are left to the functions on terms, which limit their digits: Python does not
convert longer integers, and few values would be exact as numbers anyway."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_DATETIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


def typed_value(text: str) -> Typed:
    """Return the kind and number of a term given as canonical N-Triples text.

    >>> typed_value('"007"^^<http://www.w3.org/2001/XMLSchema#integer>')
    (6, 7.0)
    >>> typed_value("<http://example.org/a>")
    (1, 0.0)
    """
    match text[0]:
        case "<":
            return (kinds.TRIPLE if text.startswith(TRIPLE_START) else kinds.IRI), 0.0
        case "_":
            return kinds.BLANK, 0.0
    close = text.rindex('"')
    suffix = text[close + 1 :]
    if not suffix:
        return kinds.STRING, 0.0
    if suffix[0] == "@":
        return _OTHER if "--" in suffix else (kinds.LANG, 0.0)
    return literal_value(text[1:close], suffix[3:-1])


def literal_value(lexical: str, datatype: str) -> Typed:
    """Return the kind and number of a literal from its lexical form and datatype IRI.

    >>> literal_value("2.50", "http://www.w3.org/2001/XMLSchema#decimal")
    (6, 2.5)
    """
    if not datatype.startswith(XSD):
        return _OTHER
    name = datatype[len(XSD) :]
    if len(lexical) > _MAX_LEXICAL:
        return _OTHER
    if name in INTEGER_RANGES:
        return _integer(lexical, name)
    match name:
        case "decimal":
            return _exact(Decimal(lexical)) if _DECIMAL.fullmatch(lexical) else _OTHER
        case "double":
            return (kinds.DOUBLE, float(lexical)) if _DOUBLE.fullmatch(lexical) else _OTHER
        case "boolean":
            value = _BOOLEANS.get(lexical)
            return _OTHER if value is None else (kinds.BOOLEAN, value)
        case "dateTime":
            return _datetime(lexical)
        case _:
            return _OTHER


def _integer(lexical: str, name: str) -> Typed:
    if not _INTEGER.fullmatch(lexical):
        return _OTHER
    value = int(lexical)
    low, high = INTEGER_RANGES[name]
    if (low is not None and value < low) or (high is not None and value > high):
        return _OTHER
    if len(lexical) <= EXACT_DIGITS:
        return kinds.EXACT, float(value)
    return _exact(Decimal(lexical))


def _exact(value: Decimal) -> Typed:
    digits = "".join(map(str, value.as_tuple().digits)).strip("0")
    number = float(value) if digits else 0.0
    # Outside this range float64 loses digits to overflow or to subnormal numbers.
    in_range = not digits or 1e-290 < abs(number) < 1e290
    return (kinds.EXACT, number) if len(digits) <= EXACT_DIGITS and in_range else _OTHER


def _datetime(lexical: str) -> Typed:
    found = _DATETIME.fullmatch(lexical)
    if found is None:
        return _OTHER
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, zone = found.group(7) or "", found.group(8)
    # XSD writes the end of a day also as 24:00:00, and nothing later than that.
    end_of_day = hour == 24 and minute == 0 and second == 0 and not fraction.strip("0")
    if fraction[6:].strip("0"):
        return _OTHER
    try:
        moment = datetime(year, month, day, 0 if end_of_day else hour, minute, second, tzinfo=UTC)
    except ValueError:
        return _OTHER
    span = moment - _EPOCH + timedelta(days=1 if end_of_day else 0) - _offset(zone)
    micros = span // timedelta(microseconds=1) + int(fraction[:6].ljust(6, "0"))
    if abs(micros) >= EXACT_NUMBER:
        return _OTHER
    return (kinds.LOCAL_DATETIME if zone is None else kinds.DATETIME), float(micros)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -offset if zone[0] == "-" else offset


def canonical_of(term: Term | Triple | str) -> str:
    """The canonical text of a term or of its N-Triples text; an error if it is neither.

    >>> canonical_of('"a"@EN')
    '"a"@en'
    """
    if isinstance(term, str):
        return canonical_text(term)
    if isinstance(term, TERM_TYPES):
        text = str(term)
        if text.endswith(_TAGGED) and isinstance(term, Literal) and not term.language:
            raise TermError(f"a literal of datatype {term.datatype} needs a language tag")
        return text
    if isinstance(term, Triple):
        return f"<<( {term} )>>"
    raise TermError(f"not an RDF term or its N-Triples text: {term!r}")
