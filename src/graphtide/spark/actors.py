"""Actors: carry out what rules do when they fire, on the driver, micro-batch by micro-batch.

Calls come first: if one fails, nothing of its batch is written, and the batch is run again. So a
call is made at least once, and always with the same id.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.algebra.expressions import Var
from graphtide.errors import ActionError, GraphtideError
from graphtide.functions.templates import fill_template
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.ast import CallFunction, Delete, Emit, Insert, Retract
from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.firings import firings_table, read_firings
from graphtide.spark.frontier import START
from graphtide.spark.happened import RETRACTS, as_term
from graphtide.spark.react import frontiers
from graphtide.spark.reaction import LAST, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rdf.terms import Term
    from graphtide.spark.feedback import Cause, FeedbackLog
    from graphtide.spark.firings import FiredRule
    from graphtide.spark.reaction import Reaction

Functions = Mapping[str, Callable[..., object]]
"""What CALL calls, by name."""


class Actors:
    """What a program does when its rules fire."""

    def __init__(
        self,
        reaction: Reaction,
        functions: Functions,
        feedback: FeedbackLog | None,
    ) -> None:
        check_functions(reaction, functions)
        self.reaction = reaction
        self._feedback = feedback
        self._functions = {name: (f, _takes_id(f)) for name, f in functions.items()}

    def tables(self, rows: pa.Table) -> tuple[list[FiredRule], dict[str, pa.Table], pa.Table]:
        """The firings of a batch; the complex events of each pattern; and the firings to write."""
        fired = read_firings(rows, self.reaction)
        return fired, complex_events(rows, self.reaction), firings_table(fired)

    def call(self, fired: list[FiredRule]) -> None:
        """Call functions, in the order of the firings."""
        terms = TermDictionary()
        for firing in fired:
            for action in firing.rule.actions:
                if isinstance(action, CallFunction):
                    self._call(action, firing, firing.row(terms))

    def _call(self, action: CallFunction, firing: FiredRule, row: Mapping[Var, Term]) -> None:
        function, takes_id = self._functions[action.function]
        given = [row.get(a) if isinstance(a, Var) else a for a in action.arguments]
        try:
            function(*given, **({"firing_id": firing.id} if takes_id else {}))
        except Exception as problem:
            raise ActionError(
                f"{firing.words()} failed: {type(problem).__name__}: {problem}",
                hint="start again when it is mended: the micro-batch is run again, with all calls",
            ) from problem

    def feed_back(self, batch: int, rows: pa.Table, fired: list[FiredRule]) -> None:
        """Write down what the firings change in the graph, and what they emit."""
        if self._feedback is None:
            return
        self._feedback.begin(batch)
        time = max([*frontiers(rows), START]).time
        self._feedback.write(batch, list(self._changes(fired, max(time, 0))))

    def _changes(
        self, fired: list[FiredRule], time: int
    ) -> Iterator[tuple[Cause, list[dict[str, Any]]]]:
        terms = TermDictionary()
        for firing in fired:
            rows = changes_of(firing, time, terms)
            if rows and self._feedback is not None:
                yield self._feedback.cause(firing.tx, firing.rule.name), rows


def changes_of(firing: FiredRule, time: int, terms: TermDictionary) -> list[dict[str, Any]]:
    """What a firing inserts, deletes and emits; of a quad, the last word counts."""
    row = firing.row(terms)
    wanted: dict[tuple[str | None, ...], int] = {}
    emitted: list[dict[str, Any]] = []

    def filled(template: tuple[TriplePattern, ...], number: int) -> Iterator[list[str | None]]:
        for quad in fill_template(template, row, scope=f"{firing.id} {number}"):
            yield [None if term is None else str(term) for term in quad]

    for number, action in enumerate(firing.rule.actions):
        match action:
            case Insert(template) | Delete(template):
                diff = 1 if isinstance(action, Insert) else -1
                wanted |= {tuple(quad): diff for quad in filled(template, number)}
            case Emit(stream, template):
                at = {"time": time, "diff": 1, "stream": stream.value}
                emitted += (
                    {**at, "s": s, "p": p, "o": o} for s, p, o, _ in filled(template, number)
                )
            case Retract(event):
                name = as_term(firing.events[event])
                at = {"time": time, "diff": 1, "stream": RETRACTS.value}
                emitted.append({**at, "s": name, "p": str(RETRACTS), "o": name})
            case _:
                pass
    changed = [
        {"time": time, "diff": diff, **dict(zip("spog", quad, strict=True))}
        for quad, diff in wanted.items()
    ]
    return [*changed, *emitted]


def complex_events(rows: pa.Table, reaction: Reaction) -> dict[str, pa.Table]:
    """The complex events of each pattern: when, and the values of its parameters."""
    query = rows["query"].to_numpy()
    found = {}
    for pattern in reaction.program.patterns:
        number = TYPES + reaction.types[reaction.complex[pattern.name]]
        mine = rows.take(np.flatnonzero(query == number))
        lines: list[dict[str, Any]] = mine.to_pylist()
        columns: dict[str, list[Any]] = {
            "time": [line["time"] for line in lines],
            "tx": [None if line["tx"] == LAST else line["tx"] for line in lines],
            "diff": [1] * len(lines),
        }
        for place, parameter in enumerate(pattern.parameters):
            columns[parameter.name] = [line["row"][place] for line in lines]
        kinds = [pa.int64()] * 3 + [pa.string()] * len(pattern.parameters)
        arrays: list[Any] = [pa.array(c, k) for c, k in zip(columns.values(), kinds, strict=True)]
        table = pa.table(dict(zip(columns, arrays, strict=True)))
        found[pattern.name] = table.sort_by([(name, "ascending") for name in table.column_names])
    return found


def check_functions(reaction: Reaction, functions: Mapping[str, object]) -> None:
    """Refuse calls of functions that were not given."""
    for rule in reaction.program.rules:
        for action in rule.actions:
            if isinstance(action, CallFunction) and action.function not in functions:
                near = name_hint(action.function, functions, "function")
                raise GraphtideError(
                    f"the rule {rule.name} calls {action.function}, which was not given",
                    hint=f"run_program(…, functions={{…}}): {near}",
                )


def _takes_id(function: Callable[..., object]) -> bool:
    """Whether a function asks for the id of the firing."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return "firing_id" in parameters
