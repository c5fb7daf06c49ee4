"""An inverted index over the words of literals, shared by all text searches of a graph.

A literal is taken in when a search first meets it, and its words are looked up from then on: the
first evaluation of another search costs what its words have in common with the literals, not what
the literals have. It has no part in what a search means: it decides batches of rows as `matches`
does, and single rows are decided without it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, assert_never
from weakref import WeakKeyDictionary

import numpy as np

from graphtide.errors import ExpressionError
from graphtide.functions.extensions.text import (
    AllOf,
    AnyOf,
    NoneOf,
    Phrase,
    TextQuery,
    Words,
    words_of,
)
from graphtide.functions.values import text_of
from graphtide.kernel import values as val

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary

FEW: Final = 32
"""Rows up to which a search looks at the words of each."""

NO_TEXT: Final = ""
"""The word of what is not a string; no word is empty."""


class TextIndex:
    """For each word, the ids of the literals that have it."""

    def __init__(self, terms: TermDictionary) -> None:
        self._forget(terms)

    def _forget(self, terms: TermDictionary) -> None:
        self._generation = terms.generation
        self._known: set[int] = set()
        self._ids: dict[str, array[int]] = {}
        self._vocabulary: list[str] = []

    def outcomes(self, query: TextQuery, column: Ints, terms: TermDictionary) -> val.Kinds:
        """For each id, whether it matches; an error if it is not a string."""
        if self._generation != terms.generation:  # an id may mean another term
            self._forget(terms)
        ids, places = np.unique(column, return_inverse=True)
        self._take(ids, terms)
        texts = np.setdiff1d(ids, self._with(NO_TEXT), assume_unique=True)
        found = np.full(len(ids), val.ERROR, np.int8)
        found[np.searchsorted(ids, texts)] = val.FALSE
        found[np.searchsorted(ids, self._matching(query, texts, terms))] = val.TRUE
        return found[places.reshape(-1)]

    def _take(self, ids: Ints, terms: TermDictionary) -> None:
        """Take in the terms that are not known."""
        for new in set(ids.tolist()).difference(self._known):
            words = _words(new, terms)
            for word in (NO_TEXT,) if words is None else set(words):
                self._ids.setdefault(word, array("i")).append(new)
            self._known.add(new)

    def _with(self, word: str) -> Ints:
        return np.array(self._ids.get(word, ()), np.int32)

    def _beginning(self, prefix: str) -> Ints:
        """The literals with a word that begins so."""
        if len(self._vocabulary) != len(self._ids):
            self._vocabulary = sorted(self._ids)
        at = bisect_left(self._vocabulary, prefix)
        found: list[Ints] = [np.zeros(0, np.int32)]
        while at < len(self._vocabulary) and self._vocabulary[at].startswith(prefix):
            found.append(self._with(self._vocabulary[at]))
            at += 1
        return np.unique(np.concatenate(found))

    def _matching(self, query: TextQuery, ids: Ints, terms: TermDictionary) -> Ints:
        """Those of some literals that match, in order."""
        match query:
            case Phrase():
                return self._with_phrase(query, ids, terms)
            case AllOf(parts):
                for part in parts:
                    ids = self._matching(part, ids, terms)
                return ids
            case AnyOf(parts):
                return np.unique(
                    np.concatenate([self._matching(part, ids, terms) for part in parts])
                )
            case NoneOf(part):
                return np.setdiff1d(ids, self._matching(part, ids, terms), assume_unique=True)
            case _:
                assert_never(query)

    def _with_phrase(self, phrase: Phrase, ids: Ints, terms: TermDictionary) -> Ints:
        *first, last = phrase.words
        own = self._beginning(last) if phrase.prefix else self._with(last)
        for each in (*map(self._with, first), own):
            ids = np.intersect1d(ids, each)
        if not first:
            return ids
        return ids[[bool(phrase.places(_words(each, terms) or ())) for each in ids.tolist()]]


def _words(term: int, terms: TermDictionary) -> Words | None:
    """The words of a string; None if it is none."""
    try:
        return words_of(text_of(terms.decode(term)).text) if term else None
    except ExpressionError:
        return None


_INDEXES: WeakKeyDictionary[TermDictionary, TextIndex] = WeakKeyDictionary()


def text_outcomes(query: TextQuery, column: Ints, terms: TermDictionary) -> val.Kinds:
    """The outcomes of a text search for a column of ids; of few rows, they stay open."""
    if len(column) < FEW:
        return np.full(len(column), val.OPEN, np.int8)
    index = _INDEXES.get(terms)
    if index is None:
        index = _INDEXES[terms] = TextIndex(terms)
    return index.outcomes(query, column, terms)
