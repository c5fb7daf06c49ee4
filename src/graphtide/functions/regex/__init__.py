r"""Regular expressions of XPath: patterns, matches and replacements.

A pattern is parsed to a tree (`syntax`) and matched by RE2 (`linear`), in time linear in the text.
What RE2 does not know is matched by backtracking with a limit on the steps (`backtracking`): back
references; repetitions of more than 1,000; `\b` in a text that is not ASCII; and in REPLACE, loops
over what can be empty, where RE2 captures otherwise.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from graphtide.errors import ExpressionError
from graphtide.functions.regex import syntax
from graphtide.functions.regex.backtracking import BacktrackingProgram, Spans
from graphtide.functions.regex.linear import compile_linear
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CACHE_SIZE = 1024

Replacement = tuple[str | int, ...]
"""What a match is replaced by: texts, and the numbers of groups."""


class CompiledPattern:
    """A pattern, compiled when it is first used."""

    def __init__(self, pattern: str, flags: str) -> None:
        parsed = syntax.parse_pattern(pattern, flags)
        self.groups = parsed.groups
        self._parsed = parsed
        parts = syntax.parts(parsed.root)
        self._ascii_only = any(
            isinstance(part, syntax.Anchor) and "boundary" in part.kind for part in parts
        )
        self._empty_loop = any(
            isinstance(part, syntax.Quantified)
            and part.most != 1
            and syntax.can_be_empty(part.body)
            for part in parts
        )
        self._test = compile_linear(parsed.root, groups=False)
        if self._test is None:
            _ = self._backtracking  # so that a pattern that is too large is an error at once

    @cached_property
    def _backtracking(self) -> BacktrackingProgram:
        return BacktrackingProgram(self._parsed)

    @cached_property
    def _find(self) -> Callable[[str], Iterator[Spans]]:
        linear = None if self._empty_loop else compile_linear(self._parsed.root, groups=True)
        if linear is None:
            return self._backtracking.finditer
        groups = range(self.groups + 1)
        return lambda text: (
            [place for group in groups for place in match.span(group)]
            # In ASCII the places of bytes are those of characters, and need not be converted.
            for match in linear.finditer(text.encode() if text.isascii() else text)
        )

    @cached_property
    def matches_empty(self) -> bool:
        """Whether the pattern matches the empty string."""
        return self.search("")

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in a text."""
        if self._test is None or (self._ascii_only and not text.isascii()):
            return next(self._backtracking.finditer(text), None) is not None
        return self._test.search(text.encode()) is not None

    def replace(self, text: str, replacement: Replacement) -> str:
        """The text with every match replaced; an error if that is too long."""
        slow = self._ascii_only and not text.isascii()
        matches = self._backtracking.finditer(text) if slow else self._find(text)
        left = allowance()
        most = left.limits.literal_length
        pieces: list[str] = []
        end = length = 0
        for number, spans in enumerate(matches):
            pieces.append(text[end : spans[0]])
            for part in replacement:
                pieces.append(
                    part
                    if isinstance(part, str)
                    else text[max(spans[2 * part], 0) : max(spans[2 * part + 1], 0)]
                )
                length += len(pieces[-1])
            length += spans[0] - end
            end = spans[1]
            if most is not None and length > most:
                break
            if number % 1024 == 0:
                left.check_time()
        if most is not None and length + len(text) - end > most:
            raise left.limits.no_value("literal_length", "the result of REPLACE is too long")
        return "".join(pieces) + text[end:]


@lru_cache(_CACHE_SIZE)
def compile_pattern(pattern: str, flags: str = "") -> CompiledPattern:
    """Compile an XPath pattern; an error when pattern or flags are invalid.

    >>> compile_pattern("^[a-z-[aeiou]]+$").search("rhythm")
    True
    """
    return CompiledPattern(pattern, flags)


def compile_replacement(text: str, groups: int, flags: str = "") -> Replacement:
    """The replacement of REPLACE in parts; an error when it is invalid.

    `$0` is the whole match; `$12` is group 12 if the pattern has so many, else group 1 and a 2.

    >>> compile_replacement("<$1>", 1)
    ('<', 1, '>')
    """
    if "q" in flags:
        return (text,)
    parts: list[str | int] = [""]
    at = 0
    while at < len(text):
        literal = text[at]
        if text[at] == "\\":
            literal = text[at + 1 : at + 2]
            if literal not in ("\\", "$"):
                raise ExpressionError(
                    f"the backslash in {text!r} must be followed by a backslash or a dollar sign"
                )
            at += 1
        elif text[at] == "$":
            digits = _group_digits(text, at + 1, groups)
            at += len(digits)
            if int(digits) <= groups:
                parts += (int(digits), "")
            literal = ""
        parts[-1] += literal  # type: ignore[operator]
        at += 1
    return tuple(part for part in parts if part != "")


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
