"""Patterns without back references, matched by RE2 in time linear in the text."""

from __future__ import annotations

from typing import Final, assert_never

import re2

from graphtide.functions.regex import syntax

MAX_MEMORY: Final = 64 << 20
"""Bytes for the automata of one pattern."""

_ANCHORS: Final = {
    "start": r"\A",
    "end": r"\z",
    "line start": "(?m:^)",
    "line end": "(?m:$)",
    "boundary": r"\b",
    "no boundary": r"\B",
}


def compile_linear(root: syntax.Item, *, groups: bool) -> re2._Regexp | None:
    """A pattern for RE2, or None if that does not support it, or would need too much memory."""
    if any(isinstance(part, syntax.BackReference) for part in syntax.parts(root)):
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = not groups
    try:
        return re2.compile(to_re2(root).encode(), options)
    except re2.error:
        return None


def to_re2(item: syntax.Item) -> str:
    r"""An item in the syntax of RE2.

    >>> to_re2(syntax.parse_pattern("^[ab]+(x|)").root)
    '\\A(?:[\\x{61}-\\x{62}]){1,}((?:\\x{78}|))'
    """
    match item:
        case syntax.Characters(ranges):
            return _ranges(ranges)
        case syntax.Anchor(kind):
            return _ANCHORS[kind]
        case syntax.Items(items):
            return "".join(map(to_re2, items))
        case syntax.Choice(branches):
            return f"(?:{'|'.join(map(to_re2, branches))})"
        case syntax.Capture(_, body):
            return f"({to_re2(body)})"
        case syntax.Quantified(body, least, most, lazy):
            count = f"{least}" if most == least else f"{least},{'' if most is None else most}"
            return f"(?:{to_re2(body)}){{{count}}}{'?' if lazy else ''}"
        case syntax.BackReference():
            raise AssertionError(item)
        case _:
            assert_never(item)


def _ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    if not ranges:
        return r"[^\x{0}-\x{10ffff}]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f"\\x{{{ranges[0][0]:x}}}"
    pairs = (f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)
    return f"[{''.join(pairs)}]"
