"""The oracle of this layer: pyoxigraph evaluates the same expression on the same terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph
import pytest
from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Call, Const, Expression, Var
from graphtide.errors import ExpressionError
from graphtide.functions.evaluate import evaluate
from graphtide.rdf.terms import from_pyoxigraph, to_pyoxigraph

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

ITEM = "http://example.com/item/"
VALUE = NamedNode("http://example.com/value")
INFIX = frozenset(("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "&&", "||"))
PREFIX = {"!": "!", "UMINUS": "-", "UPLUS": "+"}


def sparql(expression: Expression) -> str:
    """The expression as SPARQL text."""
    match expression:
        case Var(name):
            return f"?{name}"
        case Const(term):
            return str(term)
        case Call(name, args):
            texts = [sparql(arg) for arg in args]
            if name in INFIX:
                return f"({f' {name} '.join(texts)})"
            if name in PREFIX:
                return f"({PREFIX[name]} {texts[0]})"
            if name in ("IN", "NOT IN"):
                return f"({texts[0]} {name} ({', '.join(texts[1:])}))"
            return f"{name}({', '.join(texts)})"
    raise AssertionError(expression)


def ours_of(term) -> Term | None:
    return None if term is None else from_pyoxigraph(term)


class Oracle:
    """A pyoxigraph store that holds numbered terms and evaluates expressions over them."""

    def __init__(self, terms: list[Term]) -> None:
        self.store = pyoxigraph.Store()
        for number, term in enumerate(terms):
            self.store.add(pyoxigraph.Quad(self.item(number), VALUE, to_pyoxigraph(term)))
        read = self.store.query(f"SELECT ?x ?a {{ ?x {VALUE} ?a }}")
        by_item = {row["x"]: ours_of(row["a"]) for row in read}
        self.terms = [by_item[self.item(number)] for number in range(len(terms))]
        """The terms as the store returns them: it rewrites literals into canonical form."""

    @staticmethod
    def item(number: int) -> NamedNode:
        return NamedNode(f"{ITEM}{number}")

    def unary(self, expression: Expression) -> list[Term | None]:
        """The value of an expression in ?a, for each term in turn; None where it is an error."""
        rows = self.store.query(f"SELECT ?x ({sparql(expression)} AS ?r) {{ ?x {VALUE} ?a }}")
        found = {row["x"]: ours_of(row["r"]) for row in rows}
        return [found[self.item(number)] for number in range(len(self.terms))]

    def binary(self, expression: Expression, left: int) -> list[Term | None]:
        """The value of an expression in ?a and ?b: one term as ?a, each term in turn as ?b."""
        rows = self.store.query(
            f"SELECT ?y ({sparql(expression)} AS ?r) "
            f"{{ {self.item(left)} {VALUE} ?a . ?y {VALUE} ?b }}"
        )
        found = {row["y"]: ours_of(row["r"]) for row in rows}
        return [found[self.item(number)] for number in range(len(self.terms))]


def value_or_none(expression: Expression, row: dict[Var, Term]) -> Term | None:
    """Our value of an expression; None where it is an error."""
    try:
        return evaluate(expression, row)
    except ExpressionError:
        return None


class Comparison:
    """Evaluates one expression over a few terms, by pyoxigraph and by us."""

    def canonical(self, *terms: Term) -> list[Term]:
        return Oracle(list(terms)).terms

    def oracle(self, expression: Expression, *terms: Term) -> Term | None:
        store = pyoxigraph.Store()
        patterns = []
        for name, term in zip("abcd", terms, strict=False):
            store.add(pyoxigraph.Quad(NamedNode(ITEM + name), VALUE, to_pyoxigraph(term)))
            patterns.append(f"<{ITEM}{name}> {VALUE} ?{name} .")
        query = f"SELECT ({sparql(expression)} AS ?r) {{ {' '.join(patterns)} }}"
        (row,) = store.query(query)
        return ours_of(row["r"])

    def ours(self, expression: Expression, *terms: Term) -> Term | None:
        return value_or_none(
            expression, {Var(name): term for name, term in zip("abcd", terms, strict=False)}
        )

    def agree(self, expression: Expression, *terms: Term) -> None:
        """Assert that both give the same term, or both an error."""
        given = self.canonical(*terms)
        expected = self.oracle(expression, *given)
        assert self.ours(expression, *given) == expected, (sparql(expression), given)


@pytest.fixture(scope="session")
def both() -> Comparison:
    return Comparison()


@pytest.fixture(scope="session")
def make_oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture(scope="session")
def ours():
    return value_or_none
