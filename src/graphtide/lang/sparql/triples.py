"""Triple patterns with property lists, blank nodes and collections.

https://www.w3.org/TR/sparql11-query/#QSynTriples. In a pattern each blank node becomes a variable
whose name starts with `_:`, numbered in order of appearance. In a template it stays a blank node.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, cast
from warnings import warn

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, Node, TriplePattern
from graphtide.algebra.paths import Link, PathExpression
from graphtide.algebra.traverse import walk
from graphtide.algebra.triple_terms import match_parts
from graphtide.lang.sparql.graphs import join
from graphtide.lang.sparql.paths import PathParser, path_pattern
from graphtide.lang.sparql.terms import RDF, RDF_NIL, TermParser
from graphtide.rdf.terms import Term, TripleTerm

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST = NamedNode(RDF + "first")
_REST = NamedNode(RDF + "rest")
_REIFIES = NamedNode(RDF + "reifies")
_PLAIN = "here it matches triples with this predicate, and nothing else"
PROPERTY_FUNCTIONS: Final = (
    "http://jena.apache.org/text#",
    "http://jena.apache.org/spatial#",
    "http://jena.apache.org/ARQ/property#",
    "http://jena.apache.org/ARQ/list#",
    "http://jena.hpl.hp.com/ARQ/property#",
    "http://www.bigdata.com/rdf/search#",
    "http://www.ontotext.com/owlim/lucene#",
    "tag:stardog:api:property:textMatch",
    "bif:",
)
"""How predicates begin that other stores compute, and that are not in data."""

_LABEL_HINT = "use a variable: the scope of a blank node label is one basic graph pattern"


@dataclass(slots=True)
class TriplesBlock:
    """A basic graph pattern under construction, with its property paths.

    A triple term with variables is a variable of its own in the pattern; `terms` has its parts.
    """

    triples: list[TriplePattern] = field(default_factory=list)
    paths: list[Node] = field(default_factory=list)
    terms: dict[Var, TripleTerm] = field(default_factory=dict)
    labels: dict[str, Var] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of patterns so far."""
        return len(self.triples) + len(self.paths)


class TriplesParser:
    """Parses blocks of triples into a basic graph pattern."""

    def __init__(self, terms: TermParser) -> None:
        self.tokens = terms.tokens
        self.terms = terms
        self.paths = PathParser(terms)
        self._block = TriplesBlock()
        self._blanks = 0
        self._invented = 0
        self._closed_labels: set[str] = set()
        self._template_labels: dict[str, BlankNode] | None = None

    def triples_block(self) -> None:
        """`subject predicate object ; … .` until something else begins."""
        while True:
            self._triples_same_subject()
            if self.tokens.accept("."):
                if not self.at_subject():
                    return
            elif self.at_subject():
                self.tokens.fail(f"expected '.', ';' or ',' before {self.tokens.token}")
            else:
                return

    def take_pattern(self) -> Node:
        """End the current basic graph pattern, and the scope of its blank node labels."""
        block, self._block = self._block, TriplesBlock()
        self._closed_labels |= block.labels.keys()
        pattern: Node = Bgp(tuple(block.triples))
        if block.terms:
            pattern = match_parts(block.triples, block.paths, block.terms)
        else:
            pattern = reduce(join, block.paths, pattern)
        return pattern

    def as_pattern(self, template: Sequence[TriplePattern]) -> Node:
        """A template as a pattern, in which blank nodes are variables."""
        variables: dict[BlankNode, Var] = {}

        def part(term: Var | Term) -> Var | Term:
            if isinstance(term, TripleTerm):
                return self._triple_term(part(term.subject), term.predicate, part(term.object))
            if not isinstance(term, BlankNode):
                return term
            if term not in variables:
                variables[term] = self.fresh()
            return variables[term]

        outer, self._block = self._block, TriplesBlock()
        self._block.triples += (
            replace(t, subject=part(t.subject), object=part(t.object)) for t in template
        )
        pattern = self.take_pattern()
        self._block = outer
        return pattern

    def begin_scope(self) -> TriplesBlock:
        """Begin a group; returns the enclosing basic graph pattern for `end_scope`."""
        outer, self._block = self._block, TriplesBlock()
        self._closed_labels |= outer.labels.keys()
        return outer

    def end_scope(self, outer: TriplesBlock) -> None:
        """End a group; continue with the enclosing basic graph pattern."""
        self._closed_labels -= outer.labels.keys()
        self._block = outer

    def begin_template(self) -> None:
        """Begin a template, in which blank nodes stay blank nodes."""
        self._template_labels = {}

    def template_triples(self) -> tuple[TriplePattern, ...]:
        """A block of template triples, which may be empty."""
        outer, self._block = self._block, TriplesBlock()
        if self.at_subject():
            self.triples_block()
        block, self._block = self._block, outer
        return tuple(block.triples)

    def end_template(self) -> frozenset[str]:
        """End the template; returns its blank node labels."""
        labels = frozenset(self._template_labels or ())
        self._template_labels = None
        return labels

    def fresh(self) -> Var:
        """A new variable that no query text can contain."""
        self._blanks += 1
        return Var(f"_:b{self._blanks - 1}")

    def invent(self, word: str) -> Var:
        """A new variable that no query text can contain, named after its purpose."""
        self._invented += 1
        return Var(f"_:{word}{self._invented}")

    def at_subject(self) -> bool:
        """Whether a triple comes next."""
        return (
            self.tokens.token.kind in ("var", "iri", "name", "blank")
            or self.tokens.at("(", "[", "<<", "<<(")
            or self.terms.at_literal()
        )

    def _triples_same_subject(self) -> None:
        start = self.tokens.token
        before = self._block.size
        subject = self._node()
        # Only non-empty brackets and reified triples may stand without a property list.
        alone = start.text in ("(", "[", "<<") and self._block.size > before
        if self._at_verb() or not alone:
            self._property_list(subject)

    def _property_list(self, subject: Var | Term) -> None:
        """Predicates and objects."""
        while True:
            verb = self._verb()
            self._object(subject, verb)
            while self.tokens.accept(","):
                self._object(subject, verb)
            if not self.tokens.accept(";"):
                return
            while self.tokens.accept(";"):
                pass
            if not self._at_verb():
                return

    def _object(self, subject: Var | Term, verb: Var | Term | PathExpression) -> None:
        node = self._link(subject, verb)
        reifier: Var | Term | None = None
        while self.tokens.at("~", "{|"):
            if not isinstance(verb, Var | Term):
                self.tokens.fail("a triple with a property path cannot be annotated")
            if self.tokens.accept("~"):
                reifier = self._reifier(subject, verb, node)
                continue
            self.tokens.expect("{|")
            self.tokens.enter()
            self._property_list(reifier or self._reify(self._new_node(), subject, verb, node))
            self.tokens.leave()
            self.tokens.expect("|}")
            reifier = None

    def _reifier(self, subject: Var | Term, verb: Var | Term, node: Var | Term) -> Var | Term:
        """What follows `~`, as the reifier of a triple; a new blank node if nothing does."""
        reifier: Var | Term
        match self.tokens.token.kind:
            case "var":
                reifier = self.terms.variable()
            case "blank":
                reifier = self._label()
            case "iri" | "name":
                reifier = self.terms.iri()
            case _:
                if self.tokens.accept("["):
                    self.tokens.expect("]")
                reifier = self._new_node()
        return self._reify(reifier, subject, verb, node)

    def _reify(
        self, reifier: Var | Term, subject: Var | Term, verb: Var | Term, node: Var | Term
    ) -> Var | Term:
        term = self._triple_term(subject, verb, node)
        self._block.triples.append(TriplePattern(reifier, _REIFIES, term))
        return reifier

    def _link(self, subject: Var | Term, verb: Var | Term | PathExpression) -> Var | Term:
        """The object that comes next, in a triple."""
        place = len(self._block.triples)
        node = self._node()
        if isinstance(verb, Var | Term):
            found: Node = Bgp((TriplePattern(subject, verb, node),))
        else:
            found = path_pattern(subject, verb, node, self.fresh)
        if isinstance(found, Bgp):
            self._block.triples[place:place] = found.patterns
        else:
            self._block.paths.append(found)
        return node

    def _at_verb(self) -> bool:
        return self.tokens.token.kind == "var" or self.paths.at_path()

    def _verb(self) -> Var | Term | PathExpression:
        if self.tokens.token.kind == "var":
            return self.terms.variable()
        if self._template_labels is not None:
            return self.paths.predicate()
        if not self.paths.at_path():
            self.tokens.fail(f"expected a predicate, found {self.tokens.token}")
        bracketed = self.tokens.at("(")
        path = self.paths.path()
        alone = isinstance(path, Link) and not bracketed
        for link in walk(path):
            if isinstance(link, Link) and link.iri.value.startswith(PROPERTY_FUNCTIONS):
                warn(f"{link.iri} is a property function elsewhere: {_PLAIN}", stacklevel=2)
        return path.iri if isinstance(path, Link) and alone else path

    def _node(self) -> Var | Term:
        match self.tokens.token.kind:
            case "var":
                return self.terms.variable()
            case "blank":
                return self._label()
        if self.tokens.at("<<(", "<<"):
            return self._triple()
        if self.tokens.accept("["):
            return self._blank_property_list()
        if self.tokens.accept("("):
            return self._collection()
        return self.terms.constant("a term or variable")

    def _triple(self) -> Var | Term:
        """`<<( s p o )>>`, or `<< s p o ~ r >>`, which stands for its reifier."""
        reified = self.tokens.advance().text == "<<"
        self.tokens.enter()
        subject, verb = self._part(reified=reified), self._simple_verb()
        object_ = self._part(reified=reified)
        if not reified:
            node = self._triple_term(subject, verb, object_)
        elif self.tokens.accept("~"):
            node = self._reifier(subject, verb, object_)
        else:
            node = self._reify(self._new_node(), subject, verb, object_)
        self.tokens.leave()
        self.tokens.expect(">>" if reified else ")>>")
        return node

    def _part(self, *, reified: bool) -> Var | Term:
        """A subject or object inside a triple: no list, and no brackets with properties."""
        if self.tokens.at("<<") and not reified:
            self.tokens.fail("a triple term cannot have a reified triple inside")
        if self.tokens.accept("["):
            self.tokens.expect("]")
            return self._new_node()
        if self.tokens.at("("):
            self.tokens.fail("a list cannot be part of a triple term or reified triple")
        return self._node()

    def _simple_verb(self) -> Var | NamedNode:
        return self.terms.variable() if self.tokens.token.kind == "var" else self.paths.predicate()

    def _triple_term(
        self, subject: Var | Term, predicate: Var | Term, object_: Var | Term
    ) -> Var | Term:
        """A triple term; in a pattern, a variable for it unless it is a constant."""
        term = TripleTerm(*cast("Any", (subject, predicate, object_)))
        no_term = isinstance(subject, Literal | TripleTerm)
        free = any(isinstance(part, Var) for part in (subject, predicate, object_))
        if self._template_labels is not None or not (free or no_term):
            return term
        found = self.invent("triple")
        self._block.terms[found] = term
        return found

    def data_triple(self) -> TripleTerm:
        """`<<( iri predicate term )>>` without variables and blank nodes."""
        self.tokens.enter()
        self.tokens.expect("<<(")
        subject, predicate = self.terms.iri(), self.paths.predicate()
        at_triple = self.tokens.at("<<(")
        object_ = self.data_triple() if at_triple else self.terms.constant("a constant")
        self.tokens.expect(")>>")
        self.tokens.leave()
        return TripleTerm(subject, predicate, object_)

    def _label(self) -> Var | BlankNode:
        label = self.tokens.advance()
        if self._template_labels is not None:
            node = BlankNode(f"l{len(self._template_labels)}")
            return self._template_labels.setdefault(label.text, node)
        if label.text in self._closed_labels:
            message = f"the blank node {label.text} is used in two basic graph patterns"
            self.tokens.fail(message, at=label.start, hint=_LABEL_HINT)
        labels = self._block.labels
        if label.text not in labels:
            labels[label.text] = self.fresh()
        return labels[label.text]

    def _new_node(self) -> Var | BlankNode:
        if self._template_labels is None:
            return self.fresh()
        return BlankNode(self.fresh().name.removeprefix("_:"))

    def _blank_property_list(self) -> Var | BlankNode:
        node = self._new_node()
        self.tokens.enter()
        if not self.tokens.at("]"):
            self._property_list(node)
        self.tokens.leave()
        self.tokens.expect("]")
        return node

    def _collection(self) -> Var | Term:
        cells: list[Var | BlankNode] = []
        triples = self._block.triples
        self.tokens.enter()
        while not self.tokens.accept(")"):
            cell = self._new_node()
            if cells:
                triples.append(TriplePattern(cells[-1], _REST, cell))
            self._link(cell, _FIRST)
            cells.append(cell)
        self.tokens.leave()
        if not cells:
            return RDF_NIL
        triples.append(TriplePattern(cells[-1], _REST, RDF_NIL))
        return cells[0]
