r"""Regular expressions of XPath, translated to Python's.

https://www.w3.org/TR/xpath-functions/#regex-syntax. The translation reads the pattern once, checks
what Python would read differently, and rewrites it: `\i`, `\c` and `\p{..}` become character
ranges, `[a-z-[aeiou]]` a subtraction, `$` the very end. Groups, back references, lazy quantifiers,
`(?:..)` and, beyond XPath, named groups, `\b`, `\B`, a leading `(?i)` and, with
the flag `x`, comments work. Unicode blocks and scripts do not.

Python matches by backtracking: a pattern such as `(a+)+$` takes exponential time on some texts.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from graphtide.errors import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Callable


# Character classes are written as the inside of a Python bracket expression.
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


_FLAGS: Final = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": 0, "q": 0}
_SINGLE_ESCAPES: Final = {"n": r"\n", "r": r"\r", "t": r"\t", "f": r"\f", "v": r"\v", "a": r"\a"}
_ANCHORS: Final = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z"}
_QUANTIFIER: Final = re.compile(r"(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})\??", re.ASCII)
_GROUP: Final = re.compile(r"\((?:\?(?:[ims]*(?:-[ims]+)?:|P?<[A-Za-z_][A-Za-z0-9_]*>))?", re.ASCII)
_LEADING_FLAGS: Final = re.compile(r"\(\?([imsx]+)\)", re.ASCII)
_CATEGORY: Final = re.compile(r"[pP](?:\{([A-Z][a-z]?)\}|([A-Z]))", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|[xu]\{([0-9A-Fa-f]{1,6})\})", re.ASCII
)
_LAYOUT: Final = " \t\n\r#"
_COMMENT: Final = re.compile(r"#[^\n]*")
_CACHE_SIZE = 1024


@lru_cache(_CACHE_SIZE)
def compile_pattern(pattern: str, flags: str = "") -> re.Pattern[str]:
    """Translate and compile an XPath pattern; an error when pattern or flags are invalid.

    >>> compile_pattern("^[a-z-[aeiou]]+$").match("rhythm") is not None
    True
    """
    unknown = set(flags) - _FLAGS.keys()
    if unknown:
        raise ExpressionError(f"unknown regular expression flag: {', '.join(sorted(unknown))}")
    if "q" in flags:
        translated = re.escape(pattern)
    else:
        leading = _LEADING_FLAGS.match(pattern)
        if leading is not None:
            pattern, flags = pattern[leading.end() :], flags + leading.group(1)
        translated = _Translation(pattern, flags).run()
    options = re.RegexFlag(0)
    for flag in flags:
        options |= _FLAGS[flag]
    try:
        return re.compile(translated, options)
    except (re.error, OverflowError, RecursionError) as error:
        raise ExpressionError(f"invalid regular expression {pattern!r}: {error}") from error


def compile_replacement(text: str, groups: int, flags: str = "") -> Callable[[re.Match[str]], str]:
    """The replacement of REPLACE as a function of a match; an error when it is invalid.

    `$0` is the whole match; `$12` is group 12 if the pattern has so many, else group 1 and a 2.
    """
    if "q" in flags:
        return lambda _: text
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            if text[at + 1 : at + 2] not in ("\\", "$"):
                raise ExpressionError(
                    f"the backslash in {text!r} must be followed by a backslash or a dollar sign"
                )
            parts.append(text[at + 1])
            at += 2
        elif text[at] == "$":
            digits = _group_digits(text, at + 1, groups)
            number = int(digits)
            parts.append(number if number <= groups else "")
            at += 1 + len(digits)
        else:
            parts.append(text[at])
            at += 1
    return lambda match: "".join(
        part if isinstance(part, str) else match.group(part) or "" for part in parts
    )


def _group_digits(text: str, at: int, groups: int) -> str:
    digits = ""
    while text[at : at + 1] in tuple("0123456789"):
        if digits and int(digits + text[at]) > groups:
            break
        digits += text[at]
        at += 1
    if not digits:
        raise ExpressionError(f"the dollar sign in {text!r} needs a group number or a backslash")
    return digits


class _Translation:
    """One pass over a pattern; `run` returns the Python pattern."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = pattern
        self.spaced = "x" in flags
        self.multiline = "m" in flags
        self.at = 0

    def run(self) -> str:
        output: list[str] = []
        may_repeat = False
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            if self.spaced and character in _LAYOUT:
                self.at = self._after_layout()
                continue
            if character in "?*+{":
                if not may_repeat:
                    raise self._error("nothing to repeat")
                output.append(self._take(_QUANTIFIER, "an invalid quantifier"))
                may_repeat = False
                continue
            output.append(self._item(character))
            may_repeat = character not in "(|^"
        return "".join(output)

    def _after_layout(self) -> int:
        comment = _COMMENT.match(self.pattern, self.at)
        return self.at + 1 if comment is None else comment.end()

    def _item(self, character: str) -> str:
        if character == "(":
            return self._take(_GROUP, "a group that is not supported").replace("(?<", "(?P<")
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        self.at += 1
        if character == "$":
            return "$" if self.multiline else r"\Z"
        return character if character in ".^)|" else re.escape(character)

    def _escape(self) -> str:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following in _ANCHORS:
            self.at += 2
            return _ANCHORS[following]
        if following != "" and following in "123456789":
            self.at += 2
            return f"(?:\\{following})"
        ranges, negated = self._escaped_ranges()
        return f"[{'^' if negated else ''}{ranges}]"

    def _escaped_ranges(self) -> tuple[str, bool]:
        """The character ranges that the escape at this place stands for, and whether negated."""
        self.at += 1
        following = self.pattern[self.at : self.at + 1]
        category = _CATEGORY.match(self.pattern, self.at)
        if category is not None:
            self.at = category.end()
            name = category.group(1) or category.group(2)
            ranges = category_ranges(name)
            if ranges is None:
                raise self._error(f"the unknown category {name}")
            return ranges, following == "P"
        hexadecimal = _HEXADECIMAL.match(self.pattern, self.at)
        if hexadecimal is not None:
            self.at = hexadecimal.end()
            return self._code_point("".join(filter(None, hexadecimal.groups()))), False
        self.at += 1
        if following.lower() in MULTI_CHARACTER and following not in _SINGLE_ESCAPES:
            return MULTI_CHARACTER[following.lower()], following.isupper()
        if following in _SINGLE_ESCAPES:
            return _SINGLE_ESCAPES[following], False
        if following == "" or following.isalnum() or (following.isspace() and following != " "):
            raise self._error(f"the unknown escape \\{following}")
        return re.escape(following), False

    def _class(self) -> str:
        """A bracket expression; a subtraction becomes a negative look-ahead before it."""
        self.at += 1
        negated = self.pattern[self.at : self.at + 1] == "^"
        self.at += negated
        positive: list[str] = []
        complements: list[str] = []
        subtracted = ""
        while True:
            if self.at >= len(self.pattern):
                raise self._error("an unclosed [")
            character = self.pattern[self.at]
            if character == "]" and (positive or complements):
                self.at += 1
                break
            if self.pattern.startswith("-[", self.at) and (positive or complements):
                self.at += 1
                subtracted = self._class()
                if self.pattern[self.at : self.at + 1] != "]":
                    raise self._error("a subtraction that does not end its class")
                continue
            ranges, complement = self._member(character, first=not (positive or complements))
            (complements if complement else positive).append(ranges)
        return _assemble(positive, complements, subtracted, negated=negated)

    def _member(self, character: str, *, first: bool) -> tuple[str, bool]:
        if character == "[" or (character == "]" and not first):
            raise self._error(f"an unescaped {character} inside a class")
        start, complement = self._single(character)
        ahead = self.pattern[self.at : self.at + 2]
        if ahead[:1] != "-" or ahead[1:] in ("", "]", "["):
            return start, complement
        self.at += 1
        end, end_complement = self._single(self.pattern[self.at])
        if complement or end_complement or not _is_one(start) or not _is_one(end):
            raise self._error("a range between classes")
        return f"{start}-{end}", False

    def _single(self, character: str) -> tuple[str, bool]:
        if character == "\\":
            return self._escaped_ranges()
        self.at += 1
        return re.escape(character), False

    def _code_point(self, digits: str) -> str:
        try:
            return re.escape(chr(int(digits, 16)))
        except ValueError as error:
            raise self._error(f"no character {digits}") from error

    def _take(self, expected: re.Pattern[str], otherwise: str) -> str:
        match = expected.match(self.pattern, self.at)
        opens_special = self.pattern.startswith("(?", self.at)
        if match is None or (opens_special and match.group() == "("):
            raise self._error(otherwise)
        self.at = match.end()
        return match.group()

    def _error(self, what: str) -> ExpressionError:
        return ExpressionError(
            f"{what} at {self.at + 1} in the regular expression {self.pattern!r}"
        )


def _is_one(ranges: str) -> bool:
    """Whether translated ranges are a single character, perhaps escaped."""
    return len(ranges) == 1 or (len(ranges) == 2 and ranges[0] == "\\")


def _assemble(
    positive: list[str], complements: list[str], subtracted: str, *, negated: bool
) -> str:
    choices = [f"[{''.join(positive)}]"] if positive else []
    choices += [f"[^{ranges}]" for ranges in complements]
    union = choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
    if negated:
        union = f"(?:(?!{union})[\\s\\S])"
    return f"(?:(?!{subtracted}){union})" if subtracted else union
