"""Triple patterns: property lists, blank nodes and collections.

https://www.w3.org/TR/sparql11-query/#QSynTriples. Each blank node becomes a variable whose name
starts with `_:`, numbered in order of appearance.
"""

from __future__ import annotations

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.lang.terms import RDF, RDF_NIL, RDF_TYPE, TermParser
from graphtide.rdf.term import NamedNode, Term

_FIRST = NamedNode(RDF + "first")
_REST = NamedNode(RDF + "rest")
_PATH_HINT = "write a/b as two triple patterns and ^a with subject and object swapped"
_TRIPLE_TERM_HINT = "ask for the parts of the statement with plain triple patterns"


class TriplesParser(TermParser):
    """Reads blocks of triples into one growing basic graph pattern."""

    def __init__(self, text: str, base: str | None = None) -> None:
        super().__init__(text, base)
        self.triples: list[TriplePattern] = []
        self._blanks = 0
        self._labels: dict[str, Var] = {}
        self._closed_labels: set[str] = set()

    def triples_block(self) -> None:
        """`subject predicate object ; … .` until something else begins."""
        while True:
            self._triples_same_subject()
            if self.accept("."):
                if not self._at_subject():
                    return
            elif self._at_subject():
                self.fail(f"expected '.', ';' or ',' before {self.token}")
            else:
                return

    def take_triples(self) -> tuple[TriplePattern, ...]:
        """The triples read so far: a basic graph pattern ends here, and its labels with it."""
        patterns = tuple(self.triples)
        self.triples = []
        self._closed_labels |= self._labels.keys()
        self._labels = {}
        return patterns

    def begin_scope(self) -> tuple[list[TriplePattern], dict[str, Var]]:
        """A group begins: set the basic graph pattern around it aside, to give to `end_scope`."""
        outer = self.triples, self._labels
        self._closed_labels |= self._labels.keys()
        self.triples, self._labels = [], {}
        return outer

    def end_scope(self, triples: list[TriplePattern], labels: dict[str, Var]) -> None:
        """A group ends: go on with the basic graph pattern around it."""
        self._closed_labels -= labels.keys()
        self.triples, self._labels = triples, labels

    def fresh(self) -> Var:
        """A variable that no query can name."""
        self._blanks += 1
        return Var(f"_:b{self._blanks - 1}")

    def _at_subject(self) -> bool:
        return (
            self.token.kind in ("var", "iri", "name", "blank")
            or self.at("(", "[", "<<")
            or self.at_literal()
        )

    def _triples_same_subject(self) -> None:
        bracketed = self.at("(", "[")
        subject = self._node()
        if not bracketed or not self.at(".", "}"):
            self._property_list(subject)

    def _property_list(self, subject: Var | Term) -> None:
        while True:
            predicate = self._verb()
            self._object(subject, predicate)
            while self.accept(","):
                self._object(subject, predicate)
            if not self.accept(";"):
                return
            while self.accept(";"):
                pass
            if not self._at_verb():
                return

    def _object(self, subject: Var | Term, predicate: Var | Term) -> None:
        place = len(self.triples)
        node = self._node()
        self.triples.insert(place, TriplePattern(subject, predicate, node))
        if self.at("~", "{|"):
            self.refuse("an annotated triple", _TRIPLE_TERM_HINT)

    def _at_verb(self) -> bool:
        token = self.token
        return token.kind in ("var", "iri", "name") or token.text == "a" or self.at("^", "!", "(")

    def _verb(self) -> Var | Term:
        if self.token.kind == "var":
            return self.variable()
        if self.token.kind == "word" and self.token.text == "a":
            start, verb = self.advance().start, RDF_TYPE
        elif self.at("^", "!", "("):
            self.refuse("a property path", _PATH_HINT)
        elif self.at_iri():
            start, verb = self.token.start, self.iri()
        else:
            self.fail(f"expected a predicate, found {self.token}")
        if self.at("/", "|", "*", "?") or (self.at("+") and not self.at_literal()):
            self.refuse("a property path", _PATH_HINT, at=start)
        return verb

    def _node(self) -> Var | Term:
        match self.token.kind:
            case "var":
                return self.variable()
            case "blank":
                return self._label()
        if self.at("<<"):
            self.refuse("a quoted triple", _TRIPLE_TERM_HINT)
        if self.accept("["):
            return self._blank_property_list()
        if self.accept("("):
            return self._collection()
        return self.constant("a term or variable")

    def _label(self) -> Var:
        label = self.advance()
        if label.text in self._closed_labels:
            hint = "use a variable instead: blank labels do not reach over group boundaries"
            message = f"the blank node {label.text} is used in two basic graph patterns"
            self.fail(message, at=label.start, hint=hint)
        if label.text not in self._labels:
            self._labels[label.text] = self.fresh()
        return self._labels[label.text]

    def _blank_property_list(self) -> Var:
        node = self.fresh()
        if not self.at("]"):
            self._property_list(node)
        self.expect("]")
        return node

    def _collection(self) -> Var | Term:
        cells: list[Var] = []
        while not self.accept(")"):
            cell = self.fresh()
            if cells:
                self.triples.append(TriplePattern(cells[-1], _REST, cell))
            self._object(cell, _FIRST)
            cells.append(cell)
        if not cells:
            return RDF_NIL
        self.triples.append(TriplePattern(cells[-1], _REST, RDF_NIL))
        return cells[0]
