"""Grammar of random queries, over all features of standing queries.

Queries are generated top-down. Each group records its visible variables, so that the text is valid
(BIND needs a new variable) and most filters are meaningful. The grammar avoids what the
recommendation leaves open, or where engines are known to differ:

- inside EXISTS, BIND and VALUES use new variables (substitution into them is undefined), and there
  is no MINUS;
- inside GRAPH, every group starts with a triple pattern, and there is no nested GRAPH;
- inside `GRAPH ?g`, only the group itself uses `?g`, which is joined afterwards, and both sides of
  a MINUS share a variable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from oracles import grammars
from oracles.transactions import GRAPH_NAMES, IRIS, PREDICATES

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES: Final = ("a", "b", "c", "d", "e")
GRAPH_VARIABLE: Final = "g"
_PREDICATES: Final = tuple(grammars.term_text(term) for term in PREDICATES)
_IRIS: Final = tuple(grammars.term_text(term) for term in IRIS)

# Basic graph patterns by shape: 1-4 are variables, P, Q, R predicates, _ a blank node, C a
# constant, W a path, T a triple term `<<( 2 Q 3 )>>`, N is 2 with an annotation `{| Q 3 |}`.
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
    "1 P T",
    "1 P T . 2 Q 3",
    "1 P T . 4 R 3",
    "C P T . 3 R 1",
    "1 P N",
    "1 P N . 4 R 3",
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
# What may begin the body of GRAPH ?g: g is the variable of the graph.
_GRAPH_SHAPES: Final = ("g P 1", "1 P g", "g W 1", "1 W g", "C W g", "g W C", "g W g")


@dataclass(frozen=True, slots=True)
class GroupScope:
    """The context of a group in the query: what may be used there."""

    depth: int  # remaining levels of nested groups
    graph: str | None = None  # the name after GRAPH, inside of one
    graph_body: bool = False  # whether the group is the body of that GRAPH
    exists: bool = False
    nested: bool = False  # whether the group is joined with others
    names: tuple[str, ...] = VARIABLES  # names for new variables
    near: frozenset[str] = frozenset()  # variables of other groups, for joins
    outer: frozenset[str] = frozenset()  # variables of the outer row, for expressions

    @property
    def graph_variable(self) -> bool:
        """Whether the group is inside `GRAPH ?g`."""
        return self.graph is not None and self.graph.startswith("?")

    def inside(self, group: RandomGroup) -> GroupScope:
        """The scope of a group that is an element of `group`."""
        outer = self.outer if self.exists else frozenset[str]()
        near = self.near | group.visible
        if self.graph_variable:
            near -= {GRAPH_VARIABLE}
        inside = replace(self, depth=self.depth - 1, nested=True, graph_body=False)
        return replace(inside, near=near, outer=outer)


@dataclass(frozen=True, slots=True)
class RandomGroup:
    """The text of a group without braces; the variables it may bind, and those it always binds."""

    text: str
    visible: frozenset[str]
    certain: frozenset[str]


@dataclass(frozen=True, slots=True)
class RandomQuery:
    """The text of a query, and its triple patterns: subject, predicate, object, graph or ''."""

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
    """Draws one query. Each basic graph pattern decreases `budget`, so that queries end."""

    def __init__(self, draw: st.DrawFn, budget: int) -> None:
        self._draw = draw
        self._random = grammars.RandomChoices(draw)
        self._budget = budget
        self._new_names = 0
        self._blank_nodes = 0
        self._triples: list[tuple[str, str, str, str]] = []

    def query(self) -> RandomQuery:
        """Prologue, form and group."""
        group = self._group(GroupScope(depth=self._draw(st.sampled_from((1, 2, 3)))))
        dataset = self._dataset() if self._random.chance(8) else ""
        text = grammars.PROLOGUE + self._form(group, dataset)
        return RandomQuery(text, tuple(self._triples))

    def _form(self, group: RandomGroup, dataset: str) -> str:
        around = self._around(group)
        where = f"{dataset}WHERE {{ {group.text} }}"
        match self._random.pick((*("select",) * 15, "ask", "construct", "construct", "describe")):
            case "ask":
                return f"ASK {where}"
            case "construct":
                return f"CONSTRUCT {{ {around.template()} }} {where}"
            case "describe":
                return f"DESCRIBE {around.targets()} {where}"
            case _:
                selection = around.grouped() if self._random.chance(20) else around.plain()
                if self._random.chance(15):
                    selection = around.in_order(selection)
                return selection.around(dataset, group.text)

    def _around(self, group: RandomGroup) -> grammars.FormGrammar:
        return grammars.FormGrammar(self._draw, group.visible, group.certain, self._new_name)

    def _dataset(self) -> str:
        """FROM clauses, which define the default graph of patterns."""
        names = [grammars.term_text(name) for name in GRAPH_NAMES]
        merged = self._draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        named = self._draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        place = (self._random.pick(merged or names) for _ in self._triples)
        self._triples = [(s, p, o, g or next(place)) for s, p, o, g in self._triples]
        lines = [f"FROM {name} " for name in merged] + [f"FROM NAMED {name} " for name in named]
        return "".join(lines)

    def _subselect(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        inside = place.inside(group)
        narrow = self._random.chance(40)
        inner = self._group(inside)
        around = self._around(inner)
        selection = around.plain()
        if narrow:
            selection = around.grouped() if self._random.chance(60) else selection
            selection = around.in_order(selection) if self._random.chance(50) else selection
        text = f"{{ {selection.around('', inner.text)} }}"
        return _and(group, text, selection.shown, selection.certain)

    def _group(self, place: GroupScope) -> RandomGroup:
        group = self._first(place)
        for _ in range(self._draw(st.sampled_from(self._sizes(place)))):
            group = self._then(place, group)
        if place.exists and place.outer and self._random.chance(40):
            group = self._comparison(place, group)
        return self._filter(place, group) if self._random.chance(25) else group

    def _sizes(self, place: GroupScope) -> Sequence[int]:
        """Possible numbers of elements after the first."""
        if place.nested:
            return (0, 0, 0, 1, 2)
        return (0, 0, 1, 1, 2) if place.exists else (1, 2, 2, 3)

    def _first(self, place: GroupScope) -> RandomGroup:
        empty = RandomGroup("", frozenset(), frozenset())
        if place.depth > 0 and place.graph is None and self._random.chance(15):
            kind = self._random.pick(("union", "graph", "values", "nested", "optional", "select"))
            return self._element(kind, place, empty)
        if place.graph_variable and place.graph_body and self._random.chance(15):
            return self._patterns(place, empty, _GRAPH_SHAPES)
        return self._patterns(place, empty)

    def _then(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        if place.depth <= 0 or self._budget <= 0:
            return self._element(self._random.pick(("bind", "filter")), place, group)
        kinds = ["patterns", "optional", "optional", "union", "bind", "nested", "values", "filter"]
        kinds += ["path", "path", "select"]
        if place.graph is None:
            kinds += ["graph", "graph"]
        if not place.exists:
            kinds += ["minus", "minus"]
        return self._element(self._random.pick(kinds), place, group)

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
        words = {letter: self._random.pick(_PREDICATES) for letter in "PQR"}
        words |= {"_": f"_:n{self._blank_nodes}", "g": f"?{GRAPH_VARIABLE}"}
        known = sorted(group.visible | place.near | place.outer)
        triples = []
        for triple in self._random.pick(shapes).split(" . "):
            path = grammars.PathGrammar(self._draw).path() if " W " in triple else None
            words["W"] = path.text if path else ""
            words.pop("T", None)
            if triple.endswith(" T"):
                parts = [self._word(sign, words, known, place.names) for sign in "2Q3"]
                words["T"] = f"<<( {' '.join(parts)} )>>"
            noted = triple.endswith(" N")
            signs = triple.replace(" N", " 2").split()
            s, p, o = (self._word(sign, words, known, place.names) for sign in signs)
            graph, note = place.graph or "", ""
            if noted:
                value = self._word("3", words, known, place.names)
                note = f" {{| {words['Q']} {value} |}}"
                reifier = f"_:r{self._blank_nodes}"
                self._triples += (
                    (reifier, "rdf:reifies", f"<<( {s} {p} {o} )>>", graph),
                    (reifier, words["Q"], value, graph),
                )
            triples.append(f"{s} {p} {o}{note}")
            for link in path.links if path else (p,):
                self._triples.append((s, link, o, graph))
                if path:
                    self._triples.append((o, link, self._random.pick((s, *_IRIS)), graph))
        text = " . ".join(triples) + " ."
        bound = frozenset(word[1:] for word in text.split() if re.fullmatch(r"\?\w+", word))
        return _and(group, text, bound, bound)

    def _word(
        self, sign: str, words: dict[str, str], known: Sequence[str], new: Sequence[str]
    ) -> str:
        if sign == "C":
            return self._random.pick(_IRIS)
        if sign not in words:
            taken = words.values()
            pool = (
                [name for name in known if f"?{name}" not in taken]
                if self._random.chance(50)
                else []
            )
            words[sign] = "?" + self._random.pick(
                pool or [name for name in new if f"?{name}" not in taken]
            )
        return words[sign]

    def _optional(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        inside = place.inside(group)
        inner = self._group(replace(inside, outer=inside.outer | group.visible))
        return _and(group, f"OPTIONAL {{ {inner.text} }}", inner.visible, frozenset())

    def _union(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        branches = [self._group(place.inside(group)) for _ in range(self._random.count(1, 3))]
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
        names = tuple(grammars.term_text(name) for name in GRAPH_NAMES)
        name = self._random.pick((*names, f"?{GRAPH_VARIABLE}", f"?{GRAPH_VARIABLE}"))
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
        cells = (*("UNDEF",) * 12, *_IRIS * 4, *grammars.CONSTANTS)
        table = [[self._random.pick(cells) for _ in names] for _ in range(self._random.count(1, 3))]
        if self._random.chance(30):
            table.append(table[0])
        rows = " ".join(f"({' '.join(row)})" for row in table)
        columns = zip(names, zip(*table, strict=True), strict=True)
        certain = frozenset(name for name, column in columns if "UNDEF" not in column)
        header = " ".join(f"?{name}" for name in names)
        return _and(group, f"VALUES ({header}) {{ {rows} }}", frozenset(names), certain)

    def _bind(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        free = sorted(frozenset(VARIABLES) - group.visible)
        reuse = bool(free) and not place.exists and self._random.chance(30)
        name = self._random.pick(free) if reuse else self._new_name()
        outer = place.outer if place.exists else frozenset[str]()
        value = self._expressions(group.visible, outer).value(2)
        return _and(group, f"BIND({value} AS ?{name})", frozenset({name}), frozenset())

    def _comparison(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        """A filter over the outer row of an EXISTS."""
        outside, inside = sorted(place.outer), sorted(group.visible) or sorted(place.outer)
        operator = self._random.pick(("=", "!=", "<", ">="))
        condition = f"?{self._random.pick(outside)} {operator} ?{self._random.pick(inside)}"
        return replace(group, text=f"{group.text} FILTER({condition})")

    def _filter(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        condition = self._condition(place, group)
        if self._random.chance(35):
            condition = f"COALESCE({condition}, true)"
        return replace(group, text=f"{group.text} FILTER({condition})")

    def _condition(self, place: GroupScope, group: RandomGroup) -> str:
        plain = self._expressions(group.visible, place.outer).condition
        if place.depth <= 0 or self._budget <= 0 or self._random.chance(60):
            return plain()
        exists = f"{self._random.pick(('', 'NOT '))}EXISTS {{ {self._exists(place, group).text} }}"
        match self._random.pick(("alone", "alone", "alone", "and", "or", "not")):
            case "and":
                return f"{plain(1)} && {exists}"
            case "or":
                return f"{exists} || {plain(1)}"
            case "not":
                return f"!({exists} && {plain(1)})"
            case _:
                return exists

    def _exists(self, place: GroupScope, group: RandomGroup) -> RandomGroup:
        # In a nested group the body uses new variables: against the recommendation, pyoxigraph lets
        # variables of other groups leak into such a body.
        names = tuple(self._new_name() for _ in "1234") if place.nested else place.names
        row = place.outer | group.visible
        body = replace(place, depth=place.depth - 1, exists=True, nested=False, graph_body=False)
        return self._group(replace(body, names=names, near=frozenset(), outer=row))

    def _expressions(
        self, visible: frozenset[str], outer: frozenset[str] = frozenset()
    ) -> grammars.ExpressionGrammar:
        """Expressions over visible variables and those of the outer row, rarely over others."""
        names = sorted(visible) * 3 + sorted(outer)
        if not names or self._random.chance(10):
            names += VARIABLES
        return grammars.ExpressionGrammar(self._draw, names)

    def _new_name(self) -> str:
        self._new_names += 1
        return f"n{self._new_names}"


def _and(
    group: RandomGroup, text: str, visible: frozenset[str], certain: frozenset[str]
) -> RandomGroup:
    """The group with another element joined to it."""
    joined = f"{group.text} {text}".strip()
    return RandomGroup(joined, group.visible | visible, group.certain | certain)
