"""Trees of any depth: frozen dataclasses that contain each other, handled without recursion.

A group with ten thousand OPTIONALs is a tree with ten thousand levels; Python's stack has room for
a thousand calls. So whatever follows the inputs of a node does it in a loop: hashes, equality and
texts (`Deep`), and the passes over plans and algebra (`bottom_up`, `rebuilt`, `finish`). Only the
nesting of brackets in a query is recursive, and the parser limits that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T")

DERIVED = "certain"
"""A field that follows from the others: it may be long, and is of no use in a hash."""


class Deep:
    """The base of nodes with inputs: dataclasses that are frozen, with `eq` and `repr` False."""

    __slots__ = ("_hash",)

    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # plans share sub-plans: each is hashed once
            below = all(map(_is_hashed, inputs(self)))  # mostly so: plans grow from their leaves
            for node in (self,) if below else bottom_up(self, known=_is_hashed):
                names = (name for name in _fields(node).all if name != DERIVED)
                own = hash((type(node), *(getattr(node, name) for name in names)))
                object.__setattr__(node, "_hash", own)
            return self._hash

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[Any, Any]] = [(self, other)]
        compared: set[tuple[int, int]] = set()
        while pairs:
            one, two = pairs.pop()
            if one is two or (id(one), id(two)) in compared:
                continue
            if type(one) is not type(two) or hash(one) != hash(two):
                return False
            compared.add((id(one), id(two)))
            one_inputs, two_inputs = inputs(one), inputs(two)
            if len(one_inputs) != len(two_inputs):
                return False
            pairs += zip(one_inputs, two_inputs, strict=True)
            if any(getattr(one, name) != getattr(two, name) for name in _fields(one).own):
                return False
        return True

    def __repr__(self) -> str:
        texts: list[str] = []
        rest: list[object] = [self]
        while rest:
            part = rest.pop()
            if isinstance(part, Deep):
                rest += reversed(_written(part))
            else:
                texts.append(str(part))
        return "".join(texts)


def _is_hashed(node: object) -> bool:
    """Whether a node knows its hash, or has no place for it: a leaf is hashed with its reader."""
    return not isinstance(node, Deep) or hasattr(node, "_hash")


def _written(node: Deep) -> list[object]:
    """The text of a node in pieces, with its inputs as they are."""
    pieces: list[object] = [f"{type(node).__name__}("]
    for number, name in enumerate(_fields(node).all):
        value = getattr(node, name)
        pieces += (", " if number else "", f"{name}=", value if name in INPUTS else repr(value))
    return [*pieces, ")"]


INPUTS = ("left", "right", "child")
"""The fields that hold an input each."""

MANY = "inputs"
"""The field that holds a tuple of inputs."""


class Fields(NamedTuple):
    """The names of the fields of a kind of node."""

    all: tuple[str, ...]
    own: tuple[str, ...]  # those that hold no inputs
    single: tuple[str, ...]  # those that hold an input each
    inputs: Callable[[Any], tuple[Any, ...]]  # the inputs of a node of this kind


_FIELDS: dict[type, Fields] = {}


def _fields(node: object) -> Fields:
    kind = type(node)
    found = _FIELDS.get(kind)
    if found is None:
        names = tuple(each.name for each in fields(cast("Any", node)))
        own = tuple(name for name in names if name not in INPUTS and name != MANY)
        single = tuple(name for name in INPUTS if name in names)
        found = Fields(names, own, single, _getter(single, many=MANY in names))
        _FIELDS[kind] = found
    return found


def _getter(single: tuple[str, ...], *, many: bool) -> Callable[[Any], tuple[Any, ...]]:
    """How to get the inputs of a kind of node: passes over long queries do little else."""
    match single:
        case ():
            return attrgetter(MANY) if many else lambda _: ()
        case (name,):
            get = attrgetter(name)
            return lambda node: (get(node),)
        case _:
            return attrgetter(*single)


def inputs(node: Any) -> tuple[Any, ...]:  # noqa: ANN401 - algebra and plans alike
    """The inputs of a node, left before right."""
    return _fields(node).inputs(node)


def bottom_up(root: T, *, known: Callable[[T], bool] = lambda _: False) -> list[T]:
    """A node and all nodes below it, inputs first, each object once; without those `known`."""
    order: list[T] = []
    entered: set[int] = set()
    done: set[int] = set()
    rest = [root]
    while rest:
        node = rest[-1]
        at = id(node)
        if at not in entered:
            entered.add(at)
            rest += [n for n in reversed(inputs(node)) if id(n) not in done and not known(n)]
            continue
        rest.pop()
        if at not in done:
            done.add(at)
            order.append(node)
    return order


def rebuilt(root: T, change: Callable[[T], T]) -> T:
    """A tree with every node changed, after its inputs; what is shared stays shared."""
    new: dict[int, T] = {}
    for node in bottom_up(root):
        new[id(node)] = change(_over(node, new))
    return new[id(root)]


def _over(node: T, new: dict[int, T]) -> T:
    """The same node over other inputs; a leaf, or a node with the same inputs, as it is."""
    old = {name: getattr(node, name) for name in _fields(node).single}
    changed = {name: new[id(each)] for name, each in old.items() if new[id(each)] is not each}
    return cast("T", replace(cast("Any", node), **changed)) if changed else node


def balanced(combine: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Combine parts in their order by an associative operator, in a tree as flat as possible.

    >>> balanced(lambda a, b: f"({a}{b})", "abcde")
    '(((ab)c)(de))'
    """
    if len(parts) == 1:
        return parts[0]
    half = (len(parts) + 1) // 2
    return combine(balanced(combine, parts[:half]), balanced(combine, parts[half:]))


Steps = Generator["Steps[Any]", Any, T]
"""A recursive function as a generator: it yields its calls, and gets their results."""


def finish(steps: Steps[T]) -> T:
    """Run a recursive generator; the calls that wait are in a list, not on Python's stack.

    >>> def depth(levels: int) -> Steps[int]:
    ...     return 1 + (yield depth(levels - 1)) if levels else 0
    >>> finish(depth(5000))
    5000
    """
    waiting: list[Steps[Any]] = [steps]
    result: Any = None
    while waiting:
        try:
            waiting.append(waiting[-1].send(result))
            result = None
        except StopIteration as stop:
            waiting.pop()
            result = stop.value
    return cast("T", result)
