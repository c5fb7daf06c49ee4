"""Random SPARQL expressions over given variables: conditions for FILTER, values for BIND.

Left out on purpose: functions without a fixed answer (NOW, RAND, UUID, BNODE), and quotients that
are no finite decimals, whose last digits SPARQL leaves to the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphtide.testing.pools import IRIS, LITERALS, NAMESPACE, NUMBERS, STRINGS, XSD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.rdf.term import Term

_CONDITIONS: Final = (
    *("comparison",) * 3,
    *("in",) * 2,
    *("same", "test", "bound", "string", "regex", "lang", "value"),
)
_CONNECTIVES: Final = ("or", "or", "and", "not", "if")
_VALUES: Final = (*("leaf",) * 4, "sum", "product", "half", "length", "map", "text", "if")
_TEXTS: Final = ("map", "concat", "substr", "lang", "datatype", "cast", "replace", "before")
_COMPARISONS: Final = ("!=", "!=", "=", "=", "<", "<=", ">", ">=")
_TESTS: Final = ("isIRI", "isBlank", "isLiteral", "isNumeric")
_STRING_TESTS: Final = ("CONTAINS", "STRSTARTS", "STRENDS")
_STRING_MAPS: Final = ("STR", "UCASE", "LCASE", "ENCODE_FOR_URI")
_NUMBER_MAPS: Final = ("ABS", "CEIL", "FLOOR", "ROUND", "-")
_CASTS: Final = ("xsd:integer", "xsd:decimal", "xsd:double", "xsd:string", "xsd:boolean")
_LANGUAGES: Final = ('"*"', '"en"', '"fr"')
_PATTERNS: Final = ('"^a"', '"b$"', '"^[0-9]+$"', '"A", "i"', '""')


def term_text(term: Term) -> str:
    """A term as a query writes it, with the prefixes of `PROLOGUE`.

    >>> print(term_text(IRIS[0]), term_text(NUMBERS[0]))
    :a "1"^^xsd:integer
    """
    text = str(term)
    if isinstance(term, NamedNode):
        return text.replace(f"<{NAMESPACE}", ":").replace(">", "")
    for namespace, prefix in ((XSD, "xsd:"), (NAMESPACE, ":")):
        if f"^^<{namespace}" in text:
            return text.replace(f"<{namespace}", prefix).removesuffix(">")
    return text


PROLOGUE: Final = f"PREFIX : <{NAMESPACE}>\nPREFIX xsd: <{XSD}>\n"
CONSTANTS: Final = (*map(term_text, IRIS), *map(term_text, LITERALS))
_NUMBER_TEXTS: Final = tuple(term_text(term) for term in NUMBERS)
_STRING_TEXTS: Final = tuple(term_text(term) for term in STRINGS)


class ExpressionGrammar:
    """Draws expressions over `variables` (names without question mark)."""

    def __init__(self, draw: st.DrawFn, variables: Sequence[str]) -> None:
        self._draw = draw
        self._variables = tuple(variables)

    def condition(self, depth: int = 2) -> str:
        """An expression that is used as a truth value; it may be an error for some rows."""
        shape = self._pick(_CONDITIONS + _CONNECTIVES if depth > 0 else _CONDITIONS)
        match shape:
            case "comparison":
                operator = self._pick(_COMPARISONS)
                return f"({self.value(depth - 1)} {operator} {self.value(depth - 1)})"
            case "same":
                return f"sameTerm({self._leaf()}, {self._leaf()})"
            case "in":
                options = ", ".join(self._leaf() for _ in range(self._count(1, 3)))
                return f"({self._variable()} {self._pick(('NOT IN', 'IN'))} ({options}))"
            case "test":
                return f"{self._pick(_TESTS)}({self._leaf()})"
            case "bound":
                return f"{self._pick(('', '!'))}BOUND({self._variable()})"
            case "string":
                test = self._pick(_STRING_TESTS)
                return f"{test}({self._text_value()}, {self._pick(_STRING_TEXTS)})"
            case "regex":
                return f"REGEX({self._text_value()}, {self._pick(_PATTERNS)})"
            case "lang":
                return f"LANGMATCHES(LANG({self._variable()}), {self._pick(_LANGUAGES)})"
            case "value":
                return self._variable()
            case _:
                return self._logical(shape, depth - 1)

    def value(self, depth: int = 1) -> str:
        """An expression that is used as a term."""
        if depth < 0:
            return self._leaf()
        match self._pick(_VALUES):
            case "sum":
                return f"({self._number()} {self._pick(('+', '-'))} {self._number()})"
            case "product":
                return f"({self._number()} * {self._number()})"
            case "half":
                return f"({self._number()} / {self._pick(('2', '4.0', '0', '5e-1'))})"
            case "length":
                return f"STRLEN({self._text_value()})"
            case "map":
                return f"{self._pick(_NUMBER_MAPS)}({self._number()})"
            case "text":
                return self._text(depth - 1)
            case "if":
                return self._choice(depth - 1)
            case _:
                return self._leaf()

    def _logical(self, shape: str, depth: int) -> str:
        left = self.condition(depth)
        match shape:
            case "and" | "or":
                return f"({left} {'&&' if shape == 'and' else '||'} {self.condition(depth)})"
            case "not":
                return f"(!({left}))"
            case _:
                return f"IF({left}, {self.condition(depth)}, {self.condition(depth)})"

    def _choice(self, depth: int) -> str:
        if self._draw(st.booleans()):
            return f"COALESCE({self.value(depth)}, {self._variable()}, {self._constant()})"
        return f"IF({self.condition(0)}, {self.value(depth)}, {self.value(depth)})"

    def _text(self, depth: int) -> str:
        match self._pick(_TEXTS):
            case "map":
                return f"{self._pick(_STRING_MAPS)}({self.value(depth)})"
            case "concat":
                return f"CONCAT({self._text_value()}, {self._text_value()})"
            case "substr":
                return f"SUBSTR({self._text_value()}, {self._count(1, 2)})"
            case "lang":
                return f"LANG({self._leaf()})"
            case "datatype":
                return f"DATATYPE({self._leaf()})"
            case "cast":
                return f"{self._pick(_CASTS)}({self._leaf()})"
            case "replace":
                return f'REPLACE({self._text_value()}, "a", "b")'
            case _:
                part = self._pick(("STRBEFORE", "STRAFTER"))
                return f'{part}({self._text_value()}, "a")'

    def _text_value(self) -> str:
        return self._pick((self._variable(), f"STR({self._variable()})", self._pick(_STRING_TEXTS)))

    def _number(self) -> str:
        return self._pick((self._variable(), self._variable(), self._pick(_NUMBER_TEXTS)))

    def _leaf(self) -> str:
        return self._pick((self._variable(), self._variable(), self._constant()))

    def _variable(self) -> str:
        return f"?{self._pick(self._variables)}"

    def _constant(self) -> str:
        return self._pick(CONSTANTS)

    def _count(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def _pick(self, options: Sequence[str]) -> str:
        return self._draw(st.sampled_from(options))
