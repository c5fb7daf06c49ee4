"""Tokens as text: the state of a detector for another process, in which terms have other ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.kernel.tokens.token_table import SavedTokens
from graphtide.patterns.detector import AnyDetector, KernelDetector
from graphtide.patterns.gather import GatheredEvent
from graphtide.patterns.general import SavedDetector
from graphtide.patterns.tokens import Configuration, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.rdf.dictionary import TermDictionary

    Numbered = Callable[[Sequence[int]], tuple[int, ...]]
    """From ids to other numbers for the same terms."""


def save_tokens(detector: AnyDetector, terms: TermDictionary) -> bytes:
    """The tokens of a detector as JSON, in which values are terms and not ids."""
    if isinstance(detector, KernelDetector):
        detector.table.sweep()
    return saved_text(detector, detector.save(), detector.now, terms)


def saved_text(
    detector: AnyDetector,
    saved: SavedTokens | SavedDetector,
    now: int | None,
    terms: TermDictionary,
) -> bytes:
    """Saved tokens of a detector, of a time, as JSON."""
    texts: dict[int, int] = {}

    def numbered(ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(texts.setdefault(i, len(texts) + 1) if i else 0 for i in ids)

    if isinstance(saved, SavedTokens):
        tokens, slots = saved.tokens.copy(), len(detector.automaton.variables)
        first = tokens.shape[1] - slots
        values = numbered(tokens[:, first:].reshape(-1).tolist())
        tokens[:, first:] = np.array(values, np.int64).reshape(len(tokens), slots)
        state: Any = [part.tolist() for part in saved._replace(tokens=tokens)]
    else:
        state = [[_token(t, numbered) for t in saved.tokens], saved.events, saved.born]
    words = [terms.text(i) for i in texts]
    return json.dumps([words, now, state], separators=(",", ":")).encode()


def load_tokens(detector: AnyDetector, text: bytes, terms: TermDictionary) -> None:
    """Replace the tokens of a detector by saved ones."""
    saved, now = saved_of(detector, text, terms)
    detector.load(saved)  # type: ignore[arg-type] # it is the detector's own
    detector.now = now


def saved_of(
    detector: AnyDetector, text: bytes, terms: TermDictionary
) -> tuple[SavedTokens | SavedDetector, int | None]:
    """The saved tokens that a text stands for, and their time."""
    words, now, state = json.loads(text)
    ids = [0, *(terms.intern(word) for word in words)]

    def numbered(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(ids[number] for number in numbers)

    if isinstance(detector, KernelDetector) and len(state) == len(SavedTokens._fields):
        rows, used_to, used, counts = (np.array(part, np.int64) for part in state)
        slots = len(detector.automaton.variables)
        tokens = rows if len(rows) else detector.table.save().tokens[:0]
        first = tokens.shape[1] - slots
        values = numbered(tokens[:, first:].reshape(-1).tolist())
        tokens[:, first:] = np.array(values, np.int64).reshape(len(tokens), slots)
        return SavedTokens(tokens, used_to, used, counts), now
    tokens_, events, born = state
    made = [_made_token(token, numbered) for token in tokens_]
    return SavedDetector(made, now, events, born), now


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
    gathered = [[[numbered(e.values), e.time] for e in events] for events in at.gathered]
    return [at.position, numbered(at.values), at.entries, at.last, *sets, at.noisy, gathered]


def _made_configuration(state: list[Any], numbered: Numbered) -> Configuration:
    position, values, entries, last, violated, runs, fired, noisy, *more = state
    inner = tuple((n, frozenset(_made_configuration(c, numbered) for c in run)) for n, run in runs)
    sets = frozenset(violated), inner, frozenset(fired)
    gathered = tuple(
        tuple(GatheredEvent(numbered(values), time) for values, time in events)
        for events in (more[0] if more else ())
    )
    return Configuration(position, numbered(values), tuple(entries), last, *sets, noisy, gathered)
