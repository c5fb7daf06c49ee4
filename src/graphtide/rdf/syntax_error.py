"""Place and reason out of pyoxigraph's syntax errors."""

from __future__ import annotations

import re

_PLACE = re.compile(
    r"^Parser error (?:at|between) line .*?(?:columns? [0-9]+(?: and .*?[0-9]+)?): "
)


def place_and_reason(error: SyntaxError) -> tuple[int, int, str]:
    """Return line, column and reason of an error that `pyoxigraph.parse` raised.

    >>> place_and_reason(SyntaxError("bad", (None, 3, 7, None, 3, 9)))
    (3, 7, 'bad')
    """
    reason = _PLACE.sub("", error.msg)
    return error.lineno or 1, error.offset or 1, reason
