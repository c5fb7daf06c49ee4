"""Translate algebra to a physical plan: one case per algebra node."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, assert_never, cast

from pyoxigraph import Literal

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.queries import with_dataset
from graphtide.algebra.rewrite import conjuncts, rewrite
from graphtide.algebra.traverse import walk
from graphtide.algebra.trees import Steps, finish
from graphtide.algebra.variables import certain_columns, mentioned, merge
from graphtide.algebra.variables import schema as schema_of
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions.aggregates import aggregate
from graphtide.plan import counting, make
from graphtide.plan import patterns as bgp
from graphtide.plan.cost import plan_cost
from graphtide.plan.demand import on_demand
from graphtide.plan.order import join_best
from graphtide.plan.paths import plan_path
from graphtide.plan.patterns import Choices, Strategy
from graphtide.plan.physical import Constant, Physical, QueryPlan, Search, Unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.plan.physical import Counting


def build_plan(query: alg.SelectQuery, choices: Choices | Strategy) -> QueryPlan:
    """The physical plan of a query, for a strategy or for detailed choices."""
    if not isinstance(choices, Choices):
        choices = Choices(choices)
    return build_prepared(prepared(query, choices), choices)


def prepared(query: alg.SelectQuery, choices: Choices) -> alg.SelectQuery:
    """A query with its dataset worked in and rewritten: the same for all strategies."""
    return _prepared(query, union=choices.union, as_written=choices.pinned == "written")


@lru_cache(maxsize=256)
def _prepared(query: alg.SelectQuery, *, union: bool, as_written: bool) -> alg.SelectQuery:
    query = with_dataset(query, union=union)
    return query if as_written else replace(query, root=rewrite(query.root))


def build_prepared(query: alg.SelectQuery, choices: Choices) -> QueryPlan:
    """The physical plan of a query that is `prepared`."""
    builder = _Builder(choices)
    root = make.keep(finish(builder.build(query.root)), query.variables)
    if choices.strategy == "counting" and not builder.counted:
        raise builder.refused or UnsupportedError(
            "counting does not apply: the query has no aggregate, DISTINCT or EXISTS over a join"
        )
    root = on_demand(root, choices.statistics)
    return QueryPlan(root, query.variables, choices.strategy, query.text, query.form)


def as_existence(condition: Expression) -> tuple[Exists, bool] | None:
    """The EXISTS of a condition that is EXISTS or NOT EXISTS, and whether it is negated."""
    match condition:
        case Exists():
            return condition, False
        case Call("!", (Exists() as inner,)):
            return inner, True
        case _:
            return None


def _operands(node: alg.Node) -> list[alg.Node]:
    """The operands of nested joins, from left to right."""
    found: list[alg.Node] = []
    rest = [node]
    while rest:
        match rest.pop():
            case alg.Join(left, right):
                rest += (right, left)
            case operand:
                found.append(operand)
    return found


def _nothing(node: alg.Group) -> list[tuple[Var, Expression]]:
    """The aggregates of a group without rows that have a value."""
    found: list[tuple[Var, Expression]] = []
    for each in node.aggregates:
        with suppress(ExpressionError):
            found.append((each.var, Const(aggregate(each.function, [], each.separator))))
    return found


@dataclass(slots=True)
class _Builder:
    """Builds nodes; inside EXISTS, `given` is the plan of the outer rows.

    Its methods are steps for `finish`, because groups may be deep.
    """

    choices: Choices
    numbers: count[int] = field(default_factory=count)
    counted: bool = False
    refused: UnsupportedError | None = None

    def build(self, node: alg.Node, given: Physical | None = None) -> Steps[Physical]:
        match node:
            case alg.Bgp(patterns):
                return self._joined(given, bgp.plan_patterns(patterns, self.choices))
            case alg.Join(left, right):
                return cast("Physical", (yield self._join(left, right, given)))
            case alg.LeftJoin(left, right, condition):
                known = self._anchored(given, right)
                rows = yield self.build(left, known)
                joined = yield self._left_join(rows, right, condition, known)
                return make.without_copies(joined, given, known)
            case alg.Filter(condition, child):
                return cast("Physical", (yield self._filter(condition, child, given)))
            case alg.Union(left, right):
                return make.union((yield self.build(left, given)), (yield self.build(right, given)))
            case alg.Minus(left, right, ignoring):
                known = self._anchored(given, right)
                rows = yield self.build(left, known)
                columns = rows.schema if given is None else schema_of(left)
                counting = frozenset(schema_of(right)).intersection(columns) - ignoring
                rest = yield self._minus(rows, right, counting, known)
                return make.without_copies(rest, given, known)
            case alg.Extend():
                computed: list[tuple[Var, Expression]] = []
                while isinstance(node, alg.Extend):
                    computed.append((node.var, node.expression))
                    node = node.child
                return cast(
                    "Physical",
                    (yield self._extend((yield self.build(node, given)), computed[::-1])),
                )
            case alg.Values(variables, rows):
                bound = certain_columns(variables, rows)
                return self._joined(given, Constant(rows, variables, bound))
            case alg.GraphNames(var):
                return self._joined(given, make.graph_names(var))
            case alg.Project(child, variables):
                kept = () if given is None else given.schema
                return make.keep((yield self.build(child, given)), merge(variables, kept))
            case alg.Distinct() if given is not None and not isinstance(given, Unique):
                return cast("Physical", (yield self._per_row(node, given)))
            case alg.Distinct(child):
                if given is None and isinstance(child, alg.Project):
                    counted = yield self._counted(child.child, child.variables)
                    if counted is not None:
                        return cast("Physical", counted)
                return make.unique((yield self.build(child, given)))
            case alg.Path():
                return self._joined(given, plan_path(node, next(self.numbers)))
            case alg.Group() | alg.Slice() if given and bgp.reads_outer(
                node, frozenset(given.schema)
            ):
                return cast("Physical", (yield self._per_row(node, given)))
            case alg.Group(child, keys, aggregates):
                groups = yield self._counted(child, keys, aggregates, always=not keys)
                if groups is None:
                    groups = make.group((yield self.build(child)), keys, aggregates)
                return self._joined(given, groups)
            case alg.Slice(child):
                return self._joined(given, make.top((yield self.build(child)), node))
            case _:
                assert_never(node)

    def _per_row(
        self, node: alg.Distinct | alg.Group | alg.Slice, given: Physical
    ) -> Steps[Physical]:
        """What counts or compares rows, separately for each distinct outer row.

        Hidden columns say for which one; by them, the result is joined with the outer rows.
        """
        read = mentioned(node)
        outer = tuple(v for v in given.schema if v in read)
        names = tuple(Var(f".row{next(self.numbers)}") for _ in outer)
        known = make.copied(make.unique(make.keep(given, outer)), outer, names)
        rows = yield self.build(node.child, known)
        match node:
            case alg.Distinct():
                found: Physical = make.unique(rows)
            case alg.Slice(_, variables, per=per):
                columns = merge(variables, names)
                found = make.top(rows, replace(node, variables=columns, per=merge(per, names)))
            case alg.Group(_, keys, aggregates):
                found = make.group(rows, merge(keys, names), aggregates)
                if not keys:
                    empty = make.semijoin(known, found, names, negated=True)
                    found = make.union(
                        found, make.compute(make.keep(empty, names), *_nothing(node))
                    )
            case _:
                assert_never(node)
        result = make.join(make.copied(given, outer, names), found)
        return make.keep(result, tuple(v for v in result.schema if v not in names))

    def _counted(
        self,
        node: alg.Node,
        keys: tuple[Var, ...],
        aggregates: tuple[alg.Aggregate, ...] = (),
        *,
        always: bool = False,
    ) -> Steps[Physical | None]:
        """The groups of a join by `counting`, if that is the strategy and applies to them."""
        if self.choices.strategy != "counting":
            return None
        joined, steps = counting.peeled(node)
        operands = _operands(joined)
        inputs: list[Physical] = []
        for operand in operands if all(map(counting.is_input, operands)) else ():
            if isinstance(operand, alg.Bgp):
                inputs += map(make.matches, dict.fromkeys(operand.patterns))
            else:
                inputs.append((yield self.build(operand)))
        try:
            found = counting.grouped(
                inputs, steps, keys, aggregates, always=always, cost=self._cost_of_tree
            )
        except UnsupportedError as why:
            self.refused = self.refused or why
            return None
        self.counted = True
        return found

    def _cost_of_tree(self, node: Counting) -> float:
        return plan_cost(node, self.choices.expect).score

    def _joined(self, given: Physical | None, plan: Physical) -> Physical:
        return plan if given is None else make.join(given, plan)

    def _join(self, left: alg.Node, right: alg.Node, given: Physical | None) -> Steps[Physical]:
        """Join; inside EXISTS, the rows of the left side become the outer rows of the right side.

        Except if an expression on the right would read a value that only the left side binds: then
        both sides are evaluated for the outer rows, and joined per outer row.
        """
        if given is None:
            if self.choices.pinned is not None:
                return make.join((yield self.build(left)), (yield self.build(right)))
            parts: list[Physical] = []
            for operand in _operands(alg.Join(left, right)):
                parts += yield self._parts(operand)
            return join_best(parts, self.choices.expect)
        if not bgp.reads_outer(right, frozenset(schema_of(left)) - given.certain):
            return cast("Physical", (yield self.build(right, (yield self.build(left, given)))))
        known = make.anchored(given)
        rows = yield self.build(left, known)
        other = yield self.build(right, make.unique(known))
        return make.without_copies(make.join(rows, other), given, known)

    def _parts(self, node: alg.Node) -> Steps[list[Physical]]:
        """The plans that a join combines for a node.

        Patterns that share no variable are separate parts: a path or a union may connect them, and
        their product would be needlessly large.
        """
        if not isinstance(node, alg.Bgp):
            return [(yield self.build(node))]
        groups = bgp.connected(node.patterns) or [[]]
        return [bgp.plan_patterns(group, self.choices) for group in groups]

    def _anchored(self, given: Physical | None, right: alg.Node) -> Physical | None:
        """The outer rows with hidden copies of their columns, if the right side depends on them."""
        if given is not None and bgp.reads_outer(right, frozenset(given.schema)):
            return make.anchored(given)
        return given

    def _extend(self, plan: Physical, columns: Sequence[tuple[Var, Expression]]) -> Steps[Physical]:
        """Add columns; those in a row that are plain calculations are one node."""
        seen = set(plan.schema)
        plain: list[tuple[Var, Expression]] = []
        for var, expression in columns:
            if var not in seen and not any(isinstance(e, Exists) for e in walk(expression)):
                plain.append((var, expression))
            else:
                plan = yield self._extend_one(make.compute(plan, *plain), var, expression)
                plain = []
            seen.add(var)
        return make.compute(plan, *plain)

    def _extend_one(self, plan: Physical, var: Var, expression: Expression) -> Steps[Physical]:
        """Add a column; inside EXISTS it must equal the value of the outer row, if there is one."""
        schema = merge(plan.schema, (var,))
        wide, flat = yield self._flatten_exists(plan, expression)
        if var not in plan.schema:
            return make.keep(make.compute(wide, (var, flat)), schema)
        value, either = (Var(f".value{next(self.numbers)}") for _ in range(2))
        agree = Call("SAMETERM", (Call("COALESCE", (value, var)), Call("COALESCE", (var, value))))
        both_unbound = Call("!", (Call("||", (Call("BOUND", (value,)), Call("BOUND", (var,)))),))
        kept = make.select(make.compute(wide, (value, flat)), Call("||", (both_unbound, agree)))
        filled = make.compute(kept, (either, Call("COALESCE", (value, var))))
        return make.renamed(filled, tuple(either if v == var else v for v in schema), schema)

    def _filter(
        self, condition: Expression, child: alg.Node, given: Physical | None
    ) -> Steps[Physical]:
        plan: Physical
        parts = conjuncts(condition)
        if (
            given is None
            and isinstance(child, alg.Bgp)
            and self.choices.pushed
            and not bgp.over_merged_graphs(child.patterns)
        ):
            plan, parts = yield self._pushed(child.patterns, parts)
        elif given is None and isinstance(child, alg.Bgp):
            plan, parts = bgp.fuse_checks(
                bgp.plan_patterns(child.patterns, self.choices),
                [(part, as_existence(part)) for part in parts],
                self.choices,
            )
        else:
            plan = yield self.build(child, given)
        # Plain conditions first: they are cheap, and leave fewer rows for the others to store.
        for part in sorted(parts, key=lambda part: as_existence(part) is not None):
            plan = yield self._condition(plan, part)
        return plan

    def _pushed(
        self, patterns: Sequence[alg.TriplePattern], parts: list[Expression]
    ) -> Steps[tuple[Physical, list[Expression]]]:
        """Inputs of a network, filtered by (NOT) EXISTS before they are joined.

        Other inputs may be searched together. Returns also the conditions that no input has all
        variables of.
        """
        groups = bgp.edges(list(dict.fromkeys(patterns)))
        inputs: dict[tuple[alg.TriplePattern, ...], Physical] = {
            tuple(each): make.search(each) for each in groups
        }
        left: list[Expression] = []
        others = list(dict.fromkeys(patterns))
        for part in parts:
            existence = as_existence(part)
            home = tuple(bgp.input_with(groups, existence[0].pattern)) if existence else ()
            if home:
                inputs[home] = yield self._condition(inputs[home], part)
                others = [each for each in others if each not in home]
            else:
                left.append(part)
        plans = list(inputs.values())
        if self.choices.strategy == "search":
            plans = [plan for plan in plans if not isinstance(plan, Search)]
            plans += map(make.search, bgp.connected(others))
        return join_best(plans, self.choices.expect), left

    def _condition(self, plan: Physical, part: Expression) -> Steps[Physical]:
        existence = as_existence(part)
        if existence is not None:
            return cast(
                "Physical", (yield self._exists(plan, existence[0].pattern, negated=existence[1]))
            )
        schema = plan.schema
        wide, flat = yield self._flatten_exists(plan, part)
        return make.keep(make.select(wide, flat), schema)

    def _exists(self, left: Physical, pattern: alg.Node, *, negated: bool) -> Steps[Physical]:
        """Left rows for which a pattern has a solution, or if negated has none."""
        if not bgp.reads_outer(pattern, frozenset(left.schema)):
            reduced = self._reduced(left, pattern) if self.choices.reduced else None
            both = tuple(v for v in schema_of(pattern) if v in left.schema)
            counted = yield self._counted(pattern, both)
            right = reduced or counted or (yield self.build(pattern))
            keys = make.shared(left, right)
            if all(v in left.certain and v in right.certain for v in keys):
                return make.semijoin(left, right, keys, negated=negated)
        taken = bgp.assigned(pattern)
        open_columns = [v for v in left.schema if v not in left.certain or v in taken]
        wide, originals = make.with_copies(left, open_columns)
        solutions = yield self.build(pattern, make.unique(wide))
        matched = make.renamed(solutions, originals, left.schema)
        return make.semijoin(left, matched, left.schema, negated=negated)

    def _reduced(self, left: Physical, pattern: alg.Node) -> Physical | None:
        """The keys of left rows with a match of triple patterns, if that can be reduced."""
        keys = tuple(v for v in schema_of(pattern) if v in left.schema)
        if not isinstance(pattern, alg.Bgp) or not keys or not left.certain.issuperset(keys):
            return None
        patterns = list(dict.fromkeys(pattern.patterns))
        if bgp.over_merged_graphs(patterns):
            return None
        if self.choices.pushed and self.choices.strategy == "search":
            found = bgp.searched(left, keys, patterns, self.choices.expect)
            if found is not None:
                return found
        parts = [make.search(group) for group in bgp.edges(patterns)]
        return bgp.matched(left, keys, parts, self.choices.expect)

    def _flatten_exists(
        self, plan: Physical, expression: Expression
    ) -> Steps[tuple[Physical, Expression]]:
        """Replace each EXISTS in an expression by a hidden boolean column."""
        match expression:
            case Exists(pattern):
                flag = Var(f".exists{next(self.numbers)}")
                sides = []
                for there in (True, False):
                    rows = yield self._exists(plan, pattern, negated=not there)
                    sides.append(make.compute(rows, (flag, Const(Literal(there)))))
                return make.union(sides[0], sides[1]), flag
            case Call(name, args):
                flat: list[Expression] = []
                for arg in args:
                    plan, one = (
                        (yield self._flatten_exists(plan, arg))
                        if isinstance(arg, Call | Exists)
                        else (plan, arg)
                    )
                    flat.append(one)
                return plan, Call(name, tuple(flat))
            case _:
                return plan, expression

    def _right_side(self, right: alg.Node, given: Physical | None) -> Steps[Physical]:
        """The right side of OPTIONAL or MINUS; inside EXISTS for the outer rows."""
        if given is not None and bgp.reads_outer(right, frozenset(given.schema)):
            return cast("Physical", (yield self.build(right, make.unique(given))))
        return cast("Physical", (yield self.build(right)))

    def _left_join(
        self, left: Physical, right: alg.Node, condition: Expression | None, given: Physical | None
    ) -> Steps[Physical]:
        """L ⟕ R = J + (L ▷ J) with J = σ(L ⋈ R)."""
        other = yield self._right_side(right, given)
        open_columns = [v for v in make.shared(left, other) if v not in left.certain]
        wide, originals = make.with_copies(left, open_columns)
        matched = make.join(wide, other)
        if condition is not None:
            for part in conjuncts(condition):
                matched = yield self._condition(matched, part)
        sources = make.renamed(matched, originals, left.schema)
        unmatched = make.semijoin(left, sources, left.schema, negated=True)
        schema = merge(left.schema, other.schema)
        return make.union(make.keep(matched, schema), unmatched)

    def _minus(
        self, left: Physical, right: alg.Node, counting: frozenset[Var], given: Physical | None
    ) -> Steps[Physical]:
        """Left rows without a compatible right row that shares a bound variable of `counting`."""
        if not counting:
            return left
        other = yield self._right_side(right, given)
        both = make.shared(left, other)
        if all(v in left.certain and v in other.certain for v in both):
            return make.semijoin(left, other, both, negated=True)
        overlap = tuple(v for v in both if v in counting)
        open_columns = [v for v in both if v not in left.certain]
        wide, originals = make.with_copies(left, open_columns)
        matched = make.join(wide, make.unique(make.keep(other, both)), overlap=overlap)
        return make.semijoin(
            left, make.renamed(matched, originals, left.schema), left.schema, negated=True
        )
