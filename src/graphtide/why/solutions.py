"""Solutions with the steps they follow from, and the words for the parts of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Exists, Expression, Var
from graphtide.algebra.variables import mentioned
from graphtide.plan import describe as words
from graphtide.why import tree
from graphtide.why.render import values_text
from graphtide.why.tree import Fact, WhyStep

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

Solution = Mapping[Var, "Term"]

NOTHING: Final[Solution] = {}


class Found(NamedTuple):
    """A solution, and the step that says what it follows from."""

    solution: Solution
    step: WhyStep


def only(solution: Solution, variables: Iterable[Var]) -> dict[Var, Term]:
    """A solution restricted to some variables."""
    return {v: solution[v] for v in variables if v in solution}


def compatible(left: Solution, right: Solution) -> bool:
    """https://www.w3.org/TR/sparql11-query/#defn_algCompatibleMapping"""
    return all(left[v] == right[v] for v in left.keys() & right.keys())


def agreed(want: Solution, outer: Solution, variables: Iterable[Var]) -> Solution | None:
    """What is known of some variables from two sides; None if they disagree."""
    one, other = only(want, variables), only(outer, variables)
    return {**one, **other} if compatible(one, other) else None


def positions(pattern: alg.TriplePattern) -> tuple[object, ...]:
    """Subject, predicate, object and graph."""
    return pattern.subject, pattern.predicate, pattern.object, pattern.graph


def value_at(part: object, known: Solution) -> Term | None:
    """The term at a position; None if it is a variable without a value."""
    return known.get(part) if isinstance(part, Var) else part  # type: ignore[return-value]


def unknown(pattern: alg.TriplePattern, known: Solution) -> tuple[int, bool]:
    """How little is known of a pattern: the ends count more than the predicate."""
    free = [isinstance(part, Var) and part not in known for part in positions(pattern)]
    return 2 * free[0] + 2 * free[2] + free[1] + free[3], free[0]


def bound(pattern: alg.TriplePattern, fact: Fact, known: Solution) -> Solution | None:
    """The solution with a pattern's variables bound to a quad; None if they disagree."""
    solution = dict(known)
    for part, term in zip(positions(pattern), fact.quad, strict=True):
        if isinstance(part, Var) and (term is None or solution.setdefault(part, term) != term):
            return None
    return solution


def ends_solution(ends: tuple[object, ...], pair: tuple[Term, ...]) -> dict[Var, Term] | None:
    """The solution that maps the ends of a path pattern to a pair; None if it cannot."""
    found: dict[Var, Term] = {}
    for part, term in zip(ends, pair, strict=True):
        if (found.setdefault(part, term) if isinstance(part, Var) else part) != term:
            return None
    return found


def data_rows(node: alg.Values, want: Solution, outer: Solution) -> Iterator[Found]:
    """The rows of VALUES that agree with what is known."""
    for row in node.rows:
        pairs = zip(node.variables, row, strict=True)
        solution = {v: term for v, term in pairs if term is not None}
        if compatible(solution, want) and compatible(solution, outer):
            note = values_text(solution.items())
            yield Found(
                solution, WhyStep("values", f"VALUES {words.names(node.variables)}", note=note)
            )


def unique(rows: Iterable[Found]) -> Iterator[Found]:
    """Each solution once, with its first derivation."""
    seen: set[frozenset[tuple[Var, Term]]] = set()
    for found in rows:
        key = frozenset(found.solution.items())
        if key not in seen:
            seen.add(key)
            yield found


def selected(found: Found, variables: tuple[Var, ...]) -> Found:
    """A solution projected to some variables."""
    text = f"SELECT {words.names(variables)}"
    step = WhyStep("select", text, children=tree.parts(found.step))
    return Found(only(found.solution, variables), step)


# --- words ---


def pattern_step(pattern: alg.TriplePattern, facts: tuple[Fact, ...], note: str = "") -> WhyStep:
    """The step of one triple pattern."""
    return WhyStep("pattern", words.patterns_text((pattern,)), facts, note=note, holds=bool(facts))


def group_text(node: alg.Node) -> str:
    """A short text of a group: its patterns, with what else there is left out."""
    match node:
        case alg.Bgp(patterns):
            return f"{{ {words.patterns_text(patterns)} }}"
        case alg.Path():
            return f"{{ {words.path_text(node)} }}"
        case alg.Join(alg.Bgp() as left, alg.Path() as right):
            return f"{{ {words.patterns_text(left.patterns)} . {words.path_text(right)} }}"
        case alg.Filter(condition, child) if not any(exists_of(condition)):
            return f"{group_text(child)[:-2]} FILTER {words.expression_text(condition)} }}"
        case _:
            return "{ … }"


def exists_of(expression: Expression) -> Iterator[alg.Node]:
    """The patterns of the EXISTS inside an expression."""
    if isinstance(expression, Exists):
        yield expression.pattern
    elif isinstance(expression, Call):
        for arg in expression.args:
            yield from exists_of(arg)


def variables_read(expression: Expression) -> frozenset[Var]:
    """The variables of an expression outside of EXISTS."""
    match expression:
        case Call(_, args):
            return frozenset[Var]().union(*map(variables_read, args))
        case Exists():
            return frozenset()
        case _:
            return mentioned(expression)
