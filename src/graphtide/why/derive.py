"""Derivations: the solutions of an algebra node that fit a row, with the quads behind each.

`Derivations.solve(node, want)` walks the algebra with the bindings of a row pushed down, so that it
looks at the quads of that row and not at the graph. What it finds is exact: the solutions of the
node, as the recommendation defines them, that agree with `want` on every variable that both bind.

Inside EXISTS, `outer` is the row outside, whose values take the place of its variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Exists, Expression, Var
from graphtide.algebra.paths import link_iris, matches_zero_length
from graphtide.algebra.rewrite import conjuncts
from graphtide.algebra.variables import certain, schema
from graphtide.errors import ExpressionError
from graphtide.functions import evaluate, values
from graphtide.functions.aggregates import aggregate
from graphtide.functions.comparison import OrderValue, order_value
from graphtide.limits import allowance
from graphtide.plan import describe as words
from graphtide.why import solutions as given
from graphtide.why import tree
from graphtide.why.paths import PathWalker
from graphtide.why.render import values_text
from graphtide.why.solutions import NOTHING, Found, Solution
from graphtide.why.tree import Fact, WhyStep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from graphtide.functions.logic import Compiled
    from graphtide.rdf.terms import Term

SHOWN: Final = 100
"""Members of a group that are shown unless another number is asked for."""

NO_MATCH: Final = "nothing matches"


class Derivations:
    """Finds solutions over the quads of a source.

    Of a DISTINCT row, one derivation is found, as the row counts once; with `each`, all of them.
    """

    def __init__(self, source: tree.QuadSource, *, each: bool = False, shown: int = SHOWN) -> None:
        self.source = source
        self._each = each
        self._shown = shown
        self._counting = Derivations(source, shown=shown) if each else self
        self._compiled: dict[Expression, Compiled] = {}

    # --- nodes ---

    def solve(
        self, node: alg.Node, want: Solution = NOTHING, outer: Solution = NOTHING
    ) -> Iterator[Found]:
        """The solutions of a node that agree with `want`."""
        allowance().check_time()
        match node:
            case alg.Bgp():
                yield from self._patterns(node, want, outer)
            case alg.Path():
                yield from self._path(node, want, outer)
            case alg.Values():
                yield from given.data_rows(node, want, outer)
            case alg.GraphNames(var):
                yield from self._graph_names(var, want, outer)
            case alg.Join():
                yield from self._join(node, want, outer)
            case alg.LeftJoin():
                yield from self._optional(node, want, outer)
            case alg.Filter(condition, child):
                yield from self._filter(condition, self.solve(child, want, outer), outer)
            case alg.Union(left, right):
                for side in (left, right):
                    for found in self.solve(side, want, outer):
                        inside = tree.parts(found.step)
                        yield Found(found.solution, WhyStep("union", "UNION", children=inside))
            case alg.Minus():
                yield from self._minus(node, want, outer)
            case alg.Extend():
                yield from self._extend(node, want, outer)
            case alg.Project(child, variables):
                for found in self.solve(
                    child, given.only(want, variables), given.only(outer, variables)
                ):
                    yield given.selected(found, variables)
            case alg.Distinct(child):
                rows = self.solve(child, want, outer)
                yield from rows if self._each else given.unique(rows)
            case alg.Group():
                yield from self._group(node, want, outer)
            case alg.Slice():
                yield from self._slice(node, want, outer)
            case _:
                assert_never(node)

    def holds(self, node: alg.Node, want: Solution, outer: Solution = NOTHING) -> bool:
        """Whether a node has a solution that agrees with `want`."""
        return next(self._counting.solve(node, want, outer), None) is not None

    # --- leaves ---

    def _patterns(self, node: alg.Bgp, want: Solution, outer: Solution) -> Iterator[Found]:
        columns = schema(node)
        known = given.agreed(want, outer, columns)
        if known is None:
            return
        for solution, facts in self.match(node.patterns, known):
            steps = (given.pattern_step(p, (facts[p],)) for p in node.patterns)
            yield Found(given.only(solution, columns), tree.together(*steps))

    def match(
        self, patterns: Iterable[alg.TriplePattern], known: Solution
    ) -> Iterator[tuple[Solution, dict[alg.TriplePattern, Fact]]]:
        """The ways to match triple patterns, each with a quad per pattern; best known first."""
        rest = list(dict.fromkeys(patterns))
        if not rest:
            yield known, {}
            return
        first = min(rest, key=lambda pattern: given.unknown(pattern, known))
        rest.remove(first)
        for fact in self.quads(first, known):
            bound = given.bound(first, fact, known)
            if bound is not None:
                for solution, facts in self.match(rest, bound):
                    yield solution, {first: fact, **facts}

    def quads(self, pattern: alg.TriplePattern, known: Solution) -> Iterator[Fact]:
        """The quads that a pattern may match; a triple in several merged graphs counts once."""
        allowance().check_time()
        s, p, o, g = (given.value_at(part, known) for part in given.positions(pattern))
        found = self.source.find(s, p, o, g)
        if self._each or not isinstance(pattern.graph, alg.MergedGraph):
            yield from found
            return
        seen: set[tuple[Term, ...]] = set()
        for fact in found:
            if fact[:3] not in seen:
                seen.add(fact[:3])
                yield fact

    def _graph_names(self, var: Var, want: Solution, outer: Solution) -> Iterator[Found]:
        known = given.agreed(want, outer, (var,))
        if known is not None:
            for name, fact in self.graph_names(known.get(var)):
                yield Found({var: name}, WhyStep("graph", f"GRAPH {var}", (fact,)))

    def graph_names(self, name: Term | None = None) -> Iterator[tuple[Term, Fact]]:
        """The named graphs that hold a quad, with one of their quads; or only one of them."""
        seen: set[Term] = set()
        for fact in self.source.find(None, None, None, name):
            if fact.graph is not None and fact.graph not in seen:
                seen.add(fact.graph)
                yield fact.graph, fact
                if name is not None:
                    return

    # --- paths ---

    def _path(self, node: alg.Path, want: Solution, outer: Solution) -> Iterator[Found]:
        known = given.agreed(want, outer, schema(node))
        if known is None:
            return
        if not isinstance(node.graph, Var):
            yield from self._path_in(node, node.graph, known, ())
            return
        for name, fact in self.graph_names(known.get(node.graph)):
            for found in self._path_in(node, name, {**known, node.graph: name}, (fact,)):
                yield Found({**found.solution, node.graph: name}, found.step)

    def _path_in(
        self, node: alg.Path, graph: tree.GraphChoice, known: Solution, there: tuple[Fact, ...]
    ) -> Iterator[Found]:
        """The ends that a path connects in one graph; `there` shows that the graph is not empty."""
        walker = PathWalker(self.source, graph)
        ends = (node.subject, node.object)
        start, end = (given.value_at(part, known) for part in ends)
        free = all(isinstance(part, Var) for part in ends)
        back = start is None and end is not None
        known_end, last = (end, start) if back else (start, end)
        for first in self._nodes(node, graph) if known_end is None else (known_end,):
            ways = walker.ways(node.path, first, back=back)
            if self._each:
                ways = walker.every(node.path, first, last, back=back)
            for other, facts in ways:
                if last not in (None, other):
                    continue
                pair = (other, first) if back else (first, other)
                shown = facts[::-1] if back else facts
                solution = given.ends_solution(ends, pair)
                if not facts and free:  # a zero-length path of two variables: only for nodes
                    shown = self._touching(pair[0], graph)
                if solution is not None and (shown or not free):
                    note = "" if facts else "a path of length zero"
                    step = WhyStep("path", words.path_text(node), shown or there, note=note)
                    yield Found(solution, step)
                if last is not None and not self._each:
                    break

    def _nodes(self, node: alg.Path, graph: tree.GraphChoice) -> list[Term]:
        iris = None if matches_zero_length(node.path) else link_iris(node.path)
        predicates: tuple[Term | None, ...] = (None,) if iris is None else iris
        quads = (f for p in predicates for f in self.source.find(None, p, None, graph))
        return [*dict.fromkeys(term for fact in quads for term in (fact.subject, fact.object))]

    def _touching(self, term: Term, graph: tree.GraphChoice) -> tuple[Fact, ...]:
        """A quad of the graph with a term as subject or object."""
        for first, last in ((term, None), (None, term)):
            for fact in self.source.find(first, None, last, graph):
                return (fact,)
        return ()

    # --- joins ---

    def _join(self, node: alg.Join, want: Solution, outer: Solution) -> Iterator[Found]:
        first, second = node.left, node.right
        if not certain(first) & want.keys() and certain(second) & want.keys():
            first, second = second, first
        for one in self.solve(first, want, outer):
            for other in self.solve(second, {**want, **one.solution}, outer):
                left, right = (one, other) if first is node.left else (other, one)
                solution = {**left.solution, **right.solution}
                yield Found(solution, tree.together(left.step, right.step))

    def _optional(self, node: alg.LeftJoin, want: Solution, outer: Solution) -> Iterator[Found]:
        conditions = [] if node.condition is None else conjuncts(node.condition)
        for left in self.solve(node.left, want, outer):
            matched = False
            for found in self._optional_part(node, conditions, left, want, outer):
                matched = True
                yield found
            if matched:
                continue
            part = self._counting._optional_part(node, conditions, left, NOTHING, outer)  # noqa: SLF001 - itself
            if next(part, None) is None:
                step = WhyStep(
                    "optional", f"OPTIONAL {given.group_text(node.right)}", note=NO_MATCH
                )
                yield Found(left.solution, tree.together(left.step, step))

    def _optional_part(
        self,
        node: alg.LeftJoin,
        conditions: list[Expression],
        left: Found,
        want: Solution,
        outer: Solution,
    ) -> Iterator[Found]:
        """The matches of the optional side for one solution of the other."""
        for right in self.solve(node.right, {**want, **left.solution}, outer):
            solution = {**left.solution, **right.solution}
            tested = [self.test(each, solution, outer) for each in conditions]
            if all(step.holds for step in tested):
                inside = tree.together(right.step, *tested)
                step = WhyStep("optional", "OPTIONAL", children=tree.parts(inside))
                yield Found(solution, tree.together(left.step, step))

    def _minus(self, node: alg.Minus, want: Solution, outer: Solution) -> Iterator[Found]:
        for left in self.solve(node.left, want, outer):
            if self.spoiler(node, left.solution, outer) is None:
                step = WhyStep("minus", f"MINUS {given.group_text(node.right)}", note=NO_MATCH)
                yield Found(left.solution, tree.together(left.step, step))

    def spoiler(self, node: alg.Minus, left: Solution, outer: Solution) -> Found | None:
        """A solution of the right side of a MINUS that removes one of the left."""
        rights = self._counting.solve(node.right, left, outer)
        return next((r for r in rights if left.keys() & r.solution.keys() - node.ignoring), None)

    # --- expressions ---

    def _filter(
        self, condition: Expression, rows: Iterator[Found], outer: Solution
    ) -> Iterator[Found]:
        conditions = conjuncts(condition)
        for found in rows:
            tested: list[WhyStep] = []
            for each in conditions:
                tested.append(self.test(each, found.solution, outer))
                if not tested[-1].holds:
                    break
            else:
                yield Found(found.solution, tree.together(found.step, *tested))

    def test(self, condition: Expression, solution: Solution, outer: Solution) -> WhyStep:
        """Whether a condition holds for a solution, with its values."""
        row = {**outer, **solution}
        match condition:
            case Exists(pattern):
                return self._exists_step(pattern, row)
            case Call("!", (Exists(pattern),)):
                spoiler = next(self._counting.solve(pattern, NOTHING, row), None)
                text = f"NOT EXISTS {given.group_text(pattern)}"
                if spoiler is None:
                    return WhyStep("not exists", text, note=NO_MATCH)
                inside = tree.parts(spoiler.step)
                return WhyStep(
                    "not exists", text, children=inside, note="this matches", holds=False
                )
        try:
            holds = values.effective_boolean(self.value(condition, row))
        except ExpressionError as problem:
            holds, error = False, f"; error: {problem.message}"
        else:
            error = ""
        read = sorted(given.variables_read(condition), key=lambda var: var.name)
        note = values_text((var, row.get(var)) for var in read) + error
        children = tuple(self._exists_step(each, row) for each in given.exists_of(condition))
        text = f"FILTER {words.expression_text(condition)}"
        return WhyStep("filter", text, children=children, note=note, holds=holds)

    def _exists_step(self, pattern: alg.Node, row: Solution) -> WhyStep:
        found = next(self._counting.solve(pattern, NOTHING, row), None)
        if found is None:
            return WhyStep(
                "exists", f"EXISTS {given.group_text(pattern)}", note=NO_MATCH, holds=False
            )
        return WhyStep("exists", "EXISTS", children=tree.parts(found.step))

    def value(self, expression: Expression, row: Solution) -> Term:
        """The value of an expression; raises `ExpressionError` where it has none."""
        if expression not in self._compiled:
            compiled = evaluate.compile_expression(expression, self._exists)
            self._compiled[expression] = compiled
        return self._compiled[expression](row)

    def _exists(self, pattern: alg.Node, row: Solution) -> bool:
        return self.holds(pattern, NOTHING, row)

    def _extend(self, node: alg.Extend, want: Solution, outer: Solution) -> Iterator[Found]:
        var, expression = node.var, node.expression
        below = {v: term for v, term in want.items() if v != var}
        if isinstance(expression, Var) and var in want:  # a copy: look for that value at once
            below.setdefault(expression, want[var])
        for found in self.solve(node.child, below, outer):
            step = WhyStep("bind", f"BIND({words.expression_text(expression)} AS {var})")
            try:
                value = self.value(expression, {**outer, **found.solution})
            except ExpressionError as problem:
                solution, note = found.solution, f"no value, because {problem.message}"
            else:
                solution, note = {**found.solution, var: value}, values_text([(var, value)])
            if given.compatible(solution, want) and given.compatible(solution, outer):
                step = WhyStep(step.kind, step.text, note=note)
                yield Found(solution, tree.together(found.step, step))

    # --- groups and slices ---

    def _group(self, node: alg.Group, want: Solution, outer: Solution) -> Iterator[Found]:
        members: dict[tuple[Term | None, ...], list[Found]] = {} if node.keys else {(): []}
        for found in self._counting.solve(node.child, given.only(want, node.keys), outer):
            members.setdefault(tuple(map(found.solution.get, node.keys)), []).append(found)
            allowance().spend(256)
        by = f"GROUP BY {words.names(node.keys)}: " if node.keys else ""
        calls = ", ".join(map(words.aggregate_text, node.aggregates))
        for key, rows in members.items():
            solution = {v: term for v, term in zip(node.keys, key, strict=True) if term is not None}
            for call in node.aggregates:
                value = _aggregated(call, [row.solution for row in rows])
                if value is not None:
                    solution[call.var] = value
            if not given.compatible(solution, want):
                continue
            note = values_text((a.var, solution.get(a.var)) for a in node.aggregates)
            note += f", of {len(rows):,} row{'s' if len(rows) != 1 else ''}"
            if len(rows) > self._shown:
                note += f" (the first {self._shown:,} are shown)"
            inside = tuple(row.step for row in rows[: self._shown])
            yield Found(
                solution, WhyStep("group", by + calls, children=inside, note=note.strip(", "))
            )

    def _slice(self, node: alg.Slice, want: Solution, outer: Solution) -> Iterator[Found]:
        pushed = given.only(want, node.per)
        rows = [*self._counting.solve(node.child, pushed, given.only(outer, node.variables))]
        for at, of, found in in_order(node, rows):
            if (node.limit is None or at <= node.offset + node.limit) and at > node.offset:
                solution = given.only(found.solution, node.variables)
                if given.compatible(solution, want):
                    note = f"row {at:,} of {of:,}"
                    inside = tree.parts(found.step)
                    yield Found(
                        solution, WhyStep("slice", words.slice_text(node), (), inside, note)
                    )


def _aggregated(call: alg.Aggregate, rows: list[Solution]) -> Term | None:
    if call.argument is None:
        different = {frozenset(row.items()) for row in rows} if call.distinct else rows
        return values.integer_term(len(different))
    found = [row.get(call.argument) for row in rows]
    try:
        each = [*dict.fromkeys(found)] if call.distinct else found
        return aggregate(call.function, each, call.separator)
    except ExpressionError:
        return None


def in_order(node: alg.Slice, rows: list[Found]) -> Iterator[tuple[int, int, Found]]:
    """The rows of a slice in its order, with their place (from 1) and the number of rows."""
    parts: dict[tuple[Term | None, ...], list[Found]] = {}
    for found in rows:
        parts.setdefault(tuple(map(found.solution.get, node.per)), []).append(found)
    for part in parts.values():
        part.sort(key=lambda f: [str(f.solution.get(v) or "") for v in node.variables])
        for key in reversed(node.keys):
            part.sort(key=_place(key.var), reverse=key.descending)
        shown = part
        if node.distinct:
            shown = [
                *given.unique(Found(given.only(f.solution, node.variables), f.step) for f in part)
            ]
        yield from ((at, len(shown), found) for at, found in enumerate(shown, 1))


def _place(var: Var) -> Callable[[Found], OrderValue]:
    return lambda found: order_value(found.solution.get(var))
