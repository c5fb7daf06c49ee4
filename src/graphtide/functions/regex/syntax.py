r"""The syntax of XPath's regular expressions: a pattern as a tree.

https://www.w3.org/TR/xpath-functions/#regex-syntax. Character classes become sets of characters
here, and the flags take their effect: what is left are sets, anchors, groups, alternatives,
repetitions and back references. Beyond XPath there are named groups, `\b`, `\B`, a leading `(?i)`
and, with the flag `x`, comments. Unicode blocks and scripts are not supported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from graphtide.errors import ExpressionError
from graphtide.functions.regex import characters as chars


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: chars.Ranges


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in the text: its ends, the ends of lines, or (not) a boundary of a word."""

    kind: Literal["start", "end", "line start", "line end", "boundary", "no boundary"]


@dataclass(frozen=True, slots=True)
class Items:
    """Items one after the other; none of them match the empty string."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first of several branches that leads to a match."""

    branches: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Capture:
    """A group that captures what it matches; groups are numbered from 1."""

    number: int
    body: Item


@dataclass(frozen=True, slots=True)
class Quantified:
    """An item from `least` to `most` times (None: any number), as often as possible or `lazy`."""

    body: Item
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class BackReference:
    """What a group has matched, once more; the empty string if it has matched nothing."""

    number: int
    ignore_case: bool


Item = Characters | Anchor | Items | Choice | Capture | Quantified | BackReference


@dataclass(frozen=True, slots=True)
class ParsedPattern:
    """A pattern as a tree, and the number of its groups."""

    root: Item
    groups: int


FLAGS: Final = frozenset("smixq")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
_QUANTIFIER: Final = re.compile(r"(?:[?*+]|\{([0-9]+)(,([0-9]*))?\})(\??)", re.ASCII)
_GROUP: Final = re.compile(
    r"\((?:\?(?:([ims]*)(?:-([ims]+))?:|P?<([A-Za-z_][A-Za-z0-9_]*)>))?", re.ASCII
)
_LEADING_FLAGS: Final = re.compile(r"\(\?([imsx]+)\)", re.ASCII)
_CATEGORY: Final = re.compile(r"[pP](?:\{([A-Z][a-z]?)\}|([A-Z]))", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|[xu]\{([0-9A-Fa-f]{1,6})\})", re.ASCII
)
_COMMENT: Final = re.compile(r"#[^\n]*")
_LAYOUT: Final = " \t\n\r#"
_ANCHORS: Final = {
    "b": Anchor("boundary"),
    "B": Anchor("no boundary"),
    "A": Anchor("start"),
    "z": Anchor("end"),
}
_NEWLINE: Final = chars.one("\n")
MAX_DEPTH: Final = 100
"""Groups inside groups, and classes inside classes."""

MAX_COUNT: Final = 1_000_000
"""The greatest number in a quantifier."""


def parse_pattern(pattern: str, flags: str = "") -> ParsedPattern:
    """Parse a pattern; an error when pattern or flags are invalid.

    >>> parse_pattern("a|b").groups
    0
    """
    unknown = set(flags) - FLAGS
    if unknown:
        raise ExpressionError(f"unknown regular expression flag: {', '.join(sorted(unknown))}")
    if "q" in flags:
        fold = "i" in flags
        return ParsedPattern(Items(tuple(_character(c, fold=fold) for c in pattern)), 0)
    leading = _LEADING_FLAGS.match(pattern)
    if leading is not None:
        pattern, flags = pattern[leading.end() :], flags + leading.group(1)
    parser = _Parser(pattern, frozenset(flags))
    return ParsedPattern(parser.run(), parser.groups)


def _character(character: str, *, fold: bool) -> Characters:
    ranges = chars.one(character)
    return Characters(chars.ignoring_case(ranges) if fold else ranges)


class _Parser:
    """One pass over a pattern."""

    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self.pattern = pattern
        self.flags = flags
        self.at = 0
        self.groups = 0
        self._names: set[str] = set()
        self._closed: set[int] = set()
        self._depth = 0

    def run(self) -> Item:
        found = self._choice()
        if self.at < len(self.pattern):
            raise self._error("an unopened )")
        return found

    def _choice(self) -> Item:
        branches = [self._sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Item:
        items: list[Item] = []
        may_repeat = False
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            if "x" in self.flags and character in _LAYOUT:
                comment = _COMMENT.match(self.pattern, self.at)
                self.at = self.at + 1 if comment is None else comment.end()
            elif character in "|)":
                break
            elif character in "?*+{":
                if not may_repeat:
                    raise self._error("nothing to repeat")
                items[-1] = self._repeated(items[-1])
                may_repeat = False
            else:
                items.append(self._item(character))
                may_repeat = character != "^"
        return items[0] if len(items) == 1 else Items(tuple(items))

    def _repeated(self, body: Item) -> Item:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            raise self._error("an invalid quantifier")
        sign = self.pattern[self.at]
        least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(sign, (0, None))
        if sign == "{":
            least = self._count(found[1])
            most = least if found[2] is None else self._count(found[3]) if found[3] else None
            if most is not None and most < least:
                raise self._error("a quantifier whose greatest number is less than its least")
        self.at = found.end()
        return Quantified(body, least, most, lazy=found[4] == "?")

    def _count(self, digits: str) -> int:
        if len(digits) > 9 or int(digits) > MAX_COUNT:
            raise self._error(f"a quantifier of more than {MAX_COUNT:,}")
        return int(digits)

    def _item(self, character: str) -> Item:
        match character:
            case "(":
                return self._group()
            case "[":
                return Characters(self._class())
            case "\\":
                return self._escape()
            case _:
                self.at += 1
        match character:
            case "^":
                return Anchor("line start" if "m" in self.flags else "start")
            case "$":
                return Anchor("line end" if "m" in self.flags else "end")
            case ".":
                return Characters(chars.EVERY if "s" in self.flags else chars.complement(_NEWLINE))
            case _:
                return _character(character, fold="i" in self.flags)

    def _group(self) -> Item:
        found = _GROUP.match(self.pattern, self.at)
        if found is None or (found[0] == "(" and self.pattern.startswith("(?", self.at)):
            raise self._error("a group that is not supported")
        on, off, name = found.groups()
        if name is not None and name in self._names:
            raise self._error(f"a second group named {name}")
        number = 0
        if on is None:
            self.groups += 1
            number = self.groups
            self._names.add(name)
        self.at = found.end()
        outer = self.flags
        self.flags = (outer | set(on or "")) - set(off or "")
        self._enter()
        body = self._choice()
        self._depth -= 1
        self.flags = outer
        if not self.pattern.startswith(")", self.at):
            raise self._error("an unclosed (")
        self.at += 1
        if not number:
            return body
        self._closed.add(number)
        return Capture(number, body)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} groups inside each other")

    def _escape(self) -> Item:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following in _ANCHORS:
            self.at += 2
            return _ANCHORS[following]
        if following != "" and following in "123456789":
            return self._back_reference()
        return Characters(self._folded(self._escaped()[0]))

    def _back_reference(self) -> Item:
        """Further digits belong to it as long as there are so many groups before."""
        self.at += 2
        number = int(self.pattern[self.at - 1])
        while (digit := self.pattern[self.at : self.at + 1]) != "" and digit in "0123456789":
            if number * 10 + int(digit) > self.groups:
                break
            number = number * 10 + int(digit)
            self.at += 1
        if number not in self._closed:
            raise self._error(f"a reference to group {number}, which has not ended before it,")
        return BackReference(number, "i" in self.flags)

    def _folded(self, ranges: chars.Ranges) -> chars.Ranges:
        return chars.ignoring_case(ranges) if "i" in self.flags else ranges

    def _escaped(self) -> tuple[chars.Ranges, bool]:
        """The set that the escape at this place stands for, and whether it is one character."""
        self.at += 1
        following = self.pattern[self.at : self.at + 1]
        category = _CATEGORY.match(self.pattern, self.at)
        if category is not None:
            self.at = category.end()
            name = category[1] or category[2]
            ranges = chars.category(name)
            if ranges is None:
                raise self._error(f"the unknown category {name}")
            return (chars.complement(ranges) if following == "P" else ranges), False
        hexadecimal = _HEXADECIMAL.match(self.pattern, self.at)
        if hexadecimal is not None:
            self.at = hexadecimal.end()
            return self._code_point("".join(filter(None, hexadecimal.groups()))), True
        self.at += 1
        if following in _ESCAPES:
            return chars.one(_ESCAPES[following]), True
        several = chars.multi_character(following.lower())
        if several is not None:
            return (chars.complement(several) if following.isupper() else several), False
        if following == "" or following.isalnum() or (following.isspace() and following != " "):
            raise self._error(f"the unknown escape \\{following}")
        return chars.one(following), True

    def _code_point(self, digits: str) -> chars.Ranges:
        try:
            return chars.one(chr(int(digits, 16)))
        except ValueError as error:
            raise self._error(f"no character {digits}") from error

    def _class(self) -> chars.Ranges:
        """A bracket expression."""
        self._enter()
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        members: list[chars.Ranges] = []
        subtracted: chars.Ranges = ()
        while True:
            if self.at >= len(self.pattern):
                raise self._error("an unclosed [")
            character = self.pattern[self.at]
            if character == "]" and members:
                self.at += 1
                break
            if self.pattern.startswith("-[", self.at) and members:
                self.at += 1
                subtracted = self._class()
                if not self.pattern.startswith("]", self.at):
                    raise self._error("a subtraction that does not end its class")
                continue
            members.append(self._member(character, first=not members))
        self._depth -= 1
        # Case is ignored before the complement is taken: [^q] matches neither q nor Q.
        ranges = self._folded(chars.union(*members))
        return chars.difference(chars.complement(ranges) if negated else ranges, subtracted)

    def _member(self, character: str, *, first: bool) -> chars.Ranges:
        if character == "[" or (character == "]" and not first):
            raise self._error(f"an unescaped {character} inside a class")
        start, is_one = self._single(character)
        ahead = self.pattern[self.at : self.at + 2]
        if ahead[:1] != "-" or ahead[1:] in ("", "]", "["):
            return start
        self.at += 1
        end, is_also_one = self._single(self.pattern[self.at])
        if not is_one or not is_also_one:
            raise self._error("a range between classes")
        if end[0][0] < start[0][0]:
            raise self._error("a range whose end comes before its start")
        return ((start[0][0], end[0][0]),)

    def _single(self, character: str) -> tuple[chars.Ranges, bool]:
        if character == "\\":
            return self._escaped()
        self.at += 1
        return chars.one(character), True

    def _error(self, what: str) -> ExpressionError:
        shown = self.pattern if len(self.pattern) <= 80 else self.pattern[:80] + "…"
        return ExpressionError(f"{what} at {self.at + 1} in the regular expression {shown!r}")


def can_be_empty(item: Item) -> bool:
    """Whether an item can match the empty string; an anchor can.

    >>> can_be_empty(parse_pattern("a*|b").root), can_be_empty(parse_pattern("a?b").root)
    (True, False)
    """
    match item:
        case Characters():
            return False
        case Anchor() | BackReference():
            return True
        case Items(items):
            return all(map(can_be_empty, items))
        case Choice(branches):
            return any(map(can_be_empty, branches))
        case Capture(_, body):
            return can_be_empty(body)
        case Quantified(body, least, _, _):
            return least == 0 or can_be_empty(body)


def parts(item: Item) -> list[Item]:
    """An item and all that it is made of."""
    found: list[Item] = [item]
    for each in found:
        match each:
            case Items(several) | Choice(several):
                found += several
            case Capture(_, body) | Quantified(body, _, _, _):
                found.append(body)
            case _:
                pass
    return found
