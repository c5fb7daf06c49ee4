"""RAND, NOW, UUID, STRUUID and BNODE: for questions asked once, and for updates.

A standing query cannot have them: they are no functions of the graph.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from graphtide.functions.values import plain_of
from graphtide.functions.vocabulary import DATE_TIME
from graphtide.rdf.term import BlankNode, Literal, NamedNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.rdf.term import Term

ARITIES: Final = {"RAND": (0, 0), "NOW": (0, 0), "UUID": (0, 0), "STRUUID": (0, 0), "BNODE": (0, 1)}
"""The least and most arguments of each."""


class Volatile:
    """The functions for one evaluation of one query: NOW stays, BNODE remembers within a row."""

    def __init__(self) -> None:
        moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        self._now = Literal(moment, datatype=NamedNode(DATE_TIME))
        self._labels: dict[str, BlankNode] = {}

    def next_row(self) -> None:
        """Another row begins: from here on BNODE("x") is another node than before."""
        self._labels = {}

    @property
    def functions(self) -> Mapping[str, Callable[..., Term]]:
        """The functions by name, for `evaluate`.

        >>> from graphtide.rdf.term import Literal
        >>> bnode = Volatile().functions["BNODE"]
        >>> bnode(Literal("x")) == bnode(Literal("x")), bnode() == bnode()
        (True, False)
        """
        return {
            "RAND": lambda: Literal(random.random()),  # noqa: S311 - no secret hangs on it
            "NOW": lambda: self._now,
            "UUID": lambda: NamedNode(f"urn:uuid:{uuid4()}"),
            "STRUUID": lambda: Literal(str(uuid4())),
            "BNODE": self._bnode,
        }

    def _bnode(self, label: Term | None = None) -> Term:
        if label is None:
            return BlankNode()
        return self._labels.setdefault(plain_of(label), BlankNode())
