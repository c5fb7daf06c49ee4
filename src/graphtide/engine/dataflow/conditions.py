"""Conditions over batches: by the typed side columns where they suffice, else by the terms.

A condition made of comparisons is decided in the kernel from the kinds and numbers of ids, also
where sums, differences and products are compared. What that leaves open is evaluated on the terms
themselves, once per distinct tuple of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.algebra.expressions import Call, Const, Expression, Var
from graphtide.algebra.variables import Schema, mentioned
from graphtide.errors import ExpressionError
from graphtide.functions.evaluate import compile_expression
from graphtide.functions.values import effective_boolean
from graphtide.kernel import calculate, compare
from graphtide.kernel import values as val
from graphtide.kernel.batch import VALUES, Ints
from graphtide.limits import allowance
from graphtide.rdf.holders import MOST_CACHED, IdCache
from graphtide.rdf.terms import TripleTerm

if TYPE_CHECKING:
    from graphtide.functions.logic import Row
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


CHECKED_EVERY = 256
"""Rows that are evaluated before the time is checked."""

Columns = tuple[tuple[Var, int], ...]


COPIES: Final = 4
"""Bytes for each character of a value: those of the dictionary, and of Python's terms."""


def intern_value(terms: TermDictionary, term: Term) -> int:
    """Return the id of a value that an expression makes, and count what it takes."""
    text = str(term) if isinstance(term, TripleTerm) else term.value
    allowance().spend(COPIES * len(text))
    return terms.intern(term)


def argument_columns(expression: Expression, schema: Schema) -> Columns:
    """The variables that an expression reads, with their columns in a batch."""
    read = mentioned(expression)
    return tuple((var, VALUES + i) for i, var in enumerate(schema) if var in read)


class Memo:
    """A function of a row to integers, computed once per distinct tuple of argument ids."""

    def __init__(
        self, function: Callable[[Row], int], columns: Columns, terms: TermDictionary
    ) -> None:
        self._function = function
        self._variables = tuple(var for var, _ in columns)
        self._at = [at for _, at in columns]
        self._terms = terms
        self._known: IdCache[int] = IdCache(terms)

    def __call__(self, batch: Ints) -> Ints:
        """One result per row of the batch."""
        known = self._known.current()
        if len(batch) < 32:
            rows = map(tuple, batch[:, self._at].tolist())
            return np.array([self._one(row, known) for row in rows], np.int32)
        if not self._at:
            return np.full(len(batch), self._one((), known), np.int32)
        distinct, inverse = np.unique(batch[:, self._at], axis=0, return_inverse=True)
        rows = map(tuple, distinct.tolist())
        results = np.array([self._one(row, known) for row in rows], np.int32)
        return results[inverse.reshape(-1)]

    def _one(self, ids: tuple[int, ...], known: dict[tuple[int, ...], int]) -> int:
        found = known.get(ids)
        if found is None:
            row = {
                var: self._terms.decode(i) for var, i in zip(self._variables, ids, strict=True) if i
            }
            found = known[ids] = self._function(row)
            if len(known) % CHECKED_EVERY == 0:
                allowance().check_time()
                if len(known) >= MOST_CACHED:
                    known.clear()
        return found


Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Outcomes = Callable[[Ints], val.Kinds]

OPERATORS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}

STEPS = {"+": val.ADD, "-": val.SUBTRACT, "*": val.MULTIPLY}

_CODES = (val.FALSE, val.TRUE, val.ERROR, val.OPEN)


def _table(first: tuple[int, ...]) -> val.Kinds:
    """The outcome of every pair of outcomes: the earliest of them in the order `first`."""
    rank = {code: place for place, code in enumerate(first)}
    return np.array([[min(a, b, key=rank.__getitem__) for b in _CODES] for a in _CODES], np.int8)


AND = _table((val.FALSE, val.OPEN, val.ERROR, val.TRUE))
OR = _table((val.TRUE, val.OPEN, val.ERROR, val.FALSE))
NOT = np.array([val.TRUE, val.FALSE, val.ERROR, val.OPEN], np.int8)


class Condition:
    """A compiled condition: for a batch, which rows it is true for."""

    def __init__(self, expression: Expression, schema: Schema, terms: TermDictionary) -> None:
        self._quick = quick_outcomes(expression, schema, terms)
        self._memo = Memo(self._decide, argument_columns(expression, schema), terms)
        self._value = compile_expression(expression)
        self._constants = np.array(
            [terms.intern(each.term) for each in constants_of(expression)], np.int32
        )

    def held_ids(self) -> Iterator[Ints]:
        """The ids of its constants."""
        yield self._constants

    def __call__(self, batch: Ints) -> Mask:
        """A mask of the rows for which the condition is true."""
        if self._quick is None:
            return np.asarray(self._memo(batch) == val.TRUE)
        outcomes = self._quick(batch)
        mask: Mask = np.asarray(outcomes == val.TRUE)
        still_open = outcomes == val.OPEN
        if still_open.any():
            mask[still_open] = self._memo(batch[still_open]) == val.TRUE
        return mask

    def _decide(self, row: Row) -> int:
        try:
            return val.TRUE if effective_boolean(self._value(row)) else val.FALSE
        except ExpressionError:
            return val.ERROR


def constants_of(expression: Expression) -> Iterator[Const]:
    """The constants of an expression.

    >>> from pyoxigraph import Literal
    >>> [c.term.value for c in constants_of(Call("+", (Var("a"), Const(Literal("7")))))]
    ['7']
    """
    match expression:
        case Const():
            yield expression
        case Call(_, args):
            for arg in args:
                yield from constants_of(arg)
        case _:
            return


def quick_outcomes(
    expression: Expression, schema: Schema, terms: TermDictionary
) -> Outcomes | None:
    """A condition's outcomes from the side columns, or None if it is not made of comparisons."""
    match expression:
        case Call("&&" | "||" as name, args):
            return _junction(AND if name == "&&" else OR, args, schema, terms)
        case Call("!", (inner,)):
            of = quick_outcomes(inner, schema, terms)
            return None if of is None else lambda batch: NOT[of(batch)]
        case Call("BOUND", (Var() as var,)):
            column = _column(var, schema, terms)
            return lambda batch: (column(batch) != 0).astype(np.int8)
        case Call(name, (Var() | Const() as left, Var() | Const() as right)) if name in OPERATORS:
            return _comparison(OPERATORS[name], left, right, schema, terms)
        case Call(name, (left, right)) if name in OPERATORS:
            return _calculation(OPERATORS[name], left, right, schema, terms)
        case _:
            return None


def _junction(
    table: val.Kinds, args: tuple[Expression, ...], schema: Schema, terms: TermDictionary
) -> Outcomes | None:
    """The outcomes of `&&` or `||`, or None if an operand is not made of comparisons."""
    each: list[Outcomes] = []
    for arg in args:
        outcomes = quick_outcomes(arg, schema, terms)
        if outcomes is None:
            return None
        each.append(outcomes)
    first, *others = each

    def junction(batch: Ints) -> val.Kinds:
        found = first(batch)
        for other in others:
            found = table[found, other(batch)]
        return found

    return junction


def _comparison(
    op: int, left: Var | Const, right: Var | Const, schema: Schema, terms: TermDictionary
) -> Outcomes | None:
    if not isinstance(left, Var) and not isinstance(right, Var):
        return None
    a, b = _column(left, schema, terms), _column(right, schema, terms)
    return lambda batch: compare(op, a(batch), b(batch), terms.kinds, terms.numbers)


def _calculation(
    op: int, left: Expression, right: Expression, schema: Schema, terms: TermDictionary
) -> Outcomes | None:
    """A comparison of calculated numbers, or None if a side is calculated in another way."""
    listed = [*steps_of(left, schema, terms), *steps_of(right, schema, terms)]
    if any(step is None for step in listed):
        return None
    steps = np.array(listed, np.int32)
    return lambda batch: calculate(op, steps, batch, terms.kinds, terms.numbers)


def steps_of(
    expression: Expression, schema: Schema, terms: TermDictionary
) -> list[tuple[int, int] | None]:
    """A calculation with numbers as steps on a stack; None stands for what is no such step.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> a = Var("a")
    >>> steps_of(Call("-", (a, Call("*", (a, a)))), (a,), TermDictionary())
    [(0, 2), (0, 2), (0, 2), (4, 0), (3, 0)]
    """
    match expression:
        case Var():
            known = expression in schema
            return [(val.COLUMN, VALUES + schema.index(expression)) if known else (val.CONSTANT, 0)]
        case Const(term):
            return [(val.CONSTANT, terms.intern(term))]
        case Call("UMINUS", (arg,)):
            return [*steps_of(arg, schema, terms), (val.NEGATE, 0)]
        case Call(name, (first, *others)) if name and STEPS.keys() >= set(name):
            found = steps_of(first, schema, terms)
            for sign, other in zip(name, others, strict=True):
                found += (*steps_of(other, schema, terms), (STEPS[sign], 0))
            return found
        case _:
            return [None]


def _column(side: Var | Const, schema: Schema, terms: TermDictionary) -> Callable[[Ints], Ints]:
    """A variable's ids in a batch; a constant's one id; nothing (0) for an unknown variable."""
    if isinstance(side, Const):
        constant = np.array([terms.intern(side.term)], np.int32)
        return lambda _: constant
    if side not in schema:
        return lambda batch: np.zeros(len(batch), np.int32)
    at = VALUES + schema.index(side)
    return lambda batch: np.ascontiguousarray(batch[:, at])
