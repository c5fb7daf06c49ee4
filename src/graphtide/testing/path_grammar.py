"""Random property paths, and edges on which they lead somewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from graphtide.testing.expression_grammar import term_text
from graphtide.testing.pools import PREDICATES

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINKS: Final = tuple(term_text(term) for term in PREDICATES)
_SHAPES: Final = (*("closure",) * 4, "sequence", "sequence", "alternative", "inverse", "negated")


@dataclass(frozen=True, slots=True)
class RandomPath:
    """A path's text in brackets, and the predicates that it follows."""

    text: str
    links: tuple[str, ...]


class PathGrammar:
    """Draws paths of a few steps."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def path(self, depth: int = 2) -> RandomPath:
        """A path that is more than a predicate."""
        match self._pick(_SHAPES):
            case "closure":
                inner = self._part(depth - 1)
                return RandomPath(f"{inner.text}{self._pick('+++**?')}", inner.links)
            case "sequence":
                return self._both("/", depth)
            case "alternative":
                return self._both("|", depth)
            case "inverse":
                inner = self._part(depth - 1)
                return RandomPath(f"^{inner.text}", inner.links)
            case _:
                return self._negated()

    def _both(self, sign: str, depth: int) -> RandomPath:
        first, second = self._part(depth - 1), self._part(depth - 1)
        return RandomPath(f"({first.text}{sign}{second.text})", (*first.links, *second.links))

    def _negated(self) -> RandomPath:
        names = self._draw(st.lists(st.sampled_from(_LINKS), min_size=1, max_size=2, unique=True))
        signs = [self._pick(("", "", "^")) for _ in names]
        inside = "|".join(sign + name for sign, name in zip(signs, names, strict=True))
        return RandomPath(f"!({inside})", tuple(link for link in _LINKS if link not in names))

    def _part(self, depth: int) -> RandomPath:
        if depth <= 0 or self._draw(st.booleans()):
            link = self._pick(_LINKS)
            return RandomPath(link, (link,))
        inner = self.path(depth)
        return RandomPath(f"({inner.text})", inner.links)

    def _pick(self, options: Sequence[str]) -> str:
        return self._draw(st.sampled_from(options))
