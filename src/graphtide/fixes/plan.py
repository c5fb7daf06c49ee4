"""RepairPlan: a way to a better graph, what it changes, and what queries would tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphtide.fixes.state import path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.engine import DeltaRow, LiveGraph
    from graphtide.fixes.space import Space
    from graphtide.fixes.state import Net, State
    from graphtide.rdf.term import Term


class QuadChange(NamedTuple):
    """A quad that comes (+1) or goes (-1)."""

    diff: int
    s: Term
    p: Term
    o: Term
    g: Term | None

    def __str__(self) -> str:
        terms = " ".join(str(term) for term in self[1:] if term is not None)
        return f"{'+' if self.diff > 0 else '-'} {terms}"


@dataclass(frozen=True, slots=True)
class Step:
    """One fix, applied to one row; and what it changes at that point."""

    fix: str
    bindings: dict[str, Term]
    changes: tuple[QuadChange, ...] = field(repr=False)

    def __str__(self) -> str:
        values = ", ".join(f"{name}={term}" for name, term in self.bindings.items())
        return f"{self.fix}({values})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a cost function is asked about: steps, net changes, and rows of each goal's query."""

    steps: tuple[Step, ...]
    changes: tuple[QuadChange, ...]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Steps, and what they come to.

    `changes` is what differs in the end; `violations` what is then left of each hard goal, `counts`
    how many rows the query of each goal has. `preview` has, for each query, the delta that its
    watch would get.
    """

    steps: tuple[Step, ...]
    changes: tuple[QuadChange, ...]
    cost: float
    violations: dict[str, int]
    counts: dict[str, int]
    preview: dict[str, tuple[DeltaRow, ...]] = field(repr=False)
    check: Callable[[RepairPlan, LiveGraph], None] = field(repr=False, compare=False)

    @property
    def solves(self) -> bool:
        """Whether it meets all hard goals."""
        return not any(self.violations.values())

    def apply(self, graph: LiveGraph, *, time: int | None = None) -> int:
        """Carry out the net changes as one transaction; how many there are.

        If the graph has changed since, the plan is first tried on a copy; it is refused unless each
        step still finds its row, changes the same, and all together do for the goals what they did.
        """
        self.check(self, graph)
        if self.changes:
            with graph.transaction(time=time) as transaction:
                for diff, s, p, o, g in self.changes:
                    (transaction.insert if diff > 0 else transaction.delete)(s, p, o, g)
        return len(self.changes)

    def __str__(self) -> str:
        return " ; ".join(map(str, self.steps)) or "nothing to do"


class Repairs(list[RepairPlan]):
    """Plans that meet all hard goals, the best first.

    `complete` says that every state within the limit of depth was looked at; otherwise `stopped`
    says why not. `closest` is the best plan there is, even if it leaves violations.
    """

    def __init__(self, plans: list[RepairPlan], closest: RepairPlan, stopped: str | None) -> None:
        super().__init__(plans)
        self.closest = closest
        self.stopped = stopped
        self.states = 0
        self.duplicates = 0
        self.seconds = 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing within the limit of depth was left out."""
        return self.stopped is None


def steps_of(space: Space, state: State) -> tuple[Step, ...]:
    """The steps that lead to a state."""
    return tuple(
        Step(
            space.task.fixes[each.fix].name,
            {v.name: term for v, term in space.bindings((each.fix, each.row)).items()},
            quad_changes(space.graph, {quad: diff for diff, quad in each.changes}),
        )
        for each in path(state)
    )


def quad_changes(
    graph: LiveGraph, net: Net | Mapping[tuple[int, ...], int]
) -> tuple[QuadChange, ...]:
    """Changes as terms: what goes before what comes, then by text."""
    decode = graph.terms.decode
    found = [
        QuadChange(diff, decode(s), decode(p), decode(o), decode(g) if g else None)
        for (s, p, o, g), diff in net.items()
    ]
    return tuple(sorted(found, key=lambda c: (c.diff, [str(term) for term in c[1:]])))
