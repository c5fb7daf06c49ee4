"""ProgramBuilder: write programs in Python, one declaration per call.

Patterns are built with `event`, `absent`, `interleaved` and operators from format.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphtide.lang.tide.ast import Context, Skip
    from graphtide.lang.tide.format import PatternText


class ProgramBuilder:
    """Collects declarations; `text` is the .tide text, `build()` parses and checks it.

    Graph patterns and templates are SPARQL without the outer brackets.

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
        """Parse and check the program."""
        return Program.parse(self.text)

    def query(self, name: str, sparql: str) -> Self:
        """QUERY name AS sparql."""
        return self._add(f"QUERY {name} AS {sparql}")

    def event(self, name: str, parameters: str, pattern: str, *, check: str = "") -> Self:
        """EVENT name(parameters) AS { pattern } CHECK (check); parameters as in `"?alarm ?e"`."""
        return self._event(name, parameters, f"AS {{ {pattern} }}", check)

    def appear(self, name: str, parameters: str, query: str, *, check: str = "") -> Self:
        """EVENT name(parameters) ON APPEAR OF query CHECK (check)."""
        return self._event(name, parameters, f"ON APPEAR OF {query}{_listed(parameters)}", check)

    def disappear(self, name: str, parameters: str, query: str, *, check: str = "") -> Self:
        """EVENT name(parameters) ON DISAPPEAR OF query CHECK (check)."""
        return self._event(name, parameters, f"ON DISAPPEAR OF {query}{_listed(parameters)}", check)

    def update(self, name: str, parameters: str, query: str, *, check: str = "") -> Self:
        """EVENT name(parameters) ON UPDATE OF query(parameters) CHECK (check)."""
        return self._event(name, parameters, f"ON UPDATE OF {query}{_listed(parameters)}", check)

    def change(
        self, name: str, parameters: str, of: str, before: str, after: str, *, check: str = ""
    ) -> Self:
        """EVENT name(parameters) ON CHANGE OF of FROM { before } TO { after } CHECK (check)."""
        states = f"FROM {{ {before} }} TO {{ {after} }}"
        return self._event(name, parameters, f"ON CHANGE OF {of} {states}", check)

    def _event(self, name: str, parameters: str, source: str, check: str) -> Self:
        test = f" CHECK ({check})" if check else ""
        return self._add(f"EVENT {name}{_listed(parameters)} {source}{test}")

    def context(self, context: Context) -> Self:
        """CONTEXT context: the default of all patterns."""
        self._parts.insert(0, f"CONTEXT {context}")
        return self

    def pattern(
        self,
        name: str,
        parameters: str,
        body: PatternText | str,
        *,
        context: Context | None = None,
        skip: Skip | None = None,
        per: str = "",
    ) -> Self:
        """PATTERN name(parameters) AS body CONTEXT context skip PER per; `per` as in `"?x ?y"`.

        >>> from graphtide.lang.tide.format import event
        >>> broken, mended = event("Broken", "?r"), event("Mended", "?r")
        >>> flapping = (broken >> mended).times(3).within("10s")
        >>> print(ProgramBuilder().pattern("Flapping", "?r", flapping, context="STRICT").text)
        PATTERN Flapping(?r) AS (Broken(?r) -> Mended(?r)){3} WITHIN 10s CONTEXT STRICT
        """
        if (per or skip) and context is None:
            word = "PER" if per else "SKIP"
            raise GraphtideError(
                f"{word} needs a context", hint='add context="STRICT" or another one'
            )
        scope = f" CONTEXT {context}" if context else ""
        scope += f" {skip}" if skip else ""
        scope += f" PER {_listed(per)[1:-1]}" if per else ""
        return self._add(f"PATTERN {name}{_listed(parameters)} AS {body}{scope}")

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
        group: str = "",
    ) -> Self:
        """RULE name: `on` one event, or `events` while `facts` hold, and no event of `unless`.

        Events are written as `"c = Confirmation(?c, ?alarm) AFTER[1,5] a"`, actions as
        `"INSERT { ?e :state :OFFLINE }"`.
        """
        head = f"RULE {name}" + (f" IN {group}" if group else "")
        head += f" PRIORITY {priority}" if priority else ""
        conditions = [f"FACT {{ {facts} }}"] if facts else []
        conditions += (f"EVENT {event}" for event in events)
        conditions += (f"NO EVENT {event}" for event in unless)
        trigger = f"ON {on}" if on else f"WHEN {' '.join(conditions)}"
        test = f" WHERE {where}" if where else ""
        return self._add(f"{head} {trigger}{test} THEN {' ; '.join(then)}")

    def goal(self, name: str, query: str, *, at_most: int = 0) -> Self:
        """GOAL name NONE OF query, or AT MOST `at_most` OF query."""
        few = f"AT MOST {at_most} OF" if at_most else "NONE OF"
        return self._add(f"GOAL {name} {few} {query}")

    def minimize(self, name: str, query: str, *, weight: float = 1) -> Self:
        """GOAL name MINIMIZE query: a soft goal, the fewer rows the better."""
        return self._add(f"GOAL {name} MINIMIZE {query} WEIGHT {weight}")

    def fix(self, name: str, query: str, *, then: Iterable[str], cost: float = 1) -> Self:
        """FIX name: a repair for each row of a query, such as `"INSERT { ?r :is :ok }"`."""
        return self._add(f"FIX {name} COST {cost} ON {query} THEN {' ; '.join(then)}")

    def _add(self, declaration: str) -> Self:
        self._parts.append(declaration)
        return self


def _listed(parameters: str) -> str:
    return f"({', '.join(parameters.replace(',', ' ').split())})"
