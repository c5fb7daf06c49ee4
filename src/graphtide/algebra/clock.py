"""NOW() in standing queries: comparisons of a value with the graph's clock, in conditions.

A value is compared with `NOW()`, or with `NOW()` plus or minus a constant dayTimeDuration: such a
comparison turns at times that the value tells. Any other use of NOW() would change at every tick.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal

from graphtide.algebra.expressions import Call, Const, Expression
from graphtide.algebra.nodes import Filter, LeftJoin
from graphtide.algebra.traverse import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.nodes import Node

NOW: Final = "NOW"
_COMPARED: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))
_DURATION: Final = "http://www.w3.org/2001/XMLSchema#dayTimeDuration"


@lru_cache(maxsize=1024)
def reads_clock(part: Node | Expression) -> bool:
    """Whether NOW() occurs in a node or expression."""
    return any(isinstance(each, Call) and each.name == NOW for each in walk(part))


def comparisons(condition: Expression) -> Iterator[tuple[Expression, str]]:
    """The comparisons of a condition with the clock: with what, and how far ahead of the clock.

    >>> from graphtide.algebra.expressions import Var
    >>> due, now = Var("due"), Call(NOW, ())
    >>> list(comparisons(Call("&&", (Call("<", (due, now)), Call("BOUND", (due,))))))
    [(Var(name='due'), 'PT0S')]
    """
    match condition:
        case Call(name, (left, right)) if name in _COMPARED:
            for other, side in ((left, right), (right, left)):
                ahead = _ahead(side)
                if ahead is not None and not reads_clock(other):
                    yield other, ahead
        case Call(_, args):
            for arg in args:
                yield from comparisons(arg)
        case _:
            return


def _ahead(side: Expression) -> str | None:
    """The duration that `NOW()`, or NOW() plus or minus a constant, is ahead of the clock."""
    match side:
        case Call("NOW", ()):
            return "PT0S"
        case Call("+" | "-" as sign, (Call("NOW", ()), Const(Literal() as term))):
            if term.datatype.value == _DURATION:
                text = term.value.removeprefix("-")
                negative = (sign == "-") != term.value.startswith("-")
                return f"-{text}" if negative else text
    return None


def misused(root: Node) -> bool:
    """Whether NOW() occurs anywhere but in comparisons of conditions."""
    all_uses = sum(isinstance(each, Call) and each.name == NOW for each in walk(root))
    for node in walk(root):
        if isinstance(node, Filter | LeftJoin) and node.condition is not None:
            all_uses -= sum(1 for _ in comparisons(node.condition))
    return all_uses > 0
