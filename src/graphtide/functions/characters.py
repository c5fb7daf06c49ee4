r"""Character classes of XPath patterns, as the inside of a Python bracket expression."""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from typing import Final

_NAME_START: Final = (
    ":A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_SPACE: Final = "\\t-\\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

MULTI_CHARACTER: Final = {
    "d": r"\d",
    "w": r"\w",
    "s": _SPACE,
    "i": _NAME_START,
    "c": _NAME_START + r"\-.0-9" + "\xb7\u0300-\u036f\u203f-\u2040",
}
"""What each multi-character escape stands for; the upper-case letter is the complement."""


@cache
def category_ranges(category: str) -> str | None:
    r"""The ranges of a general category of Unicode such as `Lu`, or of a group such as `L`.

    >>> category_ranges("Zl"), category_ranges("Qq")
    ('\\U00002028', None)
    """
    members = [
        code
        for name, codes in _codes_by_category().items()
        if name.startswith(category)
        for code in codes
    ]
    return _ranges(sorted(members)) if members else None


@cache
def _codes_by_category() -> dict[str, list[int]]:
    codes: dict[str, list[int]] = {}
    for code in range(sys.maxunicode + 1):
        codes.setdefault(unicodedata.category(chr(code)), []).append(code)
    return codes


def _ranges(codes: list[int]) -> str:
    parts: list[str] = []
    start = previous = codes[0]
    for code in [*codes[1:], -1]:
        if code != previous + 1:
            parts.append(f"\\U{start:08x}-\\U{previous:08x}" if start != previous else _one(start))
            start = code
        previous = code
    return "".join(parts)


def _one(code: int) -> str:
    return f"\\U{code:08x}"
