"""The tree of an explanation: frozen data, from which text, JSON and diagrams are made; its quads.

A `WhyStep` is one part of the query and what became of it: the quads that match a pattern, the
value of a FILTER, "nothing matches" of a NOT EXISTS. Its children are the parts inside it. The
quads come from a `QuadSource`: the graph, or the graph with some changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from graphtide.algebra.nodes import DefaultGraph, MergedGraph
from graphtide.why import render

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

    GraphChoice = Term | DefaultGraph | MergedGraph | None
    """The graph of a pattern; None stands for every named graph."""

Kind = Literal[
    "all", "pattern", "path", "optional", "filter", "exists", "not exists", "minus", "union",
    "bind", "values", "graph", "select", "group", "slice", "event", "no event", "test", "facts",
    "token",
]  # fmt: skip
"""What part of a query a step is. "all" only holds its children together."""

Bindings = Mapping[str, "Term | None"]
"""Some columns of a row; None is unbound."""


class Fact(NamedTuple):
    """A quad that an explanation rests on; `times` are those of its events, if it is in a window.

    >>> from pyoxigraph import Literal, NamedNode
    >>> print(Fact(NamedNode("http://e/a"), NamedNode("http://e/speed"), Literal("fast")).text())
    :a :speed "fast"
    """

    subject: Term
    predicate: Term
    object: Term
    graph: Term | None = None
    times: tuple[int, ...] = ()

    @property
    def quad(self) -> tuple[Term, Term, Term, Term | None]:
        """The quad alone."""
        return self[:4]

    def text(self) -> str:
        """The quad with IRIs shortened to their last segment."""
        text = " ".join(map(render.brief, self[:3]))
        text += f" in {render.brief(self.graph)}" if self.graph is not None else ""
        return text + (f" at {', '.join(map(str, self.times))}" if self.times else "")


class FactChange(NamedTuple):
    """An insert (+1) or a delete (-1) of a quad."""

    diff: int
    fact: Fact

    def text(self) -> str:
        """A sign and the quad."""
        return f"{'+' if self.diff > 0 else '-'} {self.fact.text()}"


@dataclass(frozen=True, slots=True)
class WhyStep:
    """One part of a query, what it rests on, and whether it holds."""

    kind: Kind
    text: str = ""
    facts: tuple[Fact, ...] = ()
    children: tuple[WhyStep, ...] = ()
    note: str = ""
    holds: bool = True

    def walk(self) -> Iterator[WhyStep]:
        """The step and all steps below it, parents first."""
        rest = [self]
        while rest:
            step = rest.pop()
            yield step
            rest += reversed(step.children)


def together(*steps: WhyStep) -> WhyStep:
    """Steps beside each other; those that only hold others together are resolved."""
    flat = tuple(each for step in steps for each in parts(step))
    holds = all(step.holds for step in flat)
    return flat[0] if len(flat) == 1 else WhyStep("all", children=flat, holds=holds)


def parts(step: WhyStep) -> tuple[WhyStep, ...]:
    """The steps that a step holds together, or itself."""
    return step.children if step.kind == "all" else (step,)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a row is, was or is not in an answer.

    `derivations` are the ways in which the row follows from the quads; of a row that is not there,
    the closest attempt. `changes` are the changes that made a row come or go; of a row that is not
    there, changes that would make it appear. `notes` say what is not shown, and why.
    """

    query: str
    row: Bindings
    title: str
    derivations: tuple[WhyStep, ...] = ()
    changes: tuple[FactChange, ...] = ()
    notes: tuple[str, ...] = ()
    changed_by: str = ""

    def facts(self) -> tuple[Fact, ...]:
        """The quads that the derivations rest on, each once."""
        steps = (step for derivation in self.derivations for step in derivation.walk())
        return tuple(dict.fromkeys(fact for step in steps for fact in step.facts))

    def first_failure(self) -> WhyStep | None:
        """The first part of the query that does not hold; None if all do."""
        rest = [*reversed(self.derivations)]
        while rest:
            step = rest.pop()
            failing = [child for child in step.children if not child.holds]
            if not step.holds and not failing:
                return step
            rest += [] if step.holds else reversed(failing)
        return None

    def text(self) -> str:
        """The explanation as lines of text."""
        return render.text(self)

    def json(self) -> str:
        """The explanation as JSON, with terms in N-Triples."""
        return render.json_text(self)

    def mermaid(self) -> str:
        """The explanation as a Mermaid flowchart."""
        return render.mermaid(self)

    def html(self) -> str:
        """The explanation as nested lists of HTML, every text escaped."""
        return render.html(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


# --- quads ---


class QuadSource(Protocol):
    """A set of quads in which those of a pattern can be found."""

    def find(
        self,
        subject: Term | None,
        predicate: Term | None,
        object_: Term | None,
        graph: GraphChoice,
    ) -> Iterable[Fact]:
        """The quads with these terms, None being any; of the named graphs if `graph` is None."""


class FactChanges(Protocol):
    """The changes of a transaction, in which those of some quads can be found."""

    def matching(self, patterns: Iterable[Sequence[Term | None]]) -> list[FactChange]:
        """The changes of quads that have the terms of one of some patterns, None being any."""


def is_in(graph: GraphChoice, name: Term | None) -> bool:
    """Whether the graph `name` is, or is part of, the graph of a pattern.

    >>> is_in(DefaultGraph(), None), is_in(None, None), is_in(MergedGraph(None), None)
    (True, False, True)
    """
    match graph:
        case DefaultGraph():
            return name is None
        case MergedGraph(names):
            return names is None or name in names
        case None:
            return name is not None
        case _:
            return bool(name == graph)


class ChangedQuads:
    """A source with some changes applied: the graph before a transaction, or one that might be."""

    def __init__(self, source: QuadSource, changes: Iterable[FactChange]) -> None:
        self._source = source
        last = {change.fact.quad: change for change in changes}
        self._changed = last.keys()
        self._inserted = [change.fact for change in last.values() if change.diff > 0]
        self._by_term: dict[tuple[int, Term], list[Fact]] = {}
        for fact in self._inserted:
            for at, term in enumerate(fact[:3]):
                self._by_term.setdefault((at, term), []).append(fact)

    def find(
        self,
        subject: Term | None,
        predicate: Term | None,
        object_: Term | None,
        graph: GraphChoice,
    ) -> Iterator[Fact]:
        """The quads with these terms."""
        for fact in self._source.find(subject, predicate, object_, graph):
            if fact.quad not in self._changed:
                yield fact
        wanted = (subject, predicate, object_)
        lists = [self._by_term.get((at, t), []) for at, t in enumerate(wanted) if t is not None]
        for fact in min(lists, key=len, default=self._inserted):
            pairs = zip(wanted, fact[:3], strict=True)
            if is_in(graph, fact.graph) and all(w is None or w == t for w, t in pairs):
                yield fact
