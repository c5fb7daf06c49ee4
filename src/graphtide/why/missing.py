"""Why a row is not in an answer: what of the query holds, what does not, and what would help.

`Missing.diagnose(node, want)` is for a node without a solution that agrees with `want`. It gives
the closest attempt as a tree in which some steps do not hold, and fixes: changes that each remove
this one obstacle. `counter_change` applies fixes to a copy until the row appears, and so names only
what it has tried.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from pyoxigraph import Literal, NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra import paths
from graphtide.algebra.expressions import Call, Exists, Var
from graphtide.algebra.rewrite import conjuncts
from graphtide.algebra.variables import schema
from graphtide.plan import describe as words
from graphtide.why import solutions as given
from graphtide.why import tree
from graphtide.why.derive import Derivations, in_order
from graphtide.why.render import brief, values_text
from graphtide.why.solutions import NOTHING, Found, Solution
from graphtide.why.tree import ChangedQuads, Fact, FactChange, WhyStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.expressions import Expression
    from graphtide.why.explain import RowQuestion

ATTEMPTS: Final = 20
"""Partial solutions that are looked at, to find the one that comes closest."""

TRIES: Final = 60
"""Graphs that are tried for a counter-change."""

NEAREST: Final = 3
"""Quads that differ in one place from a missing one, as shown."""

FRESH: Final = "urn:graphtide:any:"
"""The start of IRIs that stand for any term in a counter-change."""

Fix = tuple[FactChange, ...]


class Failure(NamedTuple):
    """The closest attempt, and alternative fixes for its first obstacle."""

    step: WhyStep
    fixes: tuple[Fix, ...] = ()

    @property
    def held(self) -> tuple[int, int]:
        """How much of the attempt holds, and, negative, how much does not."""
        leaves = [step.holds for step in self.step.walk() if not step.children]
        return sum(leaves), sum(leaves) - len(leaves)

    def beside(self, *steps: WhyStep) -> Failure:
        """The same with steps before it that hold."""
        return Failure(tree.together(*steps, self.step), self.fixes)


def closest(failures: list[Failure]) -> Failure:
    """The attempt of which most holds; its fixes come first."""
    best = max(failures, key=lambda failure: failure.held)
    return Failure(
        best.step, tuple(dict.fromkeys(fix for f in [best, *failures] for fix in f.fixes))
    )


class Missing:
    """Finds out why nodes have no solution over the quads of a source."""

    def __init__(self, source: tree.QuadSource) -> None:
        self._find = Derivations(source)
        self._source = source

    def _rows(self, node: alg.Node, want: Solution, outer: Solution) -> list[Found]:
        """Some solutions that agree with `want` and bind what it says of the node's columns."""
        wanted = want.keys() & set(schema(node))
        rows = self._find.solve(node, want, outer)
        return [*islice((found for found in rows if wanted <= found.solution.keys()), ATTEMPTS)]

    def diagnose(
        self, node: alg.Node, want: Solution = NOTHING, outer: Solution = NOTHING
    ) -> Failure:
        """Why a node has no solution that agrees with `want`."""
        match node:
            case alg.Bgp():
                return self._patterns(node, want, outer)
            case alg.Path():
                return self._path(node, want, outer)
            case alg.Values(variables):
                text = f"VALUES {words.names(variables)}"
                return Failure(WhyStep("values", text, note="no such row", holds=False))
            case alg.GraphNames(var):
                name = want.get(var, outer.get(var, NamedNode(f"{FRESH}graph")))
                step = WhyStep("graph", f"GRAPH {var}", note=f"{brief(name)} is empty", holds=False)
                node_ = NamedNode(f"{FRESH}node")
                return Failure(step, _inserts([(node_, node_, node_, name)]))
            case alg.Join():
                return self._join(node, want, outer)
            case alg.LeftJoin():
                return self._optional(node, want, outer)
            case alg.Filter(condition, child):
                return self._filter(conjuncts(condition), child, want, outer)
            case alg.Union(left, right):
                sides = [self.diagnose(side, want, outer) for side in (left, right)]
                steps = [
                    WhyStep("union", "UNION", (), tree.parts(s.step), holds=False) for s in sides
                ]
                best = closest(sides)
                return Failure(tree.together(*steps), best.fixes)
            case alg.Minus():
                return self._minus(node, want, outer)
            case alg.Extend():
                return self._extend(node, want, outer)
            case alg.Project(child, variables):
                return self.diagnose(
                    child, given.only(want, variables), given.only(outer, variables)
                )
            case alg.Distinct(child):
                return self.diagnose(child, want, outer)
            case alg.Group():
                return self._group(node, want, outer)
            case alg.Slice():
                return self._slice(node, want, outer)
            case _:
                assert_never(node)

    # --- patterns ---

    def _patterns(self, node: alg.Bgp, want: Solution, outer: Solution) -> Failure:
        known = given.agreed(want, outer, schema(node))
        if known is None:
            note = "the row outside has another value"
            return Failure(
                WhyStep("pattern", words.patterns_text(node.patterns), (), (), note, holds=False)
            )
        patterns = [*dict.fromkeys(node.patterns)]
        for skipped in range(1, len(patterns) + 1):
            attempts = self._partly(patterns, known, skipped)
            solution, facts = next(attempts, (known, None))
            if facts is not None:
                steps = [self._pattern(p, facts.get(p), solution) for p in patterns]
                missing = [p for p in patterns if p not in facts]
                return Failure(tree.together(*steps), self._insertions(missing, solution))
        return Failure(tree.together(*(self._pattern(p, None, known) for p in patterns)))

    def _partly(
        self, patterns: list[alg.TriplePattern], known: Solution, skips: int
    ) -> Iterator[tuple[Solution, dict[alg.TriplePattern, Fact]]]:
        """The ways to match all of some patterns but at most `skips`."""
        if not patterns:
            yield known, {}
            return
        first = min(patterns, key=lambda pattern: given.unknown(pattern, known))
        rest = [pattern for pattern in patterns if pattern is not first]
        for fact in self._find.quads(first, known):
            bound = given.bound(first, fact, known)
            if bound is not None:
                for solution, facts in self._partly(rest, bound, skips):
                    yield solution, {first: fact, **facts}
        if skips:
            yield from self._partly(rest, known, skips - 1)

    def _pattern(self, pattern: alg.TriplePattern, fact: Fact | None, known: Solution) -> WhyStep:
        if fact is not None:
            return given.pattern_step(pattern, (fact,))
        near = ", ".join(each.text() for each in self._nearest(pattern, known))
        triple = (pattern.subject, pattern.predicate, pattern.object)
        text = " ".join(brief(_filled(part, known)) for part in triple)
        note = f"no quad {text}" + (f"; nearest: {near}" if near else "")
        return given.pattern_step(pattern, (), note)

    def _nearest(self, pattern: alg.TriplePattern, known: Solution) -> list[Fact]:
        """Quads that differ from a missing one in one place."""
        whole = [given.value_at(part, known) for part in given.positions(pattern)]
        found: dict[Fact, None] = {}
        for at in (2, 0, 1):
            s, p, o = (None if at == k else term for k, term in enumerate(whole[:3]))
            if whole[at] is not None and (s is not None or o is not None):
                near = self._source.find(s, p, o, whole[3])
                found.update(dict.fromkeys(islice(near, NEAREST)))
        return [*found][:NEAREST]

    @staticmethod
    def _insertions(patterns: list[alg.TriplePattern], known: Solution) -> tuple[Fix, ...]:
        """The quads that patterns lack; a variable without a value stands for any term."""
        quads = [
            tuple(_filled(part, known, fresh=True) for part in given.positions(p)) for p in patterns
        ]
        return _inserts([_in_graph(quad) for quad in quads])

    def _path(self, node: alg.Path, want: Solution, outer: Solution) -> Failure:
        known = given.agreed(want, outer, schema(node)) or {}
        start, end, graph = (
            _filled(part, known, fresh=True) for part in (node.subject, node.object, node.graph)
        )
        steps = _shortcut(node.path, start, end)
        text = " ".join(brief(_filled(p, known)) for p in (node.subject, node.object))
        step = WhyStep("path", words.path_text(node), note=f"no path between {text}", holds=False)
        return Failure(step, _inserts([_in_graph((*each, graph)) for each in steps]))

    # --- joins ---

    def _join(self, node: alg.Join, want: Solution, outer: Solution) -> Failure:
        found: list[Failure] = []
        for one in self._rows(node.left, want, outer):
            rest = self.diagnose(node.right, {**want, **one.solution}, outer)
            found.append(rest.beside(one.step))
        for other in self._rows(node.right, want, outer):
            rest = self.diagnose(node.left, {**want, **other.solution}, outer)
            found.append(Failure(tree.together(rest.step, other.step), rest.fixes))
        if not found:
            left, right = (self.diagnose(side, want, outer) for side in (node.left, node.right))
            found.append(Failure(tree.together(left.step, right.step), left.fixes or right.fixes))
        return closest(found)

    def _optional(self, node: alg.LeftJoin, want: Solution, outer: Solution) -> Failure:
        lefts = self._left(node.left, node.right, want, outer)
        if not lefts:
            return self.diagnose(node.left, want, outer)
        inside: alg.Node = node.right
        if node.condition is not None:
            inside = alg.Filter(node.condition, node.right)
        found = []
        for left in lefts:
            row = {**outer, **left.solution} if node.condition is not None else outer
            rest = self.diagnose(inside, {**want, **left.solution}, row)
            step = WhyStep("optional", "OPTIONAL", (), tree.parts(rest.step), holds=False)
            found.append(Failure(step, rest.fixes).beside(left.step))
        return closest(found)

    def _left(
        self, left: alg.Node, right: alg.Node, want: Solution, outer: Solution
    ) -> list[Found]:
        """Solutions of the left side that bind what only it can bind."""
        optional = set(schema(right))
        wanted = (want.keys() & set(schema(left))) - optional
        rows = self._find.solve(left, want, outer)
        return [*islice((found for found in rows if wanted <= found.solution.keys()), ATTEMPTS)]

    def _minus(self, node: alg.Minus, want: Solution, outer: Solution) -> Failure:
        found = []
        for left in self._rows(node.left, want, outer):
            spoiler = self._find.spoiler(node, left.solution, outer)
            if spoiler is not None:
                inside = tree.parts(spoiler.step)
                text = f"MINUS {given.group_text(node.right)}"
                step = WhyStep("minus", text, (), inside, "this matches", holds=False)
                found.append(Failure(step, _deletes(spoiler.step)).beside(left.step))
        return closest(found) if found else self.diagnose(node.left, want, outer)

    # --- expressions ---

    def _filter(
        self, conditions: list[Expression], child: alg.Node, want: Solution, outer: Solution
    ) -> Failure:
        found = []
        for row in self._rows(child, want, outer):
            tested = []
            for condition in conditions:
                tested.append(self._find.test(condition, row.solution, outer))
                if not tested[-1].holds:
                    whole = {**outer, **row.solution}
                    found.append(
                        self._condition(condition, tested[-1], whole).beside(row.step, *tested[:-1])
                    )
                    break
        return closest(found) if found else self.diagnose(child, want, outer)

    def _condition(self, condition: Expression, step: WhyStep, row: Solution) -> Failure:
        """A condition that does not hold, and what would make an EXISTS hold or not hold."""
        match condition:
            case Exists(pattern):
                rest = self.diagnose(pattern, NOTHING, row)
                inside = tree.parts(rest.step)
                return Failure(WhyStep("exists", "EXISTS", (), inside, holds=False), rest.fixes)
            case Call("!", (Exists(),)):
                return Failure(step, _deletes(step))
            case _:
                fixes = [
                    fix for each in given.exists_of(condition) for fix in self._flip(each, row)
                ]
                return Failure(step, tuple(fixes))

    def _flip(self, pattern: alg.Node, row: Solution) -> tuple[Fix, ...]:
        found = next(self._find.solve(pattern, NOTHING, row), None)
        if found is not None:
            return _deletes(found.step)
        return self.diagnose(pattern, NOTHING, row).fixes

    def _extend(self, node: alg.Extend, want: Solution, outer: Solution) -> Failure:
        var, expression = node.var, node.expression
        below = {v: term for v, term in want.items() if v != var}
        if isinstance(expression, Var) and var in want:
            below.setdefault(expression, want[var])
        text = f"BIND({words.expression_text(expression)} AS {var})"
        if not (rows := self._rows(node.child, below, outer)):
            return self.diagnose(node.child, below, outer)
        value = next((f.solution.get(var) for f in self._find.solve(node, below, outer)), None)
        note = values_text([(var, value)]) + f", not {brief(want.get(var, outer.get(var)))}"
        return Failure(WhyStep("bind", text, note=note, holds=False)).beside(rows[0].step)

    # --- groups and slices ---

    def _group(self, node: alg.Group, want: Solution, outer: Solution) -> Failure:
        keys = given.only(want, node.keys)
        found = next(self._find.solve(node, keys, outer), None)
        if found is None:
            return self.diagnose(node.child, keys, outer)
        pairs = [(v, found.solution.get(v)) for v in want if v in schema(node)]
        other = values_text(p for p in pairs if p[1] != want[p[0]])
        step = found.step
        note = f"{step.note}; so {other}, which is not the value asked for"
        return Failure(WhyStep("group", step.text, (), step.children, note, holds=False))

    def _slice(self, node: alg.Slice, want: Solution, outer: Solution) -> Failure:
        wanted, outside = given.only(want, node.variables), given.only(outer, node.variables)
        rows = [*self._find.solve(node.child, given.only(want, node.per), outside)]
        for at, of, found in in_order(node, rows):
            if given.compatible(given.only(found.solution, node.variables), wanted):
                note = f"it is row {at:,} of {of:,}"
                inside = tree.parts(found.step)
                text = words.slice_text(node)
                return Failure(WhyStep("slice", text, (), inside, note, holds=False))
        return self.diagnose(node.child, wanted, outside)


# --- fixes ---


def _filled(part: object, known: Solution, *, fresh: bool = False) -> object:
    """The term at a position; a variable without a value as it is, or a fresh IRI."""
    if not isinstance(part, Var):
        return part
    name = part.name.removeprefix("_:").strip(".") or "node"
    return known.get(part, NamedNode(FRESH + name) if fresh else part)


def _in_graph(quad: tuple[object, ...]) -> tuple[object, ...]:
    """A quad with the name of a graph, None being the default graph."""
    *triple, graph = quad
    match graph:
        case alg.DefaultGraph() | alg.MergedGraph(None) | alg.MergedGraph(()):
            return (*triple, None)
        case alg.MergedGraph(names):
            return (*triple, names[0])  # type: ignore[index]
        case _:
            return (*triple, graph)


def _inserts(quads: list[tuple[object, ...]]) -> tuple[Fix, ...]:
    """The fix that inserts some quads; none if there is nothing to insert, or it is not RDF."""
    for s, p, _, g in quads:
        if isinstance(s, Literal) or not isinstance(p, NamedNode) or isinstance(g, Literal):
            return ()
    facts = (Fact(*quad) for quad in quads)  # type: ignore[arg-type]
    fix = tuple(FactChange(1, fact) for fact in facts)
    return (fix,) if fix else ()


def _deletes(step: WhyStep) -> tuple[Fix, ...]:
    """For each quad below a step, the fix that deletes it."""
    facts = dict.fromkeys(fact for each in step.walk() for fact in each.facts)
    return tuple((FactChange(-1, fact),) for fact in facts)


def _shortcut(path: paths.PathExpression, start: object, end: object) -> list[tuple[object, ...]]:
    """Triples that connect two terms by a path, as few as possible."""
    match path:
        case paths.Link(iri):
            return [(start, iri, end)]
        case paths.NegatedSet():
            return [(start, NamedNode(f"{FRESH}predicate"), end)]
        case paths.ToBlank():
            return []
        case paths.Inverse(inner):
            return _shortcut(inner, end, start)
        case paths.Alternative(choices):
            return _shortcut(choices[0], start, end)
        case paths.Sequence(steps):
            middle = [NamedNode(f"{FRESH}node{n}") for n in range(1, len(steps))]
            ends = [start, *middle, end]
            return [
                t for n, each in enumerate(steps) for t in _shortcut(each, ends[n], ends[n + 1])
            ]
        case paths.ZeroOrOne(inner) | paths.ZeroOrMore(inner) | paths.OneOrMore(inner):
            return _shortcut(inner, start, end)
        case _:
            assert_never(path)


def counter_change(question: RowQuestion, source: tree.QuadSource, first: Failure) -> Fix:
    """Changes with which the row would be in the answer, as few as were found; maybe none."""
    ahead: list[tuple[Fix, Failure]] = [((), first)]
    tries = 0
    for changes, failure in ahead:
        for fix in failure.fixes:
            known = {change.fact.quad: change for change in changes}
            if any(change.fact.quad in known for change in fix):
                continue
            tries += 1
            longer = (*changes, *fix)
            changed = ChangedQuads(source, longer)
            if question.copies(changed, 1):
                return longer
            if tries >= TRIES:
                return ()
            ahead.append((longer, root_failure(question, changed)))
    return ()


def root_failure(question: RowQuestion, source: tree.QuadSource) -> Failure:
    """Why the row of a question is not in the answer."""
    rows = Derivations(source).solve(question.root, question.want)
    bound = (found for found in rows if question.want.keys() <= found.solution.keys())
    if (compatible := next(bound, None)) is None:
        return Missing(source).diagnose(question.root, question.want)
    surplus = [(v, t) for v, t in compatible.solution.items() if v in question.unbound]
    note = f"{values_text(surplus)}, where nothing was asked for" if surplus else "this matches"
    inside = tree.parts(compatible.step)
    step = WhyStep("select", "the row that is there", (), inside, note, holds=False)
    return Failure(step, _deletes(compatible.step))
