"""Grammars of random SPARQL: expressions, property paths, query forms and solution modifiers.

Expressions exclude non-deterministic functions (NOW, RAND, UUID, BNODE), and quotients that are not
finite decimals, whose precision is implementation-defined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphtide.rdf.terms import TripleTerm
from oracles import transactions as pools

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from graphtide.rdf.terms import Term

_CONDITIONS: Final = (
    *("comparison",) * 3,
    *("in",) * 2,
    *("same", "test", "bound", "string", "regex", "lang", "value"),
)
_CONNECTIVES: Final = ("or", "or", "and", "not", "if")
_VALUES: Final = (*("leaf",) * 4, "sum", "product", "half", "length", "map", "text", "if", "part")
_TEXTS: Final = ("map", "concat", "substr", "lang", "datatype", "cast", "replace", "before")
_COMPARISONS: Final = ("!=", "!=", "=", "=", "<", "<=", ">", ">=")
_TESTS: Final = ("isIRI", "isBlank", "isLiteral", "isNumeric", "isTRIPLE", "hasLANG", "hasLANGDIR")
_TRIPLE_PARTS: Final = ("SUBJECT", "PREDICATE", "OBJECT")
_STRING_TESTS: Final = ("CONTAINS", "STRSTARTS", "STRENDS")
_STRING_MAPS: Final = ("STR", "UCASE", "LCASE", "ENCODE_FOR_URI")
_NUMBER_MAPS: Final = ("ABS", "CEIL", "FLOOR", "ROUND", "-")
_CASTS: Final = ("xsd:integer", "xsd:decimal", "xsd:double", "xsd:string", "xsd:boolean")
_LANGUAGES: Final = ('"*"', '"en"', '"fr"')
_PATTERNS: Final = ('"^a"', '"b$"', '"^[0-9]+$"', '"A", "i"', '""')


def term_text(term: Term) -> str:
    """A term in SPARQL, with the prefixes of `PROLOGUE`.

    >>> print(term_text(pools.IRIS[0]), term_text(pools.NUMBERS[0]))
    :a "1"^^xsd:integer
    """
    if isinstance(term, TripleTerm):
        parts: tuple[Term, ...] = (term.subject, term.predicate, term.object)
        return f"<<( {' '.join(map(term_text, parts))} )>>"
    text = str(term)
    if term == pools.REIFIES:
        return "rdf:reifies"
    if isinstance(term, NamedNode):
        return text.replace(f"<{pools.NAMESPACE}", ":").replace(">", "")
    for namespace, prefix in ((pools.XSD, "xsd:"), (pools.NAMESPACE, ":")):
        if f"^^<{namespace}" in text:
            return text.replace(f"<{namespace}", prefix).removesuffix(">")
    return text


PROLOGUE: Final = (
    f"PREFIX : <{pools.NAMESPACE}>\nPREFIX xsd: <{pools.XSD}>\nPREFIX rdf: <{pools.RDF}>\n"
)
_TERMS: Final[tuple[Term, ...]] = (*pools.IRIS, *pools.LITERALS, *pools.TRIPLES)
CONSTANTS: Final = tuple(map(term_text, _TERMS))
_NUMBER_TEXTS: Final = tuple(term_text(term) for term in pools.NUMBERS)
_STRING_TEXTS: Final = tuple(term_text(term) for term in pools.STRINGS)


class RandomChoices:
    """Draws choices for a grammar from Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def pick(self, options: Sequence[str]) -> str:
        """One of the options."""
        return self._draw(st.sampled_from(options))

    def some(self, options: Sequence[str], most: int) -> list[str]:
        """Between 1 and `most` distinct options."""
        return self._draw(
            st.lists(st.sampled_from(options), min_size=1, max_size=most, unique=True)
        )

    def count(self, low: int, high: int) -> int:
        """A number in a range, bounds included."""
        return self._draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        """True with this probability."""
        return self._draw(st.integers(1, 100)) > 100 - percent


class ExpressionGrammar:
    """Draws expressions over `variables` (names without question mark)."""

    def __init__(self, draw: st.DrawFn, variables: Sequence[str]) -> None:
        self._draw = draw
        self._random = RandomChoices(draw)
        self._variables = tuple(variables)

    def condition(self, depth: int = 2) -> str:
        """A boolean expression; it may be an error for some rows."""
        shape = self._random.pick(_CONDITIONS + _CONNECTIVES if depth > 0 else _CONDITIONS)
        match shape:
            case "comparison":
                operator = self._random.pick(_COMPARISONS)
                return f"({self.value(depth - 1)} {operator} {self.value(depth - 1)})"
            case "same":
                return f"sameTerm({self._leaf()}, {self._leaf()})"
            case "in":
                options = ", ".join(self._leaf() for _ in range(self._random.count(1, 3)))
                return f"({self._variable()} {self._random.pick(('NOT IN', 'IN'))} ({options}))"
            case "test":
                return f"{self._random.pick(_TESTS)}({self._leaf()})"
            case "bound":
                return f"{self._random.pick(('', '!'))}BOUND({self._variable()})"
            case "string":
                test = self._random.pick(_STRING_TESTS)
                return f"{test}({self._text_value()}, {self._random.pick(_STRING_TEXTS)})"
            case "regex":
                return f"REGEX({self._text_value()}, {self._random.pick(_PATTERNS)})"
            case "lang":
                return f"LANGMATCHES(LANG({self._variable()}), {self._random.pick(_LANGUAGES)})"
            case "value":
                return self._variable()
            case _:
                return self._logical(shape, depth - 1)

    def value(self, depth: int = 1) -> str:
        """An expression with any value."""
        if depth < 0:
            return self._leaf()
        match self._random.pick(_VALUES):
            case "sum":
                return f"({self._number()} {self._random.pick(('+', '-'))} {self._number()})"
            case "product":
                return f"({self._number()} * {self._number()})"
            case "half":
                return f"({self._number()} / {self._random.pick(('2', '4.0', '0', '5e-1'))})"
            case "length":
                return f"STRLEN({self._text_value()})"
            case "map":
                return f"{self._random.pick(_NUMBER_MAPS)}({self._number()})"
            case "text":
                return self._text(depth - 1)
            case "if":
                return self._choice(depth - 1)
            case "part":
                return f"{self._random.pick(_TRIPLE_PARTS)}({self._variable()})"
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
        match self._random.pick(_TEXTS):
            case "map":
                return f"{self._random.pick(_STRING_MAPS)}({self.value(depth)})"
            case "concat":
                return f"CONCAT({self._text_value()}, {self._text_value()})"
            case "substr":
                return f"SUBSTR({self._text_value()}, {self._random.count(1, 2)})"
            case "lang":
                return f"LANG({self._leaf()})"
            case "datatype":
                return f"DATATYPE({self._leaf()})"
            case "cast":
                return f"{self._random.pick(_CASTS)}({self._leaf()})"
            case "replace":
                return f'REPLACE({self._text_value()}, "a", "b")'
            case _:
                part = self._random.pick(("STRBEFORE", "STRAFTER"))
                return f'{part}({self._text_value()}, "a")'

    def _text_value(self) -> str:
        return self._random.pick(
            (self._variable(), f"STR({self._variable()})", self._random.pick(_STRING_TEXTS))
        )

    def _number(self) -> str:
        return self._random.pick(
            (self._variable(), self._variable(), self._random.pick(_NUMBER_TEXTS))
        )

    def _leaf(self) -> str:
        return self._random.pick((self._variable(), self._variable(), self._constant()))

    def _variable(self) -> str:
        return f"?{self._random.pick(self._variables)}"

    def _constant(self) -> str:
        return self._random.pick(CONSTANTS)


# --- property paths ---

_LINKS: Final = tuple(term_text(term) for term in pools.PREDICATES)
_SHAPES: Final = (*("closure",) * 4, "sequence", "sequence", "alternative", "inverse", "negated")


@dataclass(frozen=True, slots=True)
class RandomPath:
    """The text of a path in brackets, and the predicates that it follows."""

    text: str
    links: tuple[str, ...]


class PathGrammar:
    """Draws paths of a few steps."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._random = RandomChoices(draw)

    def path(self, depth: int = 2) -> RandomPath:
        """A path other than a predicate."""
        match self._random.pick(_SHAPES):
            case "closure":
                inner = self._part(depth - 1)
                return RandomPath(f"{inner.text}{self._random.pick('+++**?')}", inner.links)
            case "sequence":
                return self._both("/", depth)
            case "alternative":
                return self._both("|", depth)
            case "inverse":
                inner = self._part(depth - 1)
                return RandomPath(f"^{inner.text}", inner.links)
            case _:
                return self._negated()

    def _both(self, sign: str, depth: int) -> RandomPath:
        first, second = self._part(depth - 1), self._part(depth - 1)
        return RandomPath(f"({first.text}{sign}{second.text})", (*first.links, *second.links))

    def _negated(self) -> RandomPath:
        names = self._random.some(_LINKS, 2)
        signs = [self._random.pick(("", "", "^")) for _ in names]
        inside = "|".join(sign + name for sign, name in zip(signs, names, strict=True))
        return RandomPath(f"!({inside})", tuple(link for link in _LINKS if link not in names))

    def _part(self, depth: int) -> RandomPath:
        if depth <= 0 or self._draw(st.booleans()):
            link = self._random.pick(_LINKS)
            return RandomPath(link, (link,))
        inner = self.path(depth)
        return RandomPath(f"({inner.text})", inner.links)


# --- query forms and solution modifiers ---

_AGGREGATES: Final = (
    *("COUNT(*)",) * 2,
    *("COUNT(?x)", "COUNT(DISTINCT ?x)") * 2,
    *("SUM(?x)", "MIN(?x)", "MAX(?x)") * 2,
    *("COUNT(DISTINCT *)", "COUNT(e)", "SUM(DISTINCT ?x)", "SUM(e)", "AVG(?x)", "AVG(DISTINCT ?x)"),
    *("MIN(e)", "MAX(e)", "SAMPLE(?x)", 'GROUP_CONCAT(?x; SEPARATOR=", ")'),
    "GROUP_CONCAT(DISTINCT STR(?x))",
)
_PREDICATES: Final = tuple(term_text(term) for term in pools.PREDICATES)
_IRIS: Final = tuple(term_text(term) for term in pools.IRIS)


@dataclass(frozen=True, slots=True)
class RandomSelection:
    """The clauses of a SELECT around its pattern, and its columns."""

    head: str
    tail: str
    shown: frozenset[str]
    certain: frozenset[str]

    def around(self, dataset: str, group: str) -> str:
        """The text of the whole SELECT."""
        return f"SELECT {self.head} {dataset}WHERE {{ {group} }}{self.tail}"


class FormGrammar:
    """Draws query forms and modifiers for a group with some visible variables."""

    def __init__(
        self, draw: st.DrawFn, visible: Collection[str], certain: Collection[str],
        new_name: Callable[[], str],
    ) -> None:  # fmt: skip
        self._draw = draw
        self._random = RandomChoices(draw)
        self._names = sorted(visible)
        self._certain = frozenset(certain)
        self._new_name = new_name

    def plain(self) -> RandomSelection:
        """Some columns, all of them, or an additional one."""
        distinct = self._random.pick(("", "", "", "DISTINCT "))
        if not self._names or self._random.chance(30):
            head = "*" if self._names else "?a"
            shown = frozenset(self._names or ("a",))
            return RandomSelection(distinct + head, "", shown, self._certain)
        chosen = self._random.some(self._names, 3)
        columns = [f"?{name}" for name in chosen]
        if self._random.chance(12):
            chosen.append(self._new_name())
            columns.append(f"({self._expressions().value()} AS ?{chosen[-1]})")
        shown = frozenset(chosen)
        return RandomSelection(distinct + " ".join(columns), "", shown, shown & self._certain)

    def grouped(self) -> RandomSelection:
        """GROUP BY with aggregates, or aggregates of all rows."""
        keys = self._random.some(self._names, 2) if self._names and self._random.chance(70) else []
        group = [f"?{key}" for key in keys]
        if self._random.chance(10):
            keys.append(self._new_name())
            group.append(f"(COALESCE({self._expressions().value()}, 0) AS ?{keys[-1]})")
        shown = [key for key in keys if self._random.chance(80)]
        columns = [f"?{key}" for key in shown]
        for _ in range(self._random.count(1, 2)):
            shown.append(self._new_name())
            columns.append(f"({self._aggregate()} AS ?{shown[-1]})")
        tail = f" GROUP BY {' '.join(group)}" if group else ""
        if self._random.chance(25):
            tail += f" HAVING({self._having()})"
        certain = frozenset(shown) & self._certain
        distinct = "DISTINCT " if self._random.chance(10) else ""
        return RandomSelection(distinct + " ".join(columns), tail, frozenset(shown), certain)

    def in_order(self, selection: RandomSelection) -> RandomSelection:
        """Add ORDER BY, LIMIT and OFFSET; the columns break ties."""
        names = [f"?{name}" for name in sorted(selection.shown)]
        keys = [
            self._random.pick(("{}", "DESC({})", "ASC({})", "DESC(STR({}))")).format(name)
            for name in self._random.some(names, 2)
        ]
        order = f" ORDER BY {' '.join(keys)}" if self._random.chance(85) else ""
        size = self._random.count(0, 4)
        cut = self._random.pick(
            (f" LIMIT {size}", f" LIMIT {size + 1}", f" LIMIT {size} OFFSET {size // 2 + 1}",
             f" OFFSET {size}")
        )  # fmt: skip
        return RandomSelection(
            selection.head, selection.tail + order + cut, selection.shown, selection.certain
        )

    def template(self) -> str:
        """The template of a CONSTRUCT; some triples are invalid for some rows."""
        terms = [f"?{name}" for name in self._names] * 3 + [*_IRIS]
        triples = [
            f"{self._random.pick(terms)} {self._random.pick((*_PREDICATES, *terms[:2]))} "
            f"{self._random.pick((*terms, *CONSTANTS[:8]))} ."
            for _ in range(self._random.count(1, 3))
        ]
        return " ".join(triples)

    def targets(self) -> str:
        """The targets of a DESCRIBE."""
        return " ".join(self._random.some([f"?{name}" for name in self._names] + [*_IRIS[:2]], 2))

    def _aggregate(self) -> str:
        text = self._random.pick(_AGGREGATES)
        if "e)" in text:
            text = text.replace("(e)", f"({self._expressions().value()})")
        name = self._random.pick(self._names) if self._names else "a"
        return text.replace("?x", f"?{name}")

    def _having(self) -> str:
        operator = self._random.pick((">", "<", "=", "!="))
        return f"{self._aggregate()} {operator} {self._random.pick(('0', '1', '2'))}"

    def _expressions(self) -> ExpressionGrammar:
        return ExpressionGrammar(self._draw, self._names or ("a",))
