"""Patterns matched by backtracking, step by step, so that the steps can be limited.

For what a linear matcher does not know: back references, and what a group captures in a loop whose
body can be empty. A pattern is compiled to a list of instructions; a stack has the places to go
back to, and the values to restore on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, assert_never

from graphtide.errors import ExpressionError
from graphtide.functions.regex import syntax
from graphtide.functions.regex.characters import Ranges, contains, is_word, same_but_for_case
from graphtide.limits import active

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_INSTRUCTIONS: Final = 100_000
"""Of one program; repetitions with a number are written out."""

CHARACTER, PLACE, SPLIT, JUMP, SAVE, REPEAT, AGAIN, DONE = range(8)

Spans = list[int]
"""Where each group starts and ends, from the whole match (0) on; -1 for a group without match."""


@dataclass(slots=True)
class CharacterSet:
    """A set of characters that remembers what it was asked."""

    ranges: Ranges
    known: dict[str, bool] = field(default_factory=dict)

    def __contains__(self, character: str) -> bool:
        found = self.known.get(character)
        if found is None:
            found = self.known[character] = contains(self.ranges, ord(character))
        return found


Instruction = tuple[int, Any, int]
"""What to do, with what, and where to go on."""


class BacktrackingProgram:
    r"""A compiled pattern.

    >>> parsed = syntax.parse_pattern("(.)x*?\\1")
    >>> [spans[:2] for spans in BacktrackingProgram(parsed).finditer("abxxbcc")]
    [[1, 5], [5, 7]]
    """

    def __init__(self, parsed: syntax.ParsedPattern) -> None:
        self._code: list[Instruction] = []
        self._slots = 2 * (parsed.groups + 1)
        self._spans = self._slots
        self._item(parsed.root)
        self._add(DONE, None)

    def _add(self, code: int, what: object, target: int = -1) -> int:
        if len(self._code) >= MAX_INSTRUCTIONS:
            raise ExpressionError("the regular expression is too large")
        self._code.append((code, what, target))
        return len(self._code) - 1

    def _item(self, item: syntax.Item) -> None:
        match item:
            case syntax.Characters(ranges):
                self._add(CHARACTER, CharacterSet(ranges))
            case syntax.Anchor() | syntax.BackReference():
                self._add(PLACE, item)
            case syntax.Items(items):
                for each in items:
                    self._item(each)
            case syntax.Choice(branches):
                self._choice(branches)
            case syntax.Capture(number, body):
                self._add(SAVE, 2 * number)
                self._item(body)
                self._add(SAVE, 2 * number + 1)
            case syntax.Quantified():
                self._repeat(item)
            case _:
                assert_never(item)

    def _choice(self, branches: tuple[syntax.Item, ...]) -> None:
        ends = []
        for branch in branches[:-1]:
            split = self._add(SPLIT, True)
            self._item(branch)
            ends.append(self._add(JUMP, None))
            self._target(split)
        self._item(branches[-1])
        for end in ends:
            self._target(end)

    def _repeat(self, item: syntax.Quantified) -> None:
        for _ in range(item.least):
            self._item(item.body)
        if item.most is None:
            self._loop(item)
            return
        splits = []
        for _ in range(item.most - item.least):
            splits.append(self._add(SPLIT, not item.lazy))
            self._item(item.body)
        for split in splits:
            self._target(split)

    def _loop(self, item: syntax.Quantified) -> None:
        """A loop is left after an iteration that matched nothing: the next would not either."""
        slot = self._slots
        self._slots += 1
        split = self._add(SPLIT, not item.lazy)
        self._add(REPEAT, slot)
        self._item(item.body)
        self._add(AGAIN, slot, split)
        self._target(split)

    def _target(self, at: int) -> None:
        code, what, _ = self._code[at]
        self._code[at] = code, what, len(self._code)

    def finditer(self, text: str) -> Iterator[Spans]:
        """The matches from left to right; an error of the expression after too many steps."""
        allowed = active().regex_steps
        left = [float("inf") if allowed is None else allowed]
        at = 0
        while at <= len(text):
            spans = self._match(text, at, left)
            if spans is None:
                at += 1
                continue
            yield spans
            at = spans[1] if spans[1] > spans[0] else at + 1

    def _match(self, text: str, start: int, left: list[float]) -> Spans | None:
        """The match that starts at a place, if there is one."""
        slots = [-1] * self._slots
        slots[0] = start
        stack: list[tuple[int, int, int]] = []  # a place to go back to, or -1, a slot and its value
        program, end = self._code, len(text)
        pc, at = 0, start
        steps = left[0]
        while True:
            steps -= 1
            if steps < 0:
                limits = active()
                raise limits.no_value("regex_steps", "a regular expression takes too many steps")
            code, what, target = program[pc]
            forward = True
            if code == CHARACTER:
                forward = at < end and text[at] in what
                at += forward
            elif code == SPLIT:
                stack.append((target if what else pc + 1, at, 0))
                if not what:
                    pc = target
                    continue
            elif code == JUMP:
                pc = target
                continue
            elif code in (SAVE, REPEAT):
                stack.append((-1, what, slots[what]))
                slots[what] = at
            elif code == AGAIN:
                if slots[what] != at:
                    pc = target
                    continue
            elif code == PLACE:
                length = _length_here(what, text, at, slots)
                forward = length >= 0
                at += max(length, 0)
            else:
                left[0] = steps
                return [start, at, *slots[2 : self._spans]]
            if forward:
                pc += 1
                continue
            while stack and stack[-1][0] < 0:
                _, slot, value = stack.pop()
                slots[slot] = value
            if not stack:
                left[0] = steps
                return None
            pc, at, _ = stack.pop()


def _length_here(
    item: syntax.Anchor | syntax.BackReference, text: str, at: int, slots: list[int]
) -> int:
    """How many characters an anchor (0) or a back reference matches at a place; -1 if it fails."""
    if isinstance(item, syntax.Anchor):
        return 0 if _is_at(item.kind, text, at) else -1
    begin, stop = slots[2 * item.number], slots[2 * item.number + 1]
    if begin < 0 or stop < begin:
        return 0
    captured = text[begin:stop]
    here = text[at : at + len(captured)]
    same = captured == here or (item.ignore_case and same_but_for_case(captured, here))
    return len(captured) if same else -1


def _is_at(kind: str, text: str, at: int) -> bool:
    match kind:
        case "start":
            return at == 0
        case "end":
            return at == len(text)
        case "line start":
            return at == 0 or text[at - 1] == "\n"
        case "line end":
            return at == len(text) or text[at] == "\n"
        case _:
            before = at > 0 and is_word(text[at - 1])
            after = at < len(text) and is_word(text[at])
            return (before != after) == (kind == "boundary")
