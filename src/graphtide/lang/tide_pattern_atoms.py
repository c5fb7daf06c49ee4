"""The events of a PATTERN: atoms, and other patterns, whose bodies are put in their place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from graphtide.lang.event_algebra import Atom
from graphtide.lang.pattern_facts import MOST_POSITIONS, parts_of, walk
from graphtide.lang.pattern_rebuild import inlined
from graphtide.lang.tide_events import report_arity, token_of, tokens_of
from graphtide.lang.tide_pieces import gapped_arguments_of

if TYPE_CHECKING:
    from lark import Token, Tree

    from graphtide.lang.event_algebra import EventPattern, PatternDeclaration
    from graphtide.lang.pattern_rebuild import Argument
    from graphtide.lang.tide_names import Names
    from graphtide.lang.tide_source import Source

DEEPEST: Final = 100
TOO_DEEP: Final = f"this pattern is nested more than {DEEPEST} deep"
TOO_DEEP_HINT: Final = "write it with fewer brackets, and fewer patterns inside of patterns"


class Places:
    """Where each part of an expression is written; nodes are told apart by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[EventPattern, int, int]] = {}

    def add(self, node: EventPattern, offset: int) -> int:
        """Take in a node, which is kept alive from now on; how deep it is."""
        depth = 1 + max((self._known[id(part)][2] for part in parts_of(node)), default=0)
        self._known[id(node)] = node, offset, depth
        return depth

    def of(self, node: EventPattern) -> int:
        """The offset of a node."""
        return self._known[id(node)][1]


class AtomReader:
    """Reads the events of one expression."""

    def __init__(self, source: Source, names: Names, places: Places) -> None:
        self._source = source
        self._names = names
        self._places = places
        self._uses: Counter[str] = Counter()
        self._events = 0

    def read(self, tree: Tree[Token]) -> EventPattern | None:
        """`Type(…)`; without arguments they are the parameters. None, and a mistake noted."""
        name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
        type_ = self._names.event(self._source, name)
        arguments: tuple[Argument, ...] | None = type_.parameters if type_ else None
        if written is not None:
            arguments = gapped_arguments_of(self._source, written)
        if type_ is None or arguments is None:
            return None
        if len(arguments) != len(type_.parameters):
            report_arity(self._source, written or name, type_, len(arguments))
            return None
        pattern = self._names.patterns.get(type_.name)
        if pattern is not None:
            return self._inlined(name, pattern, arguments)
        self._events += 1
        atom = Atom(type_.name, arguments)
        self._places.add(atom, name.start_pos or 0)
        return atom

    def _inlined(
        self, name: Token, pattern: PatternDeclaration, arguments: tuple[Argument, ...]
    ) -> EventPattern | None:
        self._events += sum(isinstance(part, Atom) for part in walk(pattern.body))
        if self._events > MOST_POSITIONS:
            hint = "use fewer patterns inside of patterns"
            message = f"with {name} this pattern has more than {MOST_POSITIONS:,} positions"
            self._source.report(name, message, hint)
            return None
        self._uses[pattern.name] += 1
        number = self._uses[pattern.name]
        space = pattern.name if number == 1 else f"{pattern.name}.{number}"
        body = inlined(pattern, arguments, space, lambda node: self._placed(node, name))
        if self._places.add(body, name.start_pos or 0) <= DEEPEST:
            return body
        self._source.report(name, TOO_DEEP, TOO_DEEP_HINT)
        return None

    def _placed(self, node: EventPattern, name: Token) -> EventPattern:
        self._places.add(node, name.start_pos or 0)
        return node
