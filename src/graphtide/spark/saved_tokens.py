"""Saved tokens: what a detector knows, as a JSON text in which values are terms and not ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.kernel.tokens.token_table import SavedTokens
from graphtide.patterns.detector import KernelDetector, SavedDetector
from graphtide.patterns.tokens import Configuration, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.patterns.detector import AnyDetector
    from graphtide.rdf.dictionary import TermDictionary

    Numbered = Callable[[Sequence[int]], tuple[int, ...]]
    """From ids to other numbers for the same terms."""


def save_tokens(detector: AnyDetector, terms: TermDictionary) -> str:
    """The tokens of a detector as a text."""
    texts: dict[int, int] = {}

    def numbered(ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(texts.setdefault(i, len(texts) + 1) if i else 0 for i in ids)

    if isinstance(detector, KernelDetector):
        detector.table.sweep()
        saved = detector.save()
        tokens, slots = saved.tokens.copy(), len(detector.automaton.variables)
        first = tokens.shape[1] - slots
        values = numbered(tokens[:, first:].reshape(-1).tolist())
        tokens[:, first:] = np.array(values, np.int64).reshape(len(tokens), slots)
        state: Any = [part.tolist() for part in saved._replace(tokens=tokens)]
        now = detector.now
    else:
        kept = detector.save()
        state = [[_token(t, numbered) for t in kept.tokens], kept.events, kept.born]
        now = kept.now
    words = [terms.text(i) for i in texts]
    return json.dumps([words, now, state], separators=(",", ":"))


def load_tokens(detector: AnyDetector, text: str, terms: TermDictionary) -> None:
    """Let a detector have the tokens of a text, and no others."""
    words, now, state = json.loads(text)
    ids = [0, *(terms.encode(word) for word in words)]

    def numbered(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(ids[number] for number in numbers)

    if isinstance(detector, KernelDetector):
        rows, used_to, used, counts = (np.array(part, np.int64) for part in state)
        slots = len(detector.automaton.variables)
        tokens = rows if len(rows) else detector.save().tokens[:0]
        first = tokens.shape[1] - slots
        values = numbered(tokens[:, first:].reshape(-1).tolist())
        tokens[:, first:] = np.array(values, np.int64).reshape(len(tokens), slots)
        detector.load(SavedTokens(tokens, used_to, used, counts))
        detector.now = now
    else:
        tokens_, events, born = state
        made = [_made_token(token, numbered) for token in tokens_]
        detector.load(SavedDetector(made, now, events, born))


def _token(token: Token, numbered: Numbered) -> list[Any]:
    at = [_configuration(each, numbered) for each in token.configurations]
    return [token.order, token.start, numbered(token.key), token.used, at]


def _made_token(state: list[Any], numbered: Numbered) -> Token:
    order, start, key, used, at = state
    configurations = [_made_configuration(each, numbered) for each in at]
    return Token(order, start, numbered(key), used, configurations)


def _configuration(at: Configuration, numbered: Numbered) -> list[Any]:
    runs = [[n, sorted((_configuration(c, numbered) for c in run), key=repr)] for n, run in at.runs]
    sets = sorted(at.violated), runs, sorted(at.fired)
    return [at.position, numbered(at.values), at.entries, at.last, *sets]


def _made_configuration(state: list[Any], numbered: Numbered) -> Configuration:
    position, values, entries, last, violated, runs, fired = state
    inner = tuple((n, frozenset(_made_configuration(c, numbered) for c in run)) for n, run in runs)
    sets = frozenset(violated), inner, frozenset(fired)
    return Configuration(position, numbered(values), tuple(entries), last, *sets)
