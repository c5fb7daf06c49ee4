"""Search nodes as kernel programs, one for all queries that ask the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph, TriplePattern
from graphtide.algebra.windows import WINDOW_SPACE
from graphtide.kernel.program import Check, Pattern, Program
from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from graphtide.kernel import QuadStore
    from graphtide.plan.physical import Search
    from graphtide.rdf.dictionary import TermDictionary


def to_program(node: Search, terms: TermDictionary) -> Program:
    """A search with ids for terms and numbers for variables."""
    numbers = {var: number for number, var in enumerate(node.schema)}

    def position(value: object) -> int:
        if isinstance(value, DefaultGraph):
            return 0
        if isinstance(value, Var):
            return -1 - numbers.setdefault(value, len(numbers))
        return terms.encode(value)  # type: ignore[arg-type]

    def graph(value: object) -> int:
        if isinstance(value, NamedNode) and value.value.startswith(WINDOW_SPACE):
            return terms.hidden_graph(value.value)
        return position(value)

    def pattern(triple: TriplePattern) -> Pattern:
        return (
            position(triple.subject),
            position(triple.predicate),
            position(triple.object),
            graph(triple.graph),
        )

    return Program(
        tuple(pattern(p) for p in node.patterns),
        len(node.schema),
        tuple(Check(c.negated, tuple(pattern(p) for p in c.patterns)) for c in node.checks),
    )


class SharedPrograms:
    """Installs each program once, however many queries use it."""

    def __init__(self, store: QuadStore) -> None:
        self._store = store
        self._numbers: dict[Program, int] = {}
        self._users: dict[int, int] = {}

    def acquire(self, program: Program) -> int:
        """The number of a program in the store, installing it for its first user."""
        number = self._numbers.get(program)
        if number is None:
            number = self._store.install(program)
            self._numbers[program] = number
            self._users[number] = 0
        self._users[number] += 1
        return number

    def number(self, program: Program) -> int:
        """The number of an installed program."""
        return self._numbers[program]

    def release(self, number: int) -> None:
        """One user less; the last one takes the program along."""
        self._users[number] -= 1
        if self._users[number] == 0:
            del self._users[number]
            self._numbers = {p: n for p, n in self._numbers.items() if n != number}
            self._store.remove(number)

    def __len__(self) -> int:
        return len(self._users)
