"""The expression of a PATTERN: from its tree to the event algebra, other patterns put in place."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from graphtide.lang.durations import Duration, parse_duration
from graphtide.lang.event_algebra import (
    Both,
    Either,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    Repeat,
    Within,
)
from graphtide.lang.pattern_rebuild import Chain, chained
from graphtide.lang.tide_events import tokens_of
from graphtide.lang.tide_pattern_atoms import (
    DEEPEST,
    TOO_DEEP,
    TOO_DEEP_HINT,
    AtomReader,
    Places,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.lang.event_algebra import EventPattern
    from graphtide.lang.tide_names import Names
    from graphtide.lang.tide_source import Source

_CHAINS: Final[dict[str, type[Chain]]] = {"ARROW": Follows, "OR": Either, "AND": Both}


class PatternReader:
    """Reads one expression; mistakes go to the source, and None is what could not be read."""

    def __init__(self, source: Source, names: Names) -> None:
        self._source = source
        self.places = Places()
        self._atoms = AtomReader(source, names, self.places)

    def read(self, tree: Tree[Token], depth: int = 0) -> EventPattern | None:
        """What a tree means that has so many brackets around it."""
        match str(tree.data):
            case "chain":
                return self._chain(tree, depth)
            case "group" | "all" if depth == DEEPEST:
                token = tokens_of(tree, "OPEN")[0]
                self._source.report(token, TOO_DEEP, TOO_DEEP_HINT)
                return None
            case "group":
                return self.read(_trees(tree)[0], depth + 1)
            case "all":
                return self._all(tree, depth + 1)
            case "atom":
                return self._atoms.read(tree)
            case "suffixed":
                whole, *suffixes = _trees(tree)
                return self._suffixed(self.read(whole, depth), suffixes)
            case _:
                return self._absent(tree, depth)

    def _made(self, node: EventPattern, place: int) -> EventPattern | None:
        """A node whose place is known from now on; None if it has too many others inside."""
        if self.places.add(node, place) <= DEEPEST:
            return node
        self._source.report_at(place, TOO_DEEP, TOO_DEEP_HINT)
        return None

    def _chain(self, tree: Tree[Token], depth: int) -> EventPattern | None:
        """A chain, from the left: where the operator changes, what came so far is one part."""
        read = [self.read(part, depth) for part in _trees(tree)]
        parts = [part for part in read if part is not None]
        if len(parts) < len(read):
            return None
        kinds = [_CHAINS[t.type] for t in tree.children if isinstance(t, Token)]
        whole: EventPattern | None = parts[0]
        place = self.places.of(parts[0])
        for kind, run in groupby(zip(kinds, parts[1:], strict=True), key=itemgetter(0)):
            if whole is not None:
                whole = self._made(chained(kind, [whole, *(part for _, part in run)]), place)
        return whole

    def _all(self, tree: Tree[Token], depth: int) -> EventPattern | None:
        read = [self.read(part, depth) for part in _trees(tree)]
        parts = tuple(part for part in read if part is not None)
        if len(parts) < len(read):
            return None
        if len(parts) == 1:
            return parts[0]
        return self._made(Interleaved(parts), _start(tokens_of(tree, "ALL")[0]))

    def _absent(self, tree: Tree[Token], depth: int) -> EventPattern | None:
        """`NOT p …`: what is written behind p belongs to p, up to the first WITHIN."""
        denials = tokens_of(tree, "NOT")
        whole, *suffixes = _trees(tree)
        part = self.read(whole, depth)
        ends = [place for place, suffix in enumerate(suffixes) if suffix.data == "within"]
        end = ends[0] if ends else len(suffixes)
        part = self._suffixed(part, suffixes[:end])
        for token in reversed(denials):
            if part is not None:
                part = self._made(Not(part), _start(token))
        return self._suffixed(part, suffixes[end:])

    def _suffixed(
        self, part: EventPattern | None, suffixes: Sequence[Tree[Token]]
    ) -> EventPattern | None:
        for suffix in suffixes:
            node = self._one_suffix(part, suffix)
            token = suffix.children[0]
            assert isinstance(token, Token)  # noqa: S101 - the grammar says so
            part = self._made(node, _start(token)) if node is not None else None
        return part

    def _one_suffix(self, part: EventPattern | None, suffix: Tree[Token]) -> EventPattern | None:
        written = suffix.children[-1]
        assert isinstance(written, Token)  # noqa: S101 - the grammar says so
        if suffix.data == "times":
            bounds = self._bounds(written)
            return Repeat(part, *bounds) if part is not None and bounds is not None else None
        length = self._duration(written)
        if part is None or length is None:
            return None
        return Within(part, length) if suffix.data == "within" else HoldsFor(part, length)

    def _bounds(self, token: Token) -> tuple[int, int | None] | None:
        """What `{n}`, `{+}` or `{*}` says: at least, at most."""
        written = token[1:-1].strip()
        if written in ("+", "*"):
            return (1 if written == "+" else 0), None
        if not (written.isascii() and written.isdecimal()) or len(written) > 9:
            hint = "write {3} for three times, {+} for once or more, {*} for any number of times"
            self._source.report(token, f"expected how often, found '{token}'", hint)
            return None
        return int(written), int(written)

    def _duration(self, token: Token) -> Duration | None:
        length = parse_duration(token)
        if length is None:
            hint = "write ticks such as 5, or a duration such as 10s, 500ms or PT2H"
            self._source.report(token, f"expected a duration, found '{token}'", hint)
        return length


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [part for part in tree.children if isinstance(part, Tree)]


def _start(token: Token) -> int:
    return token.start_pos or 0
