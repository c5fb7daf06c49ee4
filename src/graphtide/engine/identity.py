"""Identity: what makes two plan nodes the same node of a network, whatever their variables' names.

An operator works on columns by position, so two nodes of the same kind, with the same positions and
the same inputs, do the same work: queries that ask for `?a :p ?b` and `?x :p ?y` share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.engine.programs import to_program
from graphtide.plan.physical import (
    Closure,
    Compute,
    Constant,
    Decomposed,
    GroupBy,
    HashJoin,
    Keep,
    Merge,
    Physical,
    Search,
    Select,
    SemiJoin,
    TopK,
    Unique,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from graphtide.algebra.variables import Schema
    from graphtide.rdf.dictionary import TermDictionary


def identity(node: Physical, inputs: Sequence[int], terms: TermDictionary) -> Hashable:
    """A key that is equal for nodes that can share one operator; `inputs` are those of the node."""
    return (type(node), tuple(inputs), *_positions(node, terms))


def _positions(node: Physical, terms: TermDictionary) -> tuple[Hashable, ...]:
    match node:
        case Search():
            return (to_program(node, terms),)
        case Constant(rows):
            return (rows, len(node.schema))
        case Decomposed():
            return instance_numbers(node)
        case HashJoin(left, right, keys, loose, overlap):
            pairs = [_pairs(variables, left, right) for variables in (keys, loose, overlap)]
            return (*pairs, _pairs(node.schema, left, right))
        case SemiJoin(left, _, keys, negated):
            return (_places(keys, left.schema), negated)
        case Select(child, condition):
            return (by_position(condition, child.schema),)
        case Compute(child, _, expression):
            return (by_position(expression, child.schema),)
        case Keep(child, sources):
            return tuple(-1 if v is None else child.schema.index(v) for v in sources)
        case GroupBy(child, keys, aggregates):
            places = _places(keys, child.schema)
            called = tuple(
                (a.function, _argument(a.argument, child.schema), a.distinct, a.separator)
                for a in aggregates
            )
            return (places, called)
        case TopK(child, keys, distinct, offset, limit, per):
            columns = _places(node.schema, child.schema)
            order = tuple((_place(k.var, child.schema), k.descending) for k in keys)
            return (columns, order, distinct, offset, limit, _places(per, node.schema))
        case Closure(_, source):
            return (source,)
        case Merge() | Unique():
            return ()
        case _:
            assert_never(node)


def instance_numbers(
    node: Decomposed,
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """The columns of each input, and the order of instantiation, as numbers of output columns."""
    patterns = tuple(_places(each.schema, node.schema) for each in node.inputs)
    order = tuple(_places(each.variables, node.schema) for each in node.order)
    return patterns, order


def _pairs(variables: Schema, left: Physical, right: Physical) -> tuple[tuple[int, int], ...]:
    return tuple((_place(v, left.schema), _place(v, right.schema)) for v in variables)


def _places(variables: Schema, schema: Schema) -> tuple[int, ...]:
    return tuple(_place(v, schema) for v in variables)


def _argument(var: Var | None, schema: Schema) -> int | None:
    return None if var is None else _place(var, schema)


def _place(var: Var, schema: Schema) -> int:
    return schema.index(var) if var in schema else -1


def by_position(expression: Expression, schema: Schema) -> Expression:
    """An expression with its variables named by their columns.

    >>> by_position(Call("<", (Var("b"), Var("nowhere"))), (Var("a"), Var("b")))
    Call(name='<', args=(Var(name='1'), Var(name='-1')))
    """
    match expression:
        case Var():
            return Var(str(_place(expression, schema)))
        case Call(name, args):
            return Call(name, tuple(by_position(arg, schema) for arg in args))
        case Const() | Exists():  # a plan has no EXISTS left
            return expression
        case _:
            assert_never(expression)
