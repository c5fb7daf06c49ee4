"""Stable texts: the same for the same data in every process, whatever it was made of."""

from __future__ import annotations

from dataclasses import fields, is_dataclass


def stable_text(part: object) -> str:
    """A text that tells two pieces of data apart; sets are in order, lines do not count.

    >>> stable_text((1, frozenset(("b", "a"))))
    "(1,{'a','b'})"
    """
    if isinstance(part, tuple | list):
        return f"({','.join(map(stable_text, part))})"
    if isinstance(part, frozenset | set):
        return f"{{{','.join(sorted(map(stable_text, part)))}}}"
    if is_dataclass(part):
        named = ((f.name, getattr(part, f.name)) for f in fields(part))
        told = ",".join(f"{name}={stable_text(value)}" for name, value in named if name != "line")
        return f"{type(part).__name__}({told})"
    return repr(part)
