"""Random queries from a grammar over everything a standing query may say.

A query is grown top-down. Each group knows which variables it has made visible so far, which keeps
the text legal (BIND needs a new variable) and most filters meaningful. Where the recommendation is
silent, or engines are known to differ, the grammar stays away:

- inside EXISTS, variables bound by BIND or VALUES are new ones (substitution into them is
  undefined), and there is no MINUS;
- inside GRAPH, every group starts with a triple pattern, and there is no other GRAPH;
- inside `GRAPH ?g`, only the group itself may mention `?g` (it is joined in afterwards), and both
  sides of a MINUS share a variable;
- groups and ranges inside EXISTS have variables of their own: they may depend on the outer row in
  a way that is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from graphtide.testing.grammars import (
    CONSTANTS,
    PROLOGUE,
    ExpressionGrammar,
    FormGrammar,
    PathGrammar,
    term_text,
)
from graphtide.testing.transactions import GRAPH_NAMES, IRIS, PREDICATES

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES: Final = ("a", "b", "c", "d", "e")
GRAPH_VARIABLE: Final = "g"
_PREDICATES: Final = tuple(term_text(term) for term in PREDICATES)
_IRIS: Final = tuple(term_text(term) for term in IRIS)

# Basic graph patterns by shape. 1-4 stand for variables, P, Q, R for predicates, ? for a variable
# predicate, _ for a blank node, C for a constant, W for a path.
_SHAPES: Final = (
    "1 P 2",
    "1 P 2",
    "1 P 2 . 2 Q 3",
    "1 P 2 . 2 P 3",
    "1 P 2 . 1 Q 3",
    "1 P 2 . 1 P 3",
    "1 P 2 . 3 Q 2",
    "1 P 2 . 2 Q 3 . 3 R 1",
    "1 P 2 . 2 P 3 . 3 P 1",
    "1 P 2 . 2 P 1",
    "1 P 2 . 2 Q 3 . 1 R 4",
    "1 P 2 . 1 Q 2",
    "1 P 2 . 3 Q 4",
    "1 P 1",
    "1 P 1 . 1 Q 2",
    "1 3 2",
    "1 3 2 . 2 3 4",
    "1 1 2",
    "1 P C",
    "C P 1",
    "C 2 1",
    "C P C",
    "1 P C . 1 Q 2",
    "_ P 1",
    "1 P _ . _ Q 2",
)
_PATH_SHAPES: Final = (
    *("1 W 2",) * 4,
    "C W 1",
    "1 W C",
    "1 W 1",
    "C W C",
    "1 P 2 . 2 W 3",
    "1 W 2 . 1 Q 3",
    "_ W 1",
)


@dataclass(frozen=True, slots=True)
class GroupScope:
    """Where in the query a group stands: what may be used there."""

    depth: int  # how many levels of groups may still be nested here
    graph: str | None = None  # the word after GRAPH, when inside one
    graph_body: bool = False  # whether the group is that GRAPH's own
    exists: bool = False
    nested: bool = False  # whether rows of other groups are joined to this group's rows
    names: tuple[str, ...] = VARIABLES  # what a new variable may be called
    near: frozenset[str] = frozenset()  # variables of other groups that patterns may join with
    outer: frozenset[str] = frozenset()  # variables of an enclosing row that expressions may use

    @property
    def graph_variable(self) -> bool:
        """Whether the group is inside `GRAPH ?g`."""
        return self.graph is not None and self.graph.startswith("?")

    def inside(self, group: RandomGroup) -> GroupScope:
        """The place of a group that is an element of `group`."""
        outer = self.outer if self.exists else frozenset[str]()
        near = self.near | group.visible
        if self.graph_variable:
            near -= {GRAPH_VARIABLE}
        inside = replace(self, depth=self.depth - 1, nested=True, graph_body=False)
        return replace(inside, near=near, outer=outer)


@dataclass(frozen=True, slots=True)
class RandomGroup:
    """A group's text without braces; the variables it may bind, and those it binds in every row."""

    text: str
    visible: frozenset[str]
    certain: frozenset[str]


@dataclass(frozen=True, slots=True)
class RandomQuery:
    """A query's text and its triple patterns as words: subject, predicate, object, graph or ''."""

    text: str
    patterns: tuple[tuple[str, str, str, str], ...]


@st.composite
def random_queries(draw: st.DrawFn, *, max_patterns: int = 6) -> RandomQuery:
    """A random query; `max_patterns` bounds its basic graph patterns.

    >>> from hypothesis import find
    >>> find(random_queries(), lambda query: len(query.patterns) > 1).text.startswith("PREFIX")
    True
    """
    return QueryGrammar(draw, max_patterns).query()


class QueryGrammar:
    """Draws one query. `budget` falls with every basic graph pattern, so that queries end."""

    def __init__(self, draw: st.DrawFn, budget: int) -> None:
        self._draw = draw
        self._budget = budget
        self._new_names = 0
        self._blank_nodes = 0
        self._triples: list[tuple[str, str, str, str]] = []

    def query(self) -> RandomQuery:
        """Prologue, form and group."""
        group = self._group(GroupScope(depth=self._draw(st.sampled_from((1, 2, 3)))))
        dataset = self._dataset() if self._chance(8) else ""
        text = PROLOGUE + self._form(group, dataset)
        return RandomQuery(text, tuple(self._triples))

    def _form(self, group: RandomGroup, dataset: str) -> str:
        around = self._around(group)
        where = f"{dataset}WHERE {{ {group.text} }}"
        match self._pick((*("select",) * 15, "ask", "construct", "construct", "describe")):
            case "ask":
                return f"ASK {where}"
            case "construct":
                return f"CONSTRUCT {{ {around.template()} }} {where}"
            case "describe":
                return f"DESCRIBE {around.targets()} {where}"
            case _:
                selection = around.grouped() if self._chance(20) else around.plain()
                if self._chance(15):
                    selection = around.in_order(selection)
                return selection.around(dataset, group.text)

    def _around(self, group: RandomGroup) -> FormGrammar:
        return FormGrammar(self._draw, group.visible, group.certain, self._new_name)

    def _dataset(self) -> str:
        """FROM clauses; patterns of the default graph are then asked of the graphs they name."""
        names = [term_text(name) for name in GRAPH_NAMES]
        merged = self._draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        named = self._draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        place = (self._pick(merged or names) for _ in self._triples)
        self._triples = [(s, p, o, g or next(place)) for s, p, o, g in self._triples]
        lines = [f"FROM {name} " for name in merged] + [f"FROM NAMED {name} " for name in named]
        return "".join(lines)

    def _subselect(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        inside = place.inside(group)
        narrow = self._chance(40)
        if place.exists and narrow:
            names = tuple(self._new_name() for _ in "1234")
            inside = replace(inside, names=names, near=frozenset(), outer=frozenset())
        inner = self._group(inside)
        around = self._around(inner)
        selection = around.plain()
        if narrow:
            selection = around.grouped() if self._chance(60) else selection
            selection = around.in_order(selection) if self._chance(50) else selection
        text = f"{{ {selection.around('', inner.text)} }}"
        return _and(group, text, selection.shown, selection.certain)

    def _group(self, place: GroupScope) -> RandomGroup:
        group = self._first(place)
        for _ in range(self._draw(st.sampled_from(self._sizes(place)))):
            group = self._then(place, group)
        if place.exists and place.outer and self._chance(40):
            group = self._comparison(place, group)
        return self._filter(place, group) if self._chance(25) else group

    def _sizes(self, place: GroupScope) -> Sequence[int]:
        """How many elements may follow the first."""
        if place.nested:
            return (0, 0, 0, 1, 2)
        return (0, 0, 1, 1, 2) if place.exists else (1, 2, 2, 3)

    def _first(self, place: GroupScope) -> RandomGroup:
        empty = RandomGroup("", frozenset(), frozenset())
        if place.depth > 0 and place.graph is None and self._chance(15):
            kind = self._pick(("union", "graph", "values", "nested", "optional", "select"))
            return self._element(kind, place, empty)
        if place.graph_variable and place.graph_body and self._chance(15):
            return self._patterns(place, empty, ("g P 1",))
        return self._patterns(place, empty)

    def _then(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        if place.depth <= 0 or self._budget <= 0:
            return self._element(self._pick(("bind", "filter")), place, group)
        kinds = ["patterns", "optional", "optional", "union", "bind", "nested", "values", "filter"]
        kinds += ["path", "path", "select"]
        if place.graph is None:
            kinds += ["graph", "graph"]
        if not place.exists:
            kinds += ["minus", "minus"]
        return self._element(self._pick(kinds), place, group)

    def _element(self, kind: str, place: GroupScope, group: RandomGroup) -> RandomGroup:
        match kind:
            case "patterns":
                return self._patterns(place, group)
            case "path":
                return self._patterns(place, group, _PATH_SHAPES)
            case "select":
                return self._subselect(place, group)
            case "optional":
                return self._optional(place, group)
            case "union":
                return self._union(place, group)
            case "minus":
                return self._minus(place, group)
            case "graph":
                return self._graph(place, group)
            case "values":
                return self._values(place, group)
            case "bind":
                return self._bind(place, group)
            case "filter":
                return self._filter(place, group)
            case _:
                inner = self._group(place.inside(group))
                return _and(group, f"{{ {inner.text} }}", inner.visible, inner.certain)

    def _patterns(
        self, place: GroupScope, group: RandomGroup, shapes: Sequence[str] = _SHAPES
    ) -> RandomGroup:
        self._budget -= 1
        self._blank_nodes += 1
        words = {letter: self._pick(_PREDICATES) for letter in "PQR"}
        words |= {"_": f"_:n{self._blank_nodes}", "g": f"?{GRAPH_VARIABLE}"}
        known = sorted(group.visible | place.near | place.outer)
        triples = []
        for triple in self._pick(shapes).split(" . "):
            path = PathGrammar(self._draw).path() if " W " in triple else None
            words["W"] = path.text if path else ""
            s, p, o = (self._word(sign, words, known, place.names) for sign in triple.split())
            triples.append(f"{s} {p} {o}")
            graph = place.graph or ""
            for link in path.links if path else (p,):
                self._triples.append((s, link, o, graph))
                if path:
                    self._triples.append((o, link, self._pick((s, *_IRIS)), graph))
        text = " . ".join(triples) + " ."
        bound = frozenset(word[1:] for word in text.split() if re.fullmatch(r"\?\w+", word))
        return _and(group, text, bound, bound)

    def _word(
        self, sign: str, words: dict[str, str], known: Sequence[str], new: Sequence[str]
    ) -> str:
        if sign == "C":
            return self._pick(_IRIS)
        if sign not in words:
            taken = words.values()
            pool = [name for name in known if f"?{name}" not in taken] if self._chance(50) else []
            words[sign] = "?" + self._pick(
                pool or [name for name in new if f"?{name}" not in taken]
            )
        return words[sign]

    def _optional(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        inside = place.inside(group)
        inner = self._group(replace(inside, outer=inside.outer | group.visible))
        return _and(group, f"OPTIONAL {{ {inner.text} }}", inner.visible, frozenset())

    def _union(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        branches = [self._group(place.inside(group)) for _ in range(self._draw(st.integers(1, 3)))]
        if len(branches) == 1:  # every row twice; blank nodes may not occur in two patterns
            self._blank_nodes += 1
            again = branches[0].text.replace("_:", f"_:again{self._blank_nodes}")
            branches.append(replace(branches[0], text=again))
        text = " UNION ".join(f"{{ {branch.text} }}" for branch in branches)
        visible = frozenset[str]().union(*(branch.visible for branch in branches))
        certain = branches[0].certain.intersection(*(branch.certain for branch in branches))
        return _and(group, text, visible, certain)

    def _minus(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        inner = self._group(place.inside(group))
        if place.graph_variable and not (inner.certain & group.certain):
            return group
        return replace(group, text=f"{group.text} MINUS {{ {inner.text} }}")

    def _graph(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        names = tuple(term_text(name) for name in GRAPH_NAMES)
        name = self._pick((*names, f"?{GRAPH_VARIABLE}", f"?{GRAPH_VARIABLE}"))
        bound = frozenset({GRAPH_VARIABLE}) if name.startswith("?") else frozenset[str]()
        inside = place.inside(group)
        inside = replace(inside, graph=name, near=inside.near - bound, outer=inside.outer - bound)
        inner = self._group(replace(inside, graph_body=True))
        text = f"GRAPH {name} {{ {inner.text} }}"
        return _and(group, text, inner.visible | bound, inner.certain | bound)

    def _values(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        names = self._draw(
            st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=2, unique=True)
        )
        if place.exists:
            names = [self._new_name() for _ in names]
        cells = (*("UNDEF",) * 12, *_IRIS * 4, *CONSTANTS)
        table = [[self._pick(cells) for _ in names] for _ in range(self._draw(st.integers(1, 3)))]
        if self._chance(30):
            table.append(table[0])
        rows = " ".join(f"({' '.join(row)})" for row in table)
        columns = zip(names, zip(*table, strict=True), strict=True)
        certain = frozenset(name for name, column in columns if "UNDEF" not in column)
        header = " ".join(f"?{name}" for name in names)
        return _and(group, f"VALUES ({header}) {{ {rows} }}", frozenset(names), certain)

    def _bind(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        free = sorted(frozenset(VARIABLES) - group.visible)
        reuse = bool(free) and not place.exists and self._chance(30)
        name = self._pick(free) if reuse else self._new_name()
        outer = place.outer if place.exists else frozenset[str]()
        value = self._expressions(group.visible, outer).value(2)
        return _and(group, f"BIND({value} AS ?{name})", frozenset({name}), frozenset())

    def _comparison(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        """A filter that reads the row which an EXISTS is asked for."""
        outside, inside = sorted(place.outer), sorted(group.visible) or sorted(place.outer)
        operator = self._pick(("=", "!=", "<", ">="))
        condition = f"?{self._pick(outside)} {operator} ?{self._pick(inside)}"
        return replace(group, text=f"{group.text} FILTER({condition})")

    def _filter(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        condition = self._condition(place, group)
        if self._chance(35):
            condition = f"COALESCE({condition}, true)"
        return replace(group, text=f"{group.text} FILTER({condition})")

    def _condition(self, place: GroupScope, group: RandomGroup) -> str:
        plain = self._expressions(group.visible, place.outer).condition
        if place.depth <= 0 or self._budget <= 0 or self._chance(60):
            return plain()
        exists = f"{self._pick(('', 'NOT '))}EXISTS {{ {self._exists(place, group).text} }}"
        match self._pick(("alone", "alone", "alone", "and", "or", "not")):
            case "and":
                return f"{plain(1)} && {exists}"
            case "or":
                return f"{exists} || {plain(1)}"
            case "not":
                return f"!({exists} && {plain(1)})"
            case _:
                return exists

    def _exists(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        # In a nested group the body's own variables are new ones: pyoxigraph lets variables of
        # other groups leak into such a body, against the recommendation.
        names = tuple(self._new_name() for _ in "1234") if place.nested else place.names
        row = place.outer | group.visible
        body = replace(place, depth=place.depth - 1, exists=True, nested=False, graph_body=False)
        return self._group(replace(body, names=names, near=frozenset(), outer=row))

    def _expressions(
        self, visible: frozenset[str], outer: frozenset[str] = frozenset()
    ) -> ExpressionGrammar:
        """Expressions over visible variables, those of an enclosing row, seldom anything else."""
        names = sorted(visible) * 3 + sorted(outer)
        if not names or self._chance(10):
            names += VARIABLES
        return ExpressionGrammar(self._draw, names)

    def _new_name(self) -> str:
        self._new_names += 1
        return f"n{self._new_names}"

    def _pick(self, options: Sequence[str]) -> str:
        return self._draw(st.sampled_from(options))

    def _chance(self, percent: int) -> bool:
        return self._draw(st.integers(1, 100)) > 100 - percent


def _and(
    group: RandomGroup, text: str, visible: frozenset[str], certain: frozenset[str]
) -> RandomGroup:
    """The group with one more element joined to it."""
    joined = f"{group.text} {text}".strip()
    return RandomGroup(joined, group.visible | visible, group.certain | certain)
