"""Text search: the words of a literal, and queries over them as Lucene writes them.

A text is normalised (NFKC) and its case folded. A word is a longest run of letters, marks and
digits (the categories L, M and N of Unicode); a Han or Hiragana character is a word of its own,
since such texts have no spaces. Nothing is stemmed, and there are no stop words.

A query has words, prefixes (`tide*`), phrases in double quotes, AND, OR, NOT, `+`, `-` and round
brackets. Words beside each other must all be there, in any order. What is one word for the query
and several for the text (`e-mail`) is a phrase.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn, assert_never

from graphtide.errors import ExpressionError
from graphtide.functions import numbers as num
from graphtide.functions.values import boolean_term, plain_of, text_of, to_term

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term

TEXT: Final = "urn:graphtide:text#"
MATCHES: Final = f"<{TEXT}matches>"
SCORE: Final = f"<{TEXT}score>"
MOST_NESTED: Final = 100

_CACHE_SIZE: Final = 1 << 12
_ASCII_WORD: Final = re.compile(r"[0-9a-z]+")
_ALONE: Final = re.compile(
    "[\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_PART: Final = re.compile(r'"([^"]*)"|([()]|[-+!](?=\S))|([^\s()"]+)')
_UNSUPPORTED: Final = re.compile(r"[?~^:\[\]{}\\/]|\*.")

Words = tuple[str, ...]


# ---- the words of a text -------------------------------------------------------------------------


@lru_cache(_CACHE_SIZE)
def words_of(text: str) -> Words:
    """The words of a text, in order.

    >>> words_of("The Tide's 2nd e-mail, STRASSE = Straße")
    ('the', 'tide', 's', '2nd', 'e', 'mail', 'strasse', 'strasse')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if folded.isascii():
        return tuple(_ASCII_WORD.findall(folded))
    found: list[str] = []
    run = ""
    for character in folded:
        alone = _ALONE.match(character) is not None
        inside = not alone and unicodedata.category(character)[0] in "LMN"
        if inside:
            run += character
            continue
        if run:
            found.append(run)
            run = ""
        if alone:
            found.append(character)
    return (*found, run) if run else tuple(found)


# ---- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words one after the other; the last one may be a prefix."""

    words: Words
    prefix: bool = False

    def places(self, words: Words) -> list[int]:
        """Where it begins in a text.

        >>> Phrase(("new", "y"), prefix=True).places(("new", "york", "new", "year"))
        [0, 2]
        """
        *first, last = self.words
        size = len(first)
        fits = last.__eq__ if not self.prefix else lambda word: word.startswith(last)
        return [
            at
            for at in range(len(words) - size)
            if fits(words[at + size]) and list(words[at : at + size]) == first
        ]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part matches."""

    parts: tuple[TextQuery, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part matches."""

    parts: tuple[TextQuery, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The part does not match."""

    part: TextQuery


TextQuery = Phrase | AllOf | AnyOf | NoneOf


@lru_cache(_CACHE_SIZE)
def parse_text_query(text: str) -> TextQuery:
    """A query; `ExpressionError` for what is no query, or is one of Lucene's that is not supported.

    >>> parse_text_query('tide* OR "High water"').parts
    (Phrase(words=('tide',), prefix=True), Phrase(words=('high', 'water'), prefix=False))
    """
    return _QueryReader(text).whole()


class _QueryReader:
    """Reads a query from left to right: OR binds less than words beside each other."""

    def __init__(self, text: str) -> None:
        self._text = text
        if text.count('"') % 2:
            self._fail('a " is not closed')
        found = list(_PART.finditer(text))
        if any(part[3] in ("-", "+", "!") for part in found):
            self._fail("a word is missing")
        self._parts = [(part[1], part[2] or part[3]) for part in found]
        self._at = 0
        self._depth = 0

    def whole(self) -> TextQuery:
        found = self._either()
        if self._at < len(self._parts):
            self._fail("a ) too many")
        return found

    def _fail(self, reason: str) -> NoReturn:
        raise ExpressionError(f"{reason} in the text query {self._text!r}")

    def _next(self) -> str | None:
        """What comes next, if it is not a phrase."""
        return self._parts[self._at][1] if self._at < len(self._parts) else None

    def _accept(self, *words: str) -> bool:
        found = self._next() in words
        self._at += found
        return found

    def _either(self) -> TextQuery:
        choices = [self._both()]
        while self._accept("OR", "||"):
            choices.append(self._both())
        return choices[0] if len(choices) == 1 else AnyOf(tuple(choices))

    def _both(self) -> TextQuery:
        parts = [self._one()]
        while self._at < len(self._parts) and self._next() not in ("OR", "||", ")"):
            self._accept("AND", "&&")
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _one(self) -> TextQuery:
        if self._accept("NOT", "!", "-"):
            return NoneOf(self._nested(self._one))
        if self._accept("+"):
            return self._nested(self._one)
        if self._accept("("):
            found = self._nested(self._either)
            if not self._accept(")"):
                self._fail("a ( is not closed")
            return found
        if self._at == len(self._parts) or self._next() in ("OR", "AND", "||", "&&", ")"):
            self._fail("a word is missing")
        phrase, word = self._parts[self._at]
        self._at += 1
        return self._phrase(phrase) if word is None else self._word(word)

    def _nested(self, read: Callable[[], TextQuery]) -> TextQuery:
        self._depth += 1
        if self._depth > MOST_NESTED:
            self._fail(f"more than {MOST_NESTED} levels")
        found = read()
        self._depth -= 1
        return found

    def _word(self, word: str) -> TextQuery:
        if wrong := _UNSUPPORTED.search(word):
            self._fail(f"{wrong[0][0]} is not supported: quote the word; only * at its end is,")
        return self._phrase(word.removesuffix("*"), prefix=word.endswith("*"))

    def _phrase(self, text: str, *, prefix: bool = False) -> Phrase:
        words = words_of(text)
        if not words:
            self._fail(f"there is no word in {text!r}")
        return Phrase(words, prefix)


def _holds(query: TextQuery, words: Words) -> bool:
    match query:
        case Phrase():
            return bool(query.places(words))
        case AllOf(parts):
            return all(_holds(part, words) for part in parts)
        case AnyOf(parts):
            return any(_holds(part, words) for part in parts)
        case NoneOf(part):
            return not _holds(part, words)
        case _:
            assert_never(query)


def _hits(query: TextQuery, words: Words) -> set[int]:
    """The places of the words that match, without those of NOT."""
    match query:
        case Phrase():
            return {at + i for at in query.places(words) for i in range(len(query.words))}
        case AllOf(parts) | AnyOf(parts):
            return set().union(*(_hits(part, words) for part in parts))
        case NoneOf():
            return set()
        case _:
            assert_never(query)


# ---- functions -----------------------------------------------------------------------------------


def matches(literal: Term, query: Term) -> Term:
    """Whether a string matches a text query; an error if it is no string.

    >>> from pyoxigraph import Literal
    >>> print(matches(Literal("High tide", language="en"), Literal("tide OR ebb")))
    "true"^^<http://www.w3.org/2001/XMLSchema#boolean>
    """
    return boolean_term(_holds(parse_text_query(plain_of(query)), words_of(text_of(literal).text)))


def score(literal: Term, query: Term) -> Term:
    """The share of a string's words that a word, prefix or phrase of a text query matches.

    >>> from pyoxigraph import Literal
    >>> print(score(Literal("high tide"), Literal("tide")))
    "0.5"^^<http://www.w3.org/2001/XMLSchema#double>
    """
    words = words_of(text_of(literal).text)
    found = len(_hits(parse_text_query(plain_of(query)), words))
    return to_term(num.double(found / len(words) if words else 0.0))


CALLS: Final[dict[str, tuple[Callable[..., Term], int]]] = {
    MATCHES: (matches, 2),
    SCORE: (score, 2),
}
"""Each function by the name it has in a call, with its number of arguments."""
