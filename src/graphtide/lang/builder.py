"""ProgramBuilder: programs from Python, declaration by declaration, checked as texts are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from graphtide.lang.program import Program, parse_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ProgramBuilder:
    """Collects declarations; `build()` gives the program, `text` its text.

    Patterns and templates are SPARQL without the outer brackets.

    >>> builder = ProgramBuilder({"": "http://example.org/"})
    >>> builder = builder.event("Alarm", "?alarm ?e", "?alarm a :Alarm ; :eqpt ?e")
    >>> builder = builder.rule("Tell", on="Alarm(?alarm, ?e)", then=["CALL tell(?e)"])
    >>> print(builder.text)
    PREFIX : <http://example.org/>
    EVENT Alarm(?alarm, ?e) AS { ?alarm a :Alarm ; :eqpt ?e }
    RULE Tell ON Alarm(?alarm, ?e) THEN CALL tell(?e)
    >>> [rule.name for rule in builder.build().rules]
    ['Tell']
    """

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        given = (prefixes or {}).items()
        self._parts = [f"PREFIX {name.removesuffix(':')}: <{iri}>" for name, iri in given]

    @property
    def text(self) -> str:
        """The program as a .tide text."""
        return "\n".join(self._parts)

    def build(self) -> Program:
        """The program, checked."""
        return parse_program(self.text)

    def query(self, name: str, sparql: str) -> Self:
        """QUERY name AS sparql."""
        return self._add(f"QUERY {name} AS {sparql}")

    def event(self, name: str, parameters: str, pattern: str) -> Self:
        """EVENT name(parameters) AS { pattern }; parameters as in `"?alarm ?e"`."""
        return self._add(f"EVENT {name}{_listed(parameters)} AS {{ {pattern} }}")

    def appear(self, name: str, parameters: str, query: str) -> Self:
        """EVENT name(parameters) ON APPEAR OF query."""
        given = _listed(parameters)
        return self._add(f"EVENT {name}{given} ON APPEAR OF {query}{given}")

    def disappear(self, name: str, parameters: str, query: str) -> Self:
        """EVENT name(parameters) ON DISAPPEAR OF query."""
        given = _listed(parameters)
        return self._add(f"EVENT {name}{given} ON DISAPPEAR OF {query}{given}")

    def change(self, name: str, parameters: str, of: str, before: str, after: str) -> Self:
        """EVENT name(parameters) ON CHANGE OF of FROM { before } TO { after }."""
        states = f"FROM {{ {before} }} TO {{ {after} }}"
        return self._add(f"EVENT {name}{_listed(parameters)} ON CHANGE OF {of} {states}")

    def rule(
        self,
        name: str,
        *,
        then: Iterable[str],
        on: str | None = None,
        facts: str | None = None,
        events: Iterable[str] = (),
        unless: Iterable[str] = (),
        where: str | None = None,
        priority: int = 0,
    ) -> Self:
        """RULE name: `on` one event, or when `events` happen while `facts` hold, and none `unless`.

        Events are written as `"c = Confirmation(?c, ?alarm) AFTER[1,5] a"`, actions as
        `"INSERT { ?e :state :OFFLINE }"`.
        """
        head = f"RULE {name}" + (f" PRIORITY {priority}" if priority else "")
        conditions = [f"FACT {{ {facts} }}"] if facts else []
        conditions += (f"EVENT {event}" for event in events)
        conditions += (f"NO EVENT {event}" for event in unless)
        trigger = f"ON {on}" if on else f"WHEN {' '.join(conditions)}"
        test = f" WHERE {where}" if where else ""
        return self._add(f"{head} {trigger}{test} THEN {' ; '.join(then)}")

    def _add(self, declaration: str) -> Self:
        self._parts.append(declaration)
        return self


def _listed(parameters: str) -> str:
    return f"({', '.join(parameters.replace(',', ' ').split())})"
