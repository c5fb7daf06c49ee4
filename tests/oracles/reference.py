"""Reference evaluator: the definitions of the SPARQL algebra as nested loops over solutions.

https://www.w3.org/TR/sparql11-query/#sparqlAlgebra. The engine is tested against it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias, assert_never

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra import paths
from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.variables import mentioned
from graphtide.errors import ExpressionError
from graphtide.functions.aggregates import aggregate
from graphtide.functions.comparison import order_value
from graphtide.functions.evaluate import compile_expression
from graphtide.functions.terms import Volatile
from graphtide.functions.values import effective_boolean, integer_term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from graphtide.functions.logic import Compiled
    from graphtide.rdf.terms import Term


Quad: TypeAlias = "tuple[Term, Term, Term, Term | None]"
Solution: TypeAlias = "Mapping[Var, Term]"


# --- groups and slices ---


def group_solutions(node: alg.Group, solutions: list[Solution]) -> list[Solution]:
    """https://www.w3.org/TR/sparql11-query/#aggregateAlgebra

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import Aggregate, Bgp, Group
    >>> count = alg.Aggregate(Var("n"), "COUNT", None)
    >>> [s[Var("n")].value for s in group_solutions(alg.Group(alg.Bgp(()), (), (count,)), [])]
    ['0']
    """
    groups = divided(solutions, node.keys)
    if not node.keys:
        groups.setdefault((), [])
    found: list[Solution] = []
    for values, rows in groups.items():
        keys = {k: v for k, v in zip(node.keys, values, strict=True) if v is not None}
        aggregates = {a.var: _aggregated(a, rows) for a in node.aggregates}
        found.append({**keys, **{var: t for var, t in aggregates.items() if t is not None}})
    return found


def slice_solutions(node: alg.Slice, solutions: list[Solution]) -> list[Solution]:
    """https://www.w3.org/TR/sparql11-query/#solutionModifiers, one part after the other."""
    found: list[Solution] = []
    for part in divided(solutions, node.per).values():
        rows = [_shown(s, node.variables) for s in in_order(node, part)]
        if node.distinct:
            rows = [dict(items) for items in dict.fromkeys(tuple(row.items()) for row in rows)]
        last = None if node.limit is None else node.offset + node.limit
        found += rows[node.offset : last]
    return found


def in_order(node: alg.Slice, solutions: list[Solution]) -> list[Solution]:
    """The solutions sorted by the keys of a slice; ties by the texts of its columns."""
    rows = sorted(solutions, key=lambda s: [str(s.get(v) or "") for v in node.variables])
    for key in reversed(node.keys):
        var, descending = key.var, key.descending
        rows.sort(key=lambda s, var=var: order_value(s.get(var)), reverse=descending)  # type: ignore[misc]
    return rows


def divided(
    solutions: Iterable[Solution], by: tuple[Var, ...]
) -> dict[tuple[Term | None, ...], list[Solution]]:
    """The solutions grouped by some variables; None is unbound."""
    parts: dict[tuple[Term | None, ...], list[Solution]] = {}
    for solution in solutions:
        parts.setdefault(tuple(map(solution.get, by)), []).append(solution)
    return parts


def _aggregated(call: alg.Aggregate, rows: list[Solution]) -> Term | None:
    if call.argument is None:
        different = {frozenset(row.items()) for row in rows}
        return integer_term(len(different if call.distinct else rows))
    values = [row.get(call.argument) for row in rows]
    if call.distinct:
        values = list(dict.fromkeys(values))
    try:
        return aggregate(call.function, values, call.separator)
    except ExpressionError:
        return None


def _shown(solution: Solution, variables: tuple[Var, ...]) -> Solution:
    return {v: solution[v] for v in variables if v in solution}


# --- property paths: https://www.w3.org/TR/sparql11-query/#PropertyPathPatterns

if TYPE_CHECKING:
    Triple = tuple[Term, Term, Term]


def path_solutions(node: alg.Path, triples: Iterable[Triple]) -> list[dict[Var, Term]]:
    """The solutions of a path pattern over one graph.

    >>> from graphtide.algebra.nodes import Path
    >>> from pyoxigraph import NamedNode
    >>> a, p, b = (NamedNode(f"ex:{name}") for name in "apb")
    >>> pattern = alg.Path(Var("x"), paths.ZeroOrOne(paths.Link(p)), b)
    >>> sorted(str(solution[Var("x")]) for solution in path_solutions(pattern, [(a, p, b)]))
    ['<ex:a>', '<ex:b>']
    """
    graph = list(triples)
    subject, object_ = node.subject, node.object
    pairs: list[tuple[Term, Term]]
    if not isinstance(subject, Var):
        pairs = [(subject, end) for end in _ends(node.path, subject, graph)]
    elif not isinstance(object_, Var):
        pairs = [(end, object_) for end in _ends(paths.Inverse(node.path), object_, graph)]
    else:
        nodes = dict.fromkeys(term for s, _, o in graph for term in (s, o))
        pairs = [(start, end) for start in nodes for end in _ends(node.path, start, graph)]
    return [found for pair in pairs if (found := _solution(node, pair)) is not None]


def _solution(node: alg.Path, pair: tuple[Term, Term]) -> dict[Var, Term] | None:
    found: dict[Var, Term] = {}
    for position, term in zip((node.subject, node.object), pair, strict=True):
        known = found.setdefault(position, term) if isinstance(position, Var) else position
        if known != term:
            return None
    return found


def _ends(path: paths.PathExpression, start: Term, graph: list[Triple]) -> set[Term]:
    """The terms that a path leads to from a term."""
    match path:
        case paths.Link(iri):
            return {o for s, p, o in graph if s == start and p == iri}
        case paths.NegatedSet(iris):
            return {o for s, p, o in graph if s == start and p not in iris}
        case paths.ToBlank():
            return {o for s, _, o in graph if s == start and isinstance(o, BlankNode)}
        case paths.Inverse(inner):
            return _starts(inner, start, graph)
        case paths.Sequence(steps):
            found = {start}
            for step in steps:
                found = {end for middle in found for end in _ends(step, middle, graph)}
            return found
        case paths.Alternative(choices):
            return {end for choice in choices for end in _ends(choice, start, graph)}
        case paths.ZeroOrOne(inner):
            return {start} | _ends(inner, start, graph)
        case paths.ZeroOrMore(inner):
            return _closure({start}, lambda term: _ends(inner, term, graph))
        case paths.OneOrMore(inner):
            return _closure(_ends(inner, start, graph), lambda term: _ends(inner, term, graph))
        case _:
            assert_never(path)


def _starts(path: paths.PathExpression, end: Term, graph: list[Triple]) -> set[Term]:
    """The terms from which a path leads to a term: the reversed path over reversed triples."""
    return _ends(_reversed(path), end, [(o, p, s) for s, p, o in graph])


def _reversed(path: paths.PathExpression) -> paths.PathExpression:
    """The path from the end to the start over reversed triples."""
    match path:
        case paths.Link() | paths.NegatedSet():
            return path
        case paths.ToBlank():
            raise AssertionError("this path is only evaluated forwards")
        case paths.Inverse(inner):
            return paths.Inverse(_reversed(inner))
        case paths.Sequence(steps):
            return paths.Sequence(tuple(map(_reversed, reversed(steps))))
        case paths.Alternative(choices):
            return paths.Alternative(tuple(map(_reversed, choices)))
        case paths.ZeroOrOne(inner):
            return paths.ZeroOrOne(_reversed(inner))
        case paths.ZeroOrMore(inner):
            return paths.ZeroOrMore(_reversed(inner))
        case paths.OneOrMore(inner):
            return paths.OneOrMore(_reversed(inner))
        case _:
            assert_never(path)


def _closure(found: set[Term], step: Callable[[Term], set[Term]]) -> set[Term]:
    waiting = list(found)
    while waiting:
        new = step(waiting.pop()) - found
        found |= new
        waiting += new
    return found


def evaluate_query(
    query: alg.SelectQuery, quads: Iterable[Quad]
) -> Counter[tuple[Term | None, ...]]:
    """The answer of a query over a set of quads, with the count of each row. None is unbound.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> from pyoxigraph import NamedNode
    >>> a, knows, b = (NamedNode(f"http://example.org/{name}") for name in ("a", "knows", "b"))
    >>> query = parse_query("SELECT ?x WHERE { ?x <http://example.org/knows> ?y }")
    >>> for (x,), count in evaluate_query(query, [(a, knows, b, None)]).items():
    ...     print(x, count)
    <http://example.org/a> 1
    """
    return Counter(evaluate_rows(query, quads))


def evaluate_rows(query: alg.SelectQuery, quads: Iterable[Quad]) -> list[tuple[Term | None, ...]]:
    """The rows of an answer, in the order of ORDER BY if the query has one.

    >>> from graphtide.lang.sparql.parse import parse_any_query
    >>> query = parse_any_query("SELECT ?x { VALUES ?x { 1 3 2 } } ORDER BY DESC(?x) LIMIT 2")
    >>> [x.value for (x,) in evaluate_rows(query, [])]
    ['3', '2']
    """
    found = _Dataset(visible_quads(query.dataset, quads)).solutions(query.root, {})
    return [tuple(s.get(v) for v in query.variables) for s in found]


def visible_quads(dataset: alg.Dataset | None, quads: Iterable[Quad]) -> list[Quad]:
    """The quads that a query sees: https://www.w3.org/TR/sparql11-query/#specifyingDataset"""
    if dataset is None:
        return list(quads)
    found: list[Quad] = []
    for s, p, o, g in quads:
        if g in dataset.default:
            found.append((s, p, o, None))
        if g in dataset.named:
            found.append((s, p, o, g))
    return found


class _Dataset:
    """Evaluates algebra nodes over a set of quads."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self.quads = list(dict.fromkeys(quads))
        self._volatile = Volatile()
        self._leaves: dict[int, list[Solution]] = {}  # the same for every outer row
        self._compiled: dict[int, Compiled] = {}  # by the id of the expression, which the query has

    def solutions(self, node: alg.Node, outer: Solution) -> list[Solution]:
        """The solutions of `node`, as a multiset in a list.

        Inside EXISTS, `outer` is the outer solution, whose values replace variables in patterns,
        data and expressions. Elsewhere it is empty.
        """
        match node:
            case alg.Bgp() | alg.Values() | alg.GraphNames() | alg.Path():
                if id(node) not in self._leaves:
                    self._leaves[id(node)] = self._leaf(node)
                return [s for s in self._leaves[id(node)] if compatible(s, outer)]
            case alg.Union(left, right):
                return self.solutions(left, outer) + self.solutions(right, outer)
            case alg.Join() | alg.LeftJoin() | alg.Minus():
                return self._paired(node, outer)
            case alg.Filter(condition, child):
                return [s for s in self.solutions(child, outer) if self._holds(condition, s, outer)]
            case alg.Extend():
                return self._extended(node, outer)
            case alg.Project(child, variables):
                inner = self.solutions(child, _restricted(outer, variables))
                return [_restricted(s, variables) for s in inner]
            case alg.Distinct(child):
                rows = _completed(self.solutions(child, outer), outer, child)
                unique = {frozenset(s.items()) for s in rows}
                return [dict(items) for items in unique]
            case alg.Group(child):
                inner = self.solutions(child, outer)
                return group_solutions(node, _completed(inner, outer, node))
            case alg.Slice(child, variables):
                inner = self.solutions(child, _restricted(outer, variables))
                return slice_solutions(node, _completed(inner, outer, node))
            case _:
                assert_never(node)

    def _leaf(self, node: alg.Bgp | alg.Values | alg.GraphNames | alg.Path) -> list[Solution]:
        match node:
            case alg.Bgp(patterns):
                found: list[Solution] = [{}]
                for pattern in patterns:
                    matches = self._matches(pattern) if found else []
                    found = [{**s, **m} for s in found for m in matches if compatible(s, m)]
                return found
            case alg.Values(variables, rows):
                return [
                    {v: t for v, t in zip(variables, row, strict=True) if t is not None}
                    for row in rows
                ]
            case alg.GraphNames(var):
                return [{var: name} for name in self._names()]
            case alg.Path():
                return self._path(node)
            case _:
                assert_never(node)

    def _names(self) -> list[Term]:
        """The non-empty named graphs."""
        return list(dict.fromkeys(g for _, _, _, g in self.quads if g is not None))

    def _path(self, node: alg.Path) -> list[Solution]:
        if not isinstance(node.graph, Var):
            there = [(s, p, o) for s, p, o, g in self.quads if _is_in(node.graph, g)]
            return [*path_solutions(node, list(dict.fromkeys(there)))]
        found: list[Solution] = []
        for name in self._names():
            triples = [(s, p, o) for s, p, o, g in self.quads if g == name]
            inside = path_solutions(node, triples)
            found += [{**s, node.graph: name} for s in inside if s.get(node.graph, name) == name]
        return found

    def _matches(self, pattern: alg.TriplePattern) -> list[Solution]:
        """One solution per quad that the pattern matches."""
        graph = pattern.graph
        positions = (pattern.subject, pattern.predicate, pattern.object)
        if isinstance(graph, Var):
            found = (_unified((*positions, graph), quad) for quad in self.quads)
        else:
            there = dict.fromkeys(quad[:3] for quad in self.quads if _is_in(graph, quad[3]))
            found = (_unified(positions, triple) for triple in there)
        return [s for s in found if s is not None]

    def _paired(self, node: alg.Join | alg.LeftJoin | alg.Minus, outer: Solution) -> list[Solution]:
        lefts = self.solutions(node.left, outer)
        rights = self.solutions(node.right, outer)
        match node:
            case alg.Join():
                return [{**l, **r} for l in lefts for r in rights if compatible(l, r)]
            case alg.LeftJoin(_, _, condition):
                found: list[Solution] = []
                for l in lefts:
                    merged = [{**l, **r} for r in rights if compatible(l, r)]
                    found += [m for m in merged if self._holds(condition, m, outer)] or [l]
                return found
            case alg.Minus(_, _, ignoring):
                return [
                    l
                    for l in lefts
                    if not any(
                        compatible(l, r) and (l.keys() & r.keys()) - ignoring for r in rights
                    )
                ]
            case _:
                assert_never(node)

    def _holds(self, condition: Expression | None, solution: Solution, outer: Solution) -> bool:
        """Whether the condition is true; an error counts as false."""
        if condition is None:
            return True
        try:
            return effective_boolean(self._value(condition, solution, outer))
        except ExpressionError:
            return False

    def _extended(self, node: alg.Extend, outer: Solution) -> list[Solution]:
        """A chain of BINDs, row by row: within a row, BNODE has one node per label."""
        chain: list[alg.Extend] = []
        below: alg.Node = node
        while isinstance(below, alg.Extend):
            chain.insert(0, below)
            below = below.child
        found = []
        for solution in self.solutions(below, outer):
            self._volatile.next_row()
            extended = solution
            for each in chain:
                extended = self._bound(extended, each, outer)
            if compatible(extended, outer):
                found.append(extended)
        return found

    def _bound(self, solution: Solution, node: alg.Extend, outer: Solution) -> Solution:
        try:
            return {**solution, node.var: self._value(node.expression, solution, outer)}
        except ExpressionError:
            return solution

    def _value(self, expression: Expression, solution: Solution, outer: Solution) -> Term:
        compiled = self._compiled.get(id(expression))
        if compiled is None:
            compiled = compile_expression(expression, self._exists, self._volatile.functions)
            self._compiled[id(expression)] = compiled
        return compiled({**outer, **solution})

    def _exists(self, pattern: alg.Node, solution: Solution) -> bool:
        return bool(self.solutions(pattern, solution))


def compatible(left: Solution, right: Solution) -> bool:
    """https://www.w3.org/TR/sparql11-query/#defn_algCompatibleMapping"""
    if len(left) > len(right):
        left, right = right, left
    for var, term in left.items():  # noqa: SIM110 - twice as fast, and most of the time is spent here
        if right.get(var, term) != term:
            return False
    return True


def _restricted(solution: Solution, variables: Iterable[Var]) -> Solution:
    return {v: solution[v] for v in variables if v in solution}


def _completed(solutions: list[Solution], outer: Solution, node: alg.Node) -> list[Solution]:
    """Solutions to be counted, compared or sorted: there, too, outer values replace variables."""
    if not outer:
        return solutions
    known = _restricted(outer, mentioned(node))
    return [{**known, **solution} for solution in solutions]


def _is_in(graph: NamedNode | alg.DefaultGraph | alg.MergedGraph, name: Term | None) -> bool:
    """Whether the graph `name` is, or is part of, the graph of a pattern."""
    match graph:
        case alg.DefaultGraph():
            return name is None
        case alg.MergedGraph(names):
            return names is None or name in names
        case _:
            return bool(name == graph)


def _unified(positions: tuple[Var | Term, ...], quad: tuple[Term | None, ...]) -> Solution | None:
    """The solution that maps the positions of a pattern to the terms of a triple or quad."""
    solution: dict[Var, Term] = {}
    for position, term in zip(positions, quad, strict=True):
        if term is None or not isinstance(position, Var):
            if position != term:
                return None
        elif solution.setdefault(position, term) != term:
            return None
    return solution
