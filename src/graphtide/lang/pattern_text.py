"""PatternText: the text of a pattern, put together with just the brackets that it needs.

With Python's operators patterns are written in Python; `graphtide fmt` lays them out by it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError
from graphtide.lang.durations import parse_duration
from graphtide.rdf.term import type_of_term

if TYPE_CHECKING:
    from graphtide.rdf.term import Term

Operator = Literal["->", "OR", "AND"]
Kind = Literal["whole", "times", "time", "absent", "->", "OR", "AND"]
_OPERATORS: Final = ("->", "OR", "AND")


@dataclass(frozen=True, slots=True)
class PatternText:
    """A pattern as text; `kind` is what was done last, `parts` the operands if it is a chain.

    `a >> b` is `a -> b`, `a | b` is OR and `a & b` is AND. Python has its own precedence: `>>`
    binds before `&`, and `&` before `|`.

    >>> broken, mended = event("Broken", "?r", "?s"), event("Mended", "?r", "?s")
    >>> print((broken >> mended).times(3).within("10s"))
    (Broken(?r, ?s) -> Mended(?r, ?s)){3} WITHIN 10s
    >>> print(broken >> absent(mended).within("1h"))
    Broken(?r, ?s) -> NOT Mended(?r, ?s) WITHIN 1h
    """

    parts: tuple[str, ...]
    kind: Kind = "whole"

    def __str__(self) -> str:
        return f" {self.kind} ".join(self.parts)

    def __rshift__(self, other: PatternText) -> PatternText:
        return chain("->", self, other)

    def __or__(self, other: PatternText) -> PatternText:
        return chain("OR", self, other)

    def __and__(self, other: PatternText) -> PatternText:
        return chain("AND", self, other)

    def times(self, number: int) -> PatternText:
        """`{number}`: so many, one after the other."""
        return self.suffixed(f"{{{number}}}")

    def at_least_once(self) -> PatternText:
        """`{+}`: once or more."""
        return self.suffixed("{+}")

    def any_times(self) -> PatternText:
        """`{*}`: any number of times, also none."""
        return self.suffixed("{*}")

    def within(self, length: str | int) -> PatternText:
        """`WITHIN length`: ticks, or a duration such as "10s"."""
        return self.suffixed(f" WITHIN {_duration(length)}")

    def holds_for(self, length: str | int) -> PatternText:
        """`HOLDS FOR length`: ticks, or a duration such as "10s"."""
        return self.suffixed(f" HOLDS FOR {_duration(length)}")

    def suffixed(self, suffix: str) -> PatternText:
        """With something behind it, in brackets unless that is about all of it anyway."""
        timed = not suffix.startswith("{")
        if self.kind == "absent" and suffix.startswith(" WITHIN"):
            return PatternText((f"{self}{suffix}",), "absent")
        plain = self.kind == "whole" or (timed and self.kind in ("times", "time"))
        text = str(self) if plain else f"({self})"
        return PatternText((text + suffix,), "time" if timed else "times")


def event(name: str, *arguments: str | float | Var | Term | None) -> PatternText:
    """One event. Arguments are written as in a program; None and "_" may be anything.

    Without arguments, they are the parameters of the event.

    >>> print(event("Hot", "?s", None, ":kitchen", 5), event("Hot"))
    Hot(?s, _, :kitchen, 5) Hot
    """
    if not arguments:
        return PatternText((name,))
    return PatternText((f"{name}({', '.join(map(_argument, arguments))})",))


def absent(pattern: PatternText) -> PatternText:
    """`NOT pattern`: with `.within(…)` behind it, for so long.

    >>> print(absent(event("A") >> event("B")).within("5s"))
    NOT (A -> B) WITHIN 5s
    >>> print(absent((event("A") >> event("B")).within("5s")))
    NOT ((A -> B) WITHIN 5s)
    """
    plain = pattern.kind in ("whole", "times")
    return PatternText((f"NOT {pattern}" if plain else f"NOT ({pattern})",), "absent")


def interleaved(*patterns: PatternText) -> PatternText:
    """`ALL(p, q, …)`: all of them, at the same time.

    >>> print(interleaved(event("A") >> event("B"), event("C")))
    ALL(A -> B, C)
    """
    if len(patterns) == 1:
        return patterns[0]
    return PatternText((f"ALL({', '.join(map(str, patterns))})",))


def chain(operator: Operator, *patterns: PatternText) -> PatternText:
    """A run of one operator; where another one meets it there are brackets.

    >>> print(chain("OR", event("A") >> event("B"), event("C") | event("D")))
    (A -> B) OR C OR D
    """
    parts: list[str] = []
    for pattern in patterns:
        if pattern.kind == operator:
            parts.extend(pattern.parts)
        else:
            parts.append(f"({pattern})" if pattern.kind in _OPERATORS else str(pattern))
    return PatternText(tuple(parts), operator)


def _argument(value: str | float | Var | Term | None) -> str:
    if value is None:
        return "_"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float, Var, *type_of_term)):
        return str(value)
    raise GraphtideError(
        f"{value!r} cannot be an argument of an event",
        hint='write variables as "?x", IRIs as ":name" or "<…>", strings as \'"…"\'',
    )


def _duration(length: str | int) -> str:
    if parse_duration(str(length)) is None:
        hint = "write ticks such as 5, or a duration such as 10s, 500ms or PT2H"
        raise GraphtideError(f"{length!r} is no duration", hint=hint)
    return str(length)
