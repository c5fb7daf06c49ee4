"""The detector that is measured, for a pattern of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import AnyDetector, KernelDetector
from graphtide.patterns.detector import make_detector as detector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.lang.tide.ast import PatternDeclaration
    from graphtide.rdf.terms import Term


def make_detector(
    pattern: PatternDeclaration,
    types: Mapping[str, int],
    encode: Callable[[Term], int] = lambda _: 0,
    *,
    tick_ms: int,
) -> AnyDetector:
    """A detector for a pattern; `types` numbers the events, `encode` the constants.

    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> make_detector(pattern, {"A": 0, "B": 1}, tick_ms=1).tokens()
    []
    """
    return detector_of(compile_pattern(pattern, types, encode, tick_ms))


def most_tokens(detector: AnyDetector) -> int:
    """How many instances have waited at once, at most; in plain Python, how many do now."""
    if isinstance(detector, KernelDetector):
        return detector.table.most
    return len(detector.tokens())
