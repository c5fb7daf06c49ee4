"""Why a row is in an answer, and which changes of a transaction made it come or go."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Var
from graphtide.algebra.paths import link_iris
from graphtide.algebra.queries import with_dataset
from graphtide.algebra.rewrite import drop_order
from graphtide.algebra.traverse import walk
from graphtide.functions.values import boolean_term
from graphtide.why.derive import NO_MATCH, SHOWN, Derivations
from graphtide.why.solutions import Found, Solution, group_text, value_at
from graphtide.why.tree import (
    Bindings,
    ChangedQuads,
    FactChange,
    FactChanges,
    QuadSource,
    WhyStep,
    together,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.rdf.terms import Term


T = TypeVar("T")


class RowQuestion:
    """A question about a row of a query: some of its columns, which may be unbound."""

    def __init__(self, select: alg.SelectQuery, row: Bindings, *, union: bool = False) -> None:
        self.form = select.form
        self._columns = select.variables
        self._asked = dict(row)
        worked_in = with_dataset(select, union=union)
        root = drop_order(worked_in.root)
        if self.form == "ASK":  # whether the pattern inside has a row: one derivation is enough
            assert isinstance(root, alg.Project)  # noqa: S101 - as `as_select` makes it
            self._answers = {
                answer
                for answer in (True, False)
                if all(term == boolean_term(answer) for term in row.values())
            }
            root, row = root.child.child.child, {}  # type: ignore[union-attr]
        self.root = root
        self.want: Solution = {Var(name): term for name, term in row.items() if term is not None}
        self.unbound = {Var(name) for name, term in row.items() if term is None}

    def rows(
        self, source: QuadSource, *, each: bool = False, shown: int = SHOWN
    ) -> Iterator[Found]:
        """The rows of the answer that fit, each with a derivation; with `each`, all derivations."""
        rows = Derivations(source, each=each, shown=shown).solve(self.root, self.want)
        if self.form != "ASK":
            return (found for found in rows if self._fits(found.solution))
        found = next(rows, None)
        if (found is not None) not in self._answers:
            return iter(())
        if found is not None:
            return chain((found,), rows)
        nothing = WhyStep("exists", f"ASK {group_text(self.root)}", note=NO_MATCH)
        return iter((Found({}, nothing),))

    def _fits(self, solution: Solution) -> bool:
        return self.want.keys() <= solution.keys() and not self.unbound & solution.keys()

    def row(self, source: QuadSource) -> dict[str, Term | None] | None:
        """The first row that fits, with all of its columns; None if there is none."""
        found = next(self.rows(source), None)
        if found is None or self.form == "ASK":
            return None if found is None else self._asked
        return {variable.name: found.solution.get(variable) for variable in self._columns}

    def derivations(
        self, source: QuadSource, limit: int, *, each: bool
    ) -> tuple[list[WhyStep], bool]:
        """The steps of the first `limit` derivations, and whether there are more."""
        shown = max(limit, SHOWN)
        found = [*islice(self.rows(source, each=each, shown=shown), limit + 1)]
        steps = [*dict.fromkeys(self._body(each.step) for each in found)]
        return steps[:limit], len(found) > limit

    def copies(self, source: QuadSource, most: int | None = None) -> int:
        """How often the row is in the answer; at most `most` are counted."""
        counted = 1 if self.form == "ASK" else most
        return sum(1 for _ in islice(self.rows(source), counted))

    def _body(self, step: WhyStep) -> WhyStep:
        """A derivation without the outermost SELECT, and without what a template adds."""
        if self.form == "CONSTRUCT":
            while step.kind == "union":
                step = together(*step.children)
            while step.kind == "select" and [c.kind for c in step.children[:1]] == ["select"]:
                step = step.children[0]
        return together(*step.children) if step.kind == "select" else step

    # --- changes ---

    def cause(
        self, before: QuadSource, after: QuadSource, changes: FactChanges, diff: int
    ) -> tuple[FactChange, ...]:
        """The changes that made the row come or go; none if they did not.

        Each of them is needed: without it, the others have no such effect.
        """
        base = self.copies(before)

        def moved(state: QuadSource) -> bool:
            now = self.copies(state, base + 1)
            return now > base if diff > 0 else now < base

        def moves(part: Sequence[FactChange]) -> bool:
            return moved(ChangedQuads(before, part))

        if not moved(after):
            return ()
        found, _ = self.derivations(after if diff > 0 else before, SHOWN, each=True)
        facts = {fact.quad for way in found for step in way.walk() for fact in step.facts}
        likely = [c for c in changes.matching(q[:3] for q in facts) if c.fact.quad in facts]
        if moves(likely):
            return tuple(smallest(likely, moves))
        near = changes.matching(self._bound_patterns())
        if moves(near):
            return tuple(smallest(near, moves))
        read = self._predicates()
        concerned = [(None, each, None) for each in read or (None,)]
        return tuple(smallest(changes.matching(concerned), moves))

    def _bound_patterns(self) -> Iterator[tuple[Term | None, ...]]:
        """The patterns of the query, as far as the row binds them.

        A variable may be another one of that name, inside a sub-SELECT: this is a first guess.
        """
        for each in walk(self.root):
            if isinstance(each, alg.TriplePattern):
                parts = (each.subject, each.predicate, each.object)
                yield tuple(value_at(part, self.want) for part in parts)

    def _predicates(self) -> set[Term] | None:
        """The predicates of the quads that the query reads; None if it may read any."""
        read: set[Term | Var] = set()
        for part in walk(self.root):
            match part:
                case alg.TriplePattern(_, predicate):
                    read.add(predicate)
                case alg.GraphNames(var):
                    read.add(var)
                case alg.Path(subject, path, end, graph):
                    iris = link_iris(path)
                    free = isinstance(subject, Var) and isinstance(end, Var)
                    # Zero length connects every node of the graph with itself.
                    anything = iris is None or free or isinstance(graph, Var)
                    read.update((Var("any"),) if anything else iris or ())
        known = {each for each in read if not isinstance(each, Var)}
        return known if len(known) == len(read) else None


def smallest(whole: Sequence[T], enough: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part that is enough and of which no element can be left out (delta debugging).

    >>> smallest(range(100), lambda part: {7, 42} <= set(part))
    [7, 42]
    """
    left = list(whole)
    size = max(len(left) // 2, 1)
    while True:
        at, smaller = 0, False
        while at < len(left):
            rest = left[:at] + left[at + size :]
            if len(rest) < len(left) and enough(rest):
                left, smaller = rest, True
            else:
                at += size
        if size == 1 and not smaller:
            return left
        size = max(size // 2, 1)
