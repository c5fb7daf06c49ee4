"""Insertions: the INSERT templates of a rule, filled in for many firings at once, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph
from graphtide.functions.templates import blank_label
from graphtide.lang.declarations import Insert
from graphtide.rdf.kinds import BLANK, IRI
from graphtide.rdf.term import BlankNode

if TYPE_CHECKING:
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.lang.declarations import RuleDeclaration
    from graphtide.rdf.dictionary import TermDictionary

Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class Insertions:
    """What a rule inserts. `variables` are those of the columns of its matches."""

    def __init__(
        self, rule: RuleDeclaration, variables: tuple[Var, ...], terms: TermDictionary
    ) -> None:
        self._rule = rule.name
        self._terms = terms
        self._column = {v: 1 + at for at, v in enumerate(variables)}
        self._templates = [
            (number, action.template)
            for number, action in enumerate(rule.actions)
            if isinstance(action, Insert)
        ]

    def quads(self, rows: Ints, numbers: Longs) -> tuple[Ints, Longs]:
        """The quads of some matches, which are firings of some numbers; and the place of each."""
        parts: list[Ints] = []
        places: list[Longs] = []
        for action, template in self._templates:
            blanks: dict[str, Ints] = {}
            for triple in template:
                quads = self._filled(triple, rows, numbers, action, blanks)
                fits = self._fits(quads, triple)
                parts.append(quads[fits])
                places.append(np.flatnonzero(fits))
        place = np.concatenate(places)
        order = np.argsort(place, kind="stable")
        return np.concatenate(parts)[order], place[order]

    def _filled(
        self, triple: TriplePattern, rows: Ints, numbers: Longs, action: int,
        blanks: dict[str, Ints],
    ) -> Ints:  # fmt: skip
        quads = np.zeros((len(rows), 4), np.int32)
        parts = [triple.subject, triple.predicate, triple.object]
        if not isinstance(triple.graph, DefaultGraph):
            parts.append(triple.graph)  # type: ignore[arg-type] # a template names one graph
        for column, part in enumerate(parts):
            if isinstance(part, Var):
                quads[:, column] = rows[:, self._column[part]] if part in self._column else 0
            elif isinstance(part, BlankNode):
                if part.value not in blanks:
                    blanks[part.value] = self._blanks(part, rows, numbers, action)
                quads[:, column] = blanks[part.value]
            else:
                quads[:, column] = self._terms.encode(part)
        return quads

    def _fits(self, quads: Ints, triple: TriplePattern) -> Mask:
        """Which quads have no unbound or misplaced term."""
        kinds = self._terms.kinds
        subjects = kinds[quads[:, 0]]
        fits: Mask = ((subjects == IRI) | (subjects == BLANK)) & (kinds[quads[:, 1]] == IRI)
        fits &= quads[:, 2] != 0
        if not isinstance(triple.graph, DefaultGraph):
            fits &= kinds[quads[:, 3]] == IRI
        return fits

    def _blanks(self, node: BlankNode, rows: Ints, numbers: Longs, action: int) -> Ints:
        """A new blank node for each firing, named as if it were the only one."""
        texts = {
            v.name: self._terms.decode_column(rows[:, at]).to_pylist()
            for v, at in self._column.items()
        }
        names = sorted(texts)
        labels = []
        for place, number in enumerate(numbers.tolist()):
            cells = [f"{n} {texts[n][place]}" for n in names if texts[n][place] is not None]
            scope = action_scope(self._rule, number, action)
            labels.append(f"_:{blank_label(node.value, sorted(cells), scope)}")
        return self._terms.encode_column(labels)


def action_scope(rule: str, number: int, action: int) -> str:
    """New blank nodes are made for each action of each firing.

    >>> action_scope("Mend", 7, 0)
    'Mend 7 0'
    """
    return f"{rule} {number} {action}"
