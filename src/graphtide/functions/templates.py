"""Templates of CONSTRUCT and Update: quads with variables and blank nodes, instantiated per row."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph, MergedGraph, TriplePattern
from graphtide.errors import ExpressionError
from graphtide.functions.values import plain_of
from graphtide.rdf.terms import TripleTerm, triple_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.functions.logic import Compiled, Row
    from graphtide.rdf.terms import Term

FilledQuad = tuple["Term", "Term", "Term", "Term | None"]
"""Subject, predicate, object, and the graph; None is the default graph."""


def fill_template(
    template: Iterable[TriplePattern], row: Row, *, scope: str = ""
) -> list[FilledQuad]:
    """The quads of a template for one row, without those with an unbound or misplaced term.

    A blank node is a function of its label, the row and `scope`.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> about = TriplePattern(BlankNode("x"), NamedNode("ex:about"), Var("it"))
    >>> row = {Var("it"): NamedNode("ex:a")}
    >>> fill_template([about], row) == fill_template([about], row)
    True
    >>> fill_template([about], row, scope="1") == fill_template([about], row)
    False
    >>> fill_template([about], {})
    []
    """
    filled = (_quad(pattern, row, scope) for pattern in template)
    return [quad for quad in filled if quad is not None]


def _quad(pattern: TriplePattern, row: Row, scope: str) -> FilledQuad | None:
    parts = (pattern.subject, pattern.predicate, pattern.object)
    subject, predicate, object_ = (_term(part, row, scope) for part in parts)
    if not isinstance(subject, NamedNode | BlankNode) or object_ is None:
        return None
    if not isinstance(predicate, NamedNode):
        return None
    if isinstance(pattern.graph, DefaultGraph):
        return subject, predicate, object_, None
    assert not isinstance(pattern.graph, MergedGraph)  # noqa: S101 - a template names one graph
    graph = _term(pattern.graph, row, scope)
    return (subject, predicate, object_, graph) if isinstance(graph, NamedNode) else None


def _term(part: Var | Term, row: Row, scope: str) -> Term | None:
    match part:
        case Var():
            return row.get(part)
        case BlankNode():
            return _blank_node(part.value, row, scope)
        case TripleTerm(subject, predicate, object_):
            parts = [_term(each, row, scope) for each in (subject, predicate, object_)]
            bound = [each for each in parts if each is not None]
            with suppress(ValueError, TypeError):  # a part that is misplaced, or unbound
                return triple_term(*bound)
            return None
        case _:
            return part


def build_template_node(arguments: Sequence[Compiled]) -> Compiled:
    """The blank node of a template for a row, from its label and the row's names and values."""
    label, *values = arguments

    def make(row: Row) -> Term:
        bound: dict[Var, Term] = {}
        for name, value in zip(values[::2], values[1::2], strict=True):
            with suppress(ExpressionError):
                bound[Var(plain_of(name(row)))] = value(row)
        return _blank_node(plain_of(label(row)), bound, "")

    return make


def _blank_node(label: str, row: Row, scope: str) -> BlankNode:
    values = sorted(f"{var.name} {term}" for var, term in row.items())
    return BlankNode(blank_label(label, values, scope))


def blank_label(label: str, values: list[str], scope: str) -> str:
    """The label of a template's blank node for a row: names and values, in order.

    >>> blank_label("x", ["it <ex:a>"], "1")[:8]
    't033d302'
    """
    return f"t{sha256(chr(0).join([scope, label, *values]).encode()).hexdigest()[:32]}"
