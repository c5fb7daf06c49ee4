"""`text:query`, in the form of Jena, as patterns and conditions over the words of literals.

https://jena.apache.org/documentation/query/text-query.html. The subject is a node, or a list of
variables `(?s ?score ?literal)`; the object is a query, or a list of properties, a query, a limit
and a language such as `"lang:en"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Expression, Var
from graphtide.algebra.rewrite import conjunction
from graphtide.algebra.trees import balanced
from graphtide.errors import ExpressionError
from graphtide.functions.extensions.text import MATCHES, SCORE, parse_text_query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.rdf.terms import Term

TEXT_QUERY: Final = NamedNode("http://jena.apache.org/text#query")
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
"""How predicates begin that other stores compute, and nobody has in data."""

_LANGUAGE: Final = "lang:"
_MOST_OUTPUTS: Final = 3


@dataclass(frozen=True, slots=True)
class TextSearch:
    """One `text:query`: a row for each triple whose object matches, with any property if none is.

    With a limit, the rows of the highest scores; equal scores are in the order of subject and
    literal.
    """

    subject: Var | Term
    score: Var | None
    literal: Var
    properties: tuple[NamedNode, ...]
    query: str
    language: str | None = None
    limit: int | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether it is a triple pattern and a condition."""
        return self.score is None and self.limit is None and len(self.properties) < 2

    @property
    def condition(self) -> Expression:
        """What the literal has to meet."""
        conditions: list[Expression] = [
            Call(MATCHES, (self.literal, Const(Literal(self.query)))),
        ]
        if self.language is not None:
            tag = Call("LANG", (self.literal,))
            conditions.append(Call("LANGMATCHES", (tag, Const(Literal(self.language)))))
        return conjunction(conditions)

    def pattern(self, predicate: Var | NamedNode) -> alg.TriplePattern:
        """The triples whose objects are searched."""
        return alg.TriplePattern(self.subject, predicate, self.literal)

    def node(self, fresh: Callable[[], Var]) -> alg.Node:
        """The search as an operator tree."""
        each: list[alg.Node] = [
            alg.Bgp((self.pattern(name),)) for name in self.properties or (fresh(),)
        ]
        node: alg.Node = alg.Filter(self.condition, balanced(alg.Union, each))
        score = self.score
        if score is None and self.limit is not None:
            score = fresh()
        if score is not None:
            node = alg.Extend(node, score, Call(SCORE, (self.literal, Const(Literal(self.query)))))
        if self.limit is None or score is None:
            return node
        shown = (*((self.subject,) if isinstance(self.subject, Var) else ()), self.literal, score)
        return alg.Slice(node, shown, (alg.OrderKey(score, descending=True),), limit=self.limit)


def text_search(
    outputs: Sequence[Var | Term], arguments: Sequence[Var | Term], fresh: Callable[[], Var]
) -> TextSearch:
    """The search of a subject, or list of outputs, and arguments; `ExpressionError` if it is none.

    >>> words = Literal("tide OR ebb")
    >>> found = text_search(
    ...     (Var("s"),), (NamedNode("ex:name"), words, Literal(5)), lambda: Var("l")
    ... )
    >>> found.properties, found.query, found.limit
    ((<NamedNode value=ex:name>,), 'tide OR ebb', 5)
    """
    if not 0 < len(outputs) <= _MOST_OUTPUTS:
        raise ExpressionError("text:query has ?s, (?s ?score) or (?s ?score ?literal) before it")
    subject, *rest = outputs
    names = [each for each in rest if isinstance(each, Var)]
    if len(names) < len(rest) or len({subject, *names}) < len(outputs):
        raise ExpressionError("the outputs of text:query are different variables")
    score = names[0] if names else None
    literal = names[1] if len(names) > 1 else fresh()
    properties: list[NamedNode] = []
    left = list(arguments)
    while left and isinstance(left[0], NamedNode):
        properties.append(left[0])
        del left[0]
    words = left.pop(0) if left else None
    if not isinstance(words, Literal) or _is_number(words):
        raise ExpressionError("text:query takes properties, and then its words as a constant text")
    parse_text_query(words.value)
    language, limit = words.language, None
    for each in left:
        if not isinstance(each, Literal):
            raise ExpressionError(f"text:query takes no {each} after its words")
        if _is_number(each):
            limit = int(each.value)
        elif each.value.startswith(_LANGUAGE):
            language = each.value.removeprefix(_LANGUAGE)
        else:
            raise ExpressionError(f"text:query takes a limit or a language, not {each}")
    # Jena writes -1 for all
    limit = None if limit is not None and limit < 0 else limit
    unique = tuple(dict.fromkeys(properties))
    return TextSearch(subject, score, literal, unique, words.value, language, limit)


def _is_number(literal: Literal) -> bool:
    return literal.datatype.value == "http://www.w3.org/2001/XMLSchema#integer"
