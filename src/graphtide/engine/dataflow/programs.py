"""Plan nodes by position: searches as kernel programs, and which nodes queries can share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, assert_never

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.nodes import Aggregate, DefaultGraph, TriplePattern
from graphtide.algebra.traverse import replaced
from graphtide.algebra.variables import merge
from graphtide.algebra.windows import WINDOW_SPACE
from graphtide.kernel.search.program import (
    Columns,
    ExistsCheck,
    Pattern,
    SearchProgram,
    needed_indexes,
)
from graphtide.plan import physical as phys

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from graphtide.algebra.variables import Schema
    from graphtide.kernel import QuadStore
    from graphtide.rdf.dictionary import TermDictionary


def to_program(node: phys.Search, terms: TermDictionary) -> SearchProgram:
    """A search with ids for terms and indexes for variables."""
    numbers = {var: number for number, var in enumerate(node.schema)}

    def position(value: object) -> int:
        if isinstance(value, DefaultGraph):
            return 0
        if isinstance(value, Var):
            return -1 - numbers.setdefault(value, len(numbers))
        return terms.intern(value)  # type: ignore[arg-type]

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

    return SearchProgram(
        tuple(pattern(p) for p in node.patterns),
        len(node.schema),
        tuple(ExistsCheck(c.negated, tuple(pattern(p) for p in c.patterns)) for c in node.checks),
    )


class SharedPrograms:
    """Installs each program once, however many queries use it.

    An interrupt may leave a program in the store that nobody finds: its rows are not read. One that
    is found is whole.
    """

    def __init__(self, store: QuadStore) -> None:
        self._store = store
        self.version = 0
        self._numbers: dict[SearchProgram, int] = {}
        self._installed: dict[int, SearchProgram] = {}
        self._users: dict[int, int] = {}
        self._indexes: dict[Columns, Counter[int]] = {}  # programs that need one, by predicate

    def acquire(self, program: SearchProgram) -> int:
        """The number of a program in the store, installing it for its first user."""
        number = self._numbers.get(program)
        if number is None:
            number = self._store.install(program)
            self.version += 1
            self._installed[number], self._users[number] = program, 0
            _count_indexes(program, self._indexes, 1)
            self._numbers[program] = number
        self._users[number] += 1
        return number

    def number(self, program: SearchProgram) -> int:
        """The number of an installed program."""
        return self._numbers[program]

    def release(self, number: int, *, for_now: bool = False) -> None:
        """One user less; without users the program is removed from the store."""
        self._users[number] -= 1
        if self._users[number] == 0:
            program = self._installed[number]
            del self._numbers[program]
            del self._users[number], self._installed[number]
            _count_indexes(program, self._indexes, -1)
            self._store.remove(number, for_now=for_now)
            self.version += 1

    def indexes(self, without: Collection[int] = ()) -> Mapping[Columns, Counter[int]]:
        """The columns of each index and the predicates in it, also if some had one user less."""
        own = [self._installed[number] for number in without if self._users[number] == 1]
        if not own:
            return self._indexes
        left = {columns: counts.copy() for columns, counts in self._indexes.items()}
        for program in own:
            _count_indexes(program, left, -1)
        return left

    def patterns(self) -> Iterator[Pattern]:
        """The patterns of all programs; `version` changes when they do."""
        return (pattern for program in self._numbers for pattern in program.all_patterns())

    def __len__(self) -> int:
        return len(self._users)


def _count_indexes(
    program: SearchProgram, indexes: dict[Columns, Counter[int]], diff: Literal[1, -1]
) -> None:
    """Count a program, or no longer, for each index that it needs; -1 is every predicate."""
    for pattern, wanted in needed_indexes(program).items():
        predicate = max(pattern[1], -1)
        for columns in wanted:
            counts = indexes.setdefault(columns, Counter())
            counts[predicate] += diff
            if not counts[predicate]:
                del counts[predicate]


# --- equal nodes ---


def identity(node: phys.Physical, inputs: Sequence[int], terms: TermDictionary) -> Hashable:
    """A key that is equal for nodes that can share one operator, given the ids of their inputs.

    An operator works on columns by position, so two nodes of one kind with the same positions and
    inputs do the same work: queries with `?a :p ?b` and `?x :p ?y` share it.
    """
    return (type(node), tuple(inputs), *_positions(node, terms))


def _positions(node: phys.Physical, terms: TermDictionary) -> tuple[Hashable, ...]:
    match node:
        case phys.Search():
            return (to_program(node, terms),)
        case phys.Constant(rows):
            return (rows, len(node.schema))
        case phys.Decomposed():
            return instance_numbers(node)
        case phys.HashJoin(left, right, keys, loose, overlap):
            pairs = [_pairs(variables, left, right) for variables in (keys, loose, overlap)]
            return (*pairs, _pairs(node.schema, left, right))
        case phys.SemiJoin(left, _, keys, negated):
            return (_columns(keys, left.schema), negated)
        case phys.RangeJoin(left, right, keys, value, operator, bound):
            compared = _column(value, left.schema), operator, _column(bound, right.schema)
            return (_pairs(keys, left, right), compared)
        case phys.Select(child, condition):
            return (by_position(condition, _numbers(child.schema)),)
        case phys.Compute(child, computed):
            numbers = _numbers(child.schema)
            found: list[Hashable] = []
            for var, expression in computed:
                found.append(by_position(expression, numbers))
                numbers[var] = len(numbers)
            return tuple(found)
        case phys.Keep(child, sources):
            numbers = _numbers(child.schema)
            return tuple(-1 if v is None else numbers[v] for v in sources)
        case phys.GroupBy(child, keys, aggregates):
            columns = _columns(keys, child.schema)
            return (columns, _called(aggregates, child.schema))
        case phys.Counting(parts, parents, keys, aggregates, always):
            every = merge(*(part.schema for part in parts))
            read = tuple(_columns(part.schema, every) for part in parts)
            sure = tuple(frozenset(_columns(tuple(part.certain), every)) for part in parts)
            return (
                (read, sure, parents, always),
                _columns(keys, every),
                _called(aggregates, every),
            )
        case phys.TopK(child, keys, distinct, offset, limit, per):
            columns = _columns(node.schema, child.schema)
            order = tuple((_column(k.var, child.schema), k.descending) for k in keys)
            return (columns, order, distinct, offset, limit, _columns(per, node.schema))
        case phys.Merge() | phys.Unique() | phys.Closure():
            return ()
        case _:
            assert_never(node)


def instance_numbers(
    node: phys.Decomposed,
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """The columns of each input, and the order of instantiation, as numbers of output columns."""
    patterns = tuple(_columns(each.schema, node.schema) for each in node.inputs)
    order = tuple(_columns(each.variables, node.schema) for each in node.order)
    return patterns, order


def _pairs(
    variables: Schema, left: phys.Physical, right: phys.Physical
) -> tuple[tuple[int, int], ...]:
    return tuple(
        zip(_columns(variables, left.schema), _columns(variables, right.schema), strict=True)
    )


def _columns(variables: Schema, schema: Schema) -> tuple[int, ...]:
    numbers = _numbers(schema)
    return tuple(numbers.get(v, -1) for v in variables)


def _numbers(schema: Schema) -> dict[Var, int]:
    return {v: number for number, v in enumerate(schema)}


def _called(aggregates: Sequence[Aggregate], schema: Schema) -> tuple[Hashable, ...]:
    return tuple(
        (a.function, _argument(a.argument, schema), a.distinct, a.separator) for a in aggregates
    )


def _argument(var: Var | None, schema: Schema) -> int | None:
    return None if var is None else _column(var, schema)


def _column(var: Var, schema: Schema) -> int:
    return schema.index(var) if var in schema else -1


def by_position(expression: Expression, numbers: Mapping[Var, int]) -> Expression:
    """An expression with its variables named by their columns.

    >>> from graphtide.algebra.expressions import Call
    >>> by_position(Call("<", (Var("b"), Var("nowhere"))), {Var("b"): 1})
    Call(name='<', args=(Var(name='1'), Var(name='-1')))
    """
    return replaced(
        expression,
        lambda part: Var(str(numbers.get(part, -1))) if isinstance(part, Var) else None,
    )
