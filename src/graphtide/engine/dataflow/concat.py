"""GROUP_CONCAT: the texts of a group in the order of their values, joined block by block.

A change makes the text of one block anew, and copies those of the others: what is left to pay for
is the length of the text that the group's row has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal

from graphtide.errors import ExpressionError
from graphtide.functions.comparison import total_order
from graphtide.functions.values import check_length, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term

LONG_BLOCK = 200
"""Values of a block from which on it is divided."""


class TextBlock:
    """Values that follow each other, their texts, and these texts joined, unless one changed."""

    __slots__ = ("entries", "joined", "texts")

    def __init__(self) -> None:
        self.entries: list[tuple[Any, int]] = []
        self.texts: list[str] = []
        self.joined: str | None = None

    def second_half(self) -> TextBlock:
        """Give the second half away."""
        other, half = TextBlock(), len(self.entries) // 2
        other.entries, self.entries = self.entries[half:], self.entries[:half]
        other.texts, self.texts = self.texts[half:], self.texts[:half]
        return other


def last_entry(block: TextBlock) -> tuple[Any, int]:
    """The greatest value of a block."""
    return block.entries[-1]


class ConcatState:
    """All values, from the least to the greatest, as one text.

    They are in blocks, each with its own text: for a changed value one of them is made anew.
    """

    def __init__(self, terms: TermDictionary, separator: str) -> None:
        self._terms = terms
        self._separator = separator
        self._errors = 0
        self._length = 0
        self._counts: Counter[int] = Counter()
        self._blocks: list[TextBlock] = []

    def add(self, value: int, count: int) -> None:
        """More or fewer of a value."""
        if not value:
            self._errors += count
            return
        term = self._terms.decode(value)
        try:
            text = text_of(term).text
        except ExpressionError:
            self._errors += count
            return
        entry = (total_order(term), value)
        before = self._counts[value]
        self._counts[value] = before + count
        self._length += (len(text) + len(self._separator)) * count
        at = min(bisect_left(self._blocks, entry, key=last_entry), len(self._blocks) - 1)
        if at < 0:
            at = 0
            self._blocks.append(TextBlock())
        block = self._blocks[at]
        block.joined = None
        within = bisect_left(block.entries, entry)
        if before == 0:
            block.entries.insert(within, entry)
            block.texts.insert(within, text)
            if len(block.entries) > LONG_BLOCK:
                self._blocks.insert(at + 1, block.second_half())
        elif before + count == 0:
            del self._counts[value], block.entries[within], block.texts[within]
            if not block.entries:
                del self._blocks[at]

    def result(self) -> Term:
        """The texts joined."""
        if self._errors:
            raise ExpressionError("a value has an error")
        # Before they are repeated: a count may be the product of several.
        check_length(self._length)
        return Literal(self._separator.join(map(self._text, self._blocks)))

    def _text(self, block: TextBlock) -> str:
        if block.joined is None:
            block.joined = self._separator.join(
                text
                for (_, value), text in zip(block.entries, block.texts, strict=True)
                for _ in range(self._counts[value])
            )
        return block.joined

    def held(self) -> Iterable[int]:
        """The different values."""
        return self._counts
