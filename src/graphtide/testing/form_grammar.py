"""Random query forms and solution modifiers around a group: what a query makes of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from graphtide.testing.expression_grammar import CONSTANTS, ExpressionGrammar, term_text
from graphtide.testing.pools import IRIS, PREDICATES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_AGGREGATES: Final = (
    *("COUNT(*)",) * 2,
    *("COUNT(?x)", "COUNT(DISTINCT ?x)") * 2,
    *("SUM(?x)", "MIN(?x)", "MAX(?x)") * 2,
    *("COUNT(DISTINCT *)", "COUNT(e)", "SUM(DISTINCT ?x)", "SUM(e)", "AVG(?x)", "AVG(DISTINCT ?x)"),
    *("MIN(e)", "MAX(e)", "SAMPLE(?x)", 'GROUP_CONCAT(?x; SEPARATOR=", ")'),
    "GROUP_CONCAT(DISTINCT STR(?x))",
)
_PREDICATES: Final = tuple(term_text(term) for term in PREDICATES)
_IRIS: Final = tuple(term_text(term) for term in IRIS)


@dataclass(frozen=True, slots=True)
class Selection:
    """What stands around the pattern of a SELECT, and the variables it shows."""

    head: str
    tail: str
    shown: frozenset[str]
    certain: frozenset[str]

    def around(self, dataset: str, group: str) -> str:
        """The text of the whole SELECT."""
        return f"SELECT {self.head} {dataset}WHERE {{ {group} }}{self.tail}"


class FormGrammar:
    """Draws what surrounds a group with some visible variables."""

    def __init__(
        self, draw: st.DrawFn, visible: Collection[str], certain: Collection[str],
        new_name: Callable[[], str],
    ) -> None:  # fmt: skip
        self._draw = draw
        self._names = sorted(visible)
        self._certain = frozenset(certain)
        self._new_name = new_name

    def plain(self) -> Selection:
        """Some of the columns, all of them, or one more."""
        distinct = self._pick(("", "", "", "DISTINCT "))
        if not self._names or self._chance(30):
            head = "*" if self._names else "?a"
            shown = frozenset(self._names or ("a",))
            return Selection(distinct + head, "", shown, self._certain)
        chosen = self._some(self._names, 3)
        columns = [f"?{name}" for name in chosen]
        if self._chance(12):
            chosen.append(self._new_name())
            columns.append(f"({self._expressions().value()} AS ?{chosen[-1]})")
        shown = frozenset(chosen)
        return Selection(distinct + " ".join(columns), "", shown, shown & self._certain)

    def grouped(self) -> Selection:
        """GROUP BY with aggregates, or aggregates of all rows."""
        keys = self._some(self._names, 2) if self._names and self._chance(70) else []
        group = [f"?{key}" for key in keys]
        if self._chance(10):
            keys.append(self._new_name())
            group.append(f"(COALESCE({self._expressions().value()}, 0) AS ?{keys[-1]})")
        shown = [key for key in keys if self._chance(80)]
        columns = [f"?{key}" for key in shown]
        for _ in range(self._draw(st.integers(1, 2))):
            shown.append(self._new_name())
            columns.append(f"({self._aggregate()} AS ?{shown[-1]})")
        tail = f" GROUP BY {' '.join(group)}" if group else ""
        if self._chance(25):
            tail += f" HAVING({self._having()})"
        certain = frozenset(shown) & self._certain
        distinct = "DISTINCT " if self._chance(10) else ""
        return Selection(distinct + " ".join(columns), tail, frozenset(shown), certain)

    def in_order(self, selection: Selection) -> Selection:
        """The same with an order and a range; rows that tie are told apart by what they show."""
        names = [f"?{name}" for name in sorted(selection.shown)]
        keys = [
            self._pick(("{}", "DESC({})", "ASC({})", "DESC(STR({}))")).format(name)
            for name in self._some(names, 2)
        ]
        order = f" ORDER BY {' '.join(keys)}" if self._chance(85) else ""
        size = self._draw(st.integers(0, 4))
        cut = self._pick(
            (f" LIMIT {size}", f" LIMIT {size + 1}", f" LIMIT {size} OFFSET {size // 2 + 1}",
             f" OFFSET {size}")
        )  # fmt: skip
        return Selection(
            selection.head, selection.tail + order + cut, selection.shown, selection.certain
        )

    def template(self) -> str:
        """The triples of a CONSTRUCT; some are none for some rows."""
        terms = [f"?{name}" for name in self._names] * 3 + [*_IRIS]
        triples = [
            f"{self._pick(terms)} {self._pick((*_PREDICATES, *terms[:2]))} "
            f"{self._pick((*terms, *CONSTANTS[:8]))} ."
            for _ in range(self._draw(st.integers(1, 3)))
        ]
        return " ".join(triples)

    def targets(self) -> str:
        """What to DESCRIBE."""
        return " ".join(self._some([f"?{name}" for name in self._names] + [*_IRIS[:2]], 2))

    def _aggregate(self) -> str:
        text = self._pick(_AGGREGATES)
        if "e)" in text:
            text = text.replace("(e)", f"({self._expressions().value()})")
        name = self._pick(self._names) if self._names else "a"
        return text.replace("?x", f"?{name}")

    def _having(self) -> str:
        operator = self._pick((">", "<", "=", "!="))
        return f"{self._aggregate()} {operator} {self._pick(('0', '1', '2'))}"

    def _expressions(self) -> ExpressionGrammar:
        return ExpressionGrammar(self._draw, self._names or ("a",))

    def _some(self, options: Sequence[str], most: int) -> list[str]:
        return self._draw(
            st.lists(st.sampled_from(options), min_size=1, max_size=most, unique=True)
        )

    def _pick(self, options: Sequence[str]) -> str:
        return self._draw(st.sampled_from(options))

    def _chance(self, percent: int) -> bool:
        return self._draw(st.integers(1, 100)) > 100 - percent
