r"""Sets of characters: ranges of code points, the classes of XPath, and the variants of case."""

from __future__ import annotations

import sys
import unicodedata
from collections import defaultdict
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]
"""Code points from the first to the last of each pair; pairs in order, and apart."""

EVERY: Final[Ranges] = ((0, sys.maxunicode),)


def union(*sets: Ranges) -> Ranges:
    """The characters of any of the sets.

    >>> union(((97, 99),), ((100, 110), (105, 120)))
    ((97, 120),)
    """
    merged: list[tuple[int, int]] = []
    for first, last in sorted(chain(*sets)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All other characters.

    >>> complement(((0, 9), (11, 1114111)))
    ((10, 10),)
    """
    found: list[tuple[int, int]] = []
    free = 0
    for first, last in ranges:
        if first > free:
            found.append((free, first - 1))
        free = last + 1
    if free <= sys.maxunicode:
        found.append((free, sys.maxunicode))
    return tuple(found)


def difference(ranges: Ranges, without: Ranges) -> Ranges:
    """The characters of the first set that are not in the second."""
    return complement(union(complement(ranges), without))


def of_codes(codes: Iterable[int]) -> Ranges:
    """The set of some code points."""
    return union(tuple((code, code) for code in codes))


def one(character: str) -> Ranges:
    """The set of one character."""
    return ((ord(character), ord(character)),)


def _written(text: str) -> Ranges:
    """A set written as in brackets: single characters and `a-z`.

    >>> _written("a-c_")
    ((95, 95), (97, 99))
    """
    parts: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        width = 3 if text[at + 1 : at + 2] == "-" and at + 2 < len(text) else 1
        parts.append((ord(text[at]), ord(text[at + width - 1])))
        at += width
    return union(tuple(parts))


@cache
def category(name: str) -> Ranges | None:
    """The characters of a general category of Unicode such as `Lu`, or of a group such as `L`.

    >>> category("Zl"), category("Qq")
    (((8232, 8232),), None)
    """
    members = [codes for known, codes in _codes_by_category().items() if known.startswith(name)]
    return of_codes(chain(*members)) if members else None


@cache
def _codes_by_category() -> dict[str, list[int]]:
    codes: dict[str, list[int]] = defaultdict(list)
    for code in range(sys.maxunicode + 1):
        codes[unicodedata.category(chr(code))].append(code)
    return dict(codes)


_NAME_START: Final = _written(
    ":A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME: Final = union(_NAME_START, _written("-.0-9\xb7\u0300-\u036f\u203f-\u2040"))
_SPACE: Final = _written("\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000")


@cache
def multi_character(letter: str) -> Ranges | None:
    r"""The characters of `\d`, `\w`, `\s`, `\i` or `\c`; None for another letter."""
    match letter:
        case "d":
            return category("Nd")
        case "w":
            return of_codes(c for c in range(sys.maxunicode + 1) if is_word(chr(c)))
        case "s":
            return _SPACE
        case "i":
            return _NAME_START
        case "c":
            return _NAME
        case _:
            return None


def is_word(character: str) -> bool:
    r"""Whether a character is one of `\w`, and so has a word boundary beside one that is not."""
    return character.isalnum() or character == "_"


def _cased() -> Iterator[int]:
    """All cased characters, and those beside them: most blocks of 256 have none."""
    for start in range(0, sys.maxunicode + 1, 256):
        block = "".join(map(chr, range(start, start + 256)))
        if block.lower() != block.upper():
            yield from range(start, start + 256)


@cache
def _variants() -> dict[int, set[int]]:
    """The cased characters, each with all that have the same lower or the same upper case.

    https://www.w3.org/TR/xpath-functions-31/#flags
    """
    alike: dict[tuple[bool, str], set[int]] = defaultdict(set)
    for code in _cased():
        lower, upper = chr(code).lower(), chr(code).upper()
        if lower != upper:
            alike[False, lower].add(code)
            alike[True, upper].add(code)
    found: dict[int, set[int]] = defaultdict(set)
    for group in alike.values():
        for code in group:
            found[code] |= group
    return dict(found)


def same_but_for_case(one_text: str, other: str) -> bool:
    """Whether two texts have the same characters, or variants of them."""
    return len(one_text) == len(other) and all(
        a == b or ord(b) in _variants().get(ord(a), ())
        for a, b in zip(one_text, other, strict=True)
    )


@lru_cache(1024)
def ignoring_case(ranges: Ranges) -> Ranges:
    """The characters of a set and their variants."""
    added = [
        other for code, group in _variants().items() if contains(ranges, code) for other in group
    ]
    return union(ranges, of_codes(added))


def contains(ranges: Ranges, code: int) -> bool:
    """Whether a code point is in a set.

    >>> contains(((97, 99), (120, 120)), 98), contains(((97, 99), (120, 120)), 119)
    (True, False)
    """
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        first, last = ranges[middle]
        if code < first:
            high = middle
        elif code > last:
            low = middle + 1
        else:
            return True
    return False
