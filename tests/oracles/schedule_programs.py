"""Random schedules: programs whose rules and patterns cause each other, and input for them.

Equal random numbers give equal schedules. Hypothesis can draw the numbers, and shrink them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from oracles.schedules import STREAMS, Item, Schedule, Triple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

NODES: Final = ("a", "b")

QUERIES: Final = (
    "SELECT ?x ?y { ?x :p ?y }",
    "SELECT ?x ?y { ?x :p ?y . ?y :q ?z }",
    "SELECT ?x ?y { ?x :p ?y FILTER NOT EXISTS { ?x :q ?y } }",
    "SELECT ?x (COUNT(?z) AS ?y) { ?x :q ?z } GROUP BY ?x",
    "SELECT ?x ?y { ?x :p ?z OPTIONAL { ?z :q ?y } }",
    "SELECT DISTINCT ?x ?y { ?x :q ?y }",
)
"""All have ?x, by which their changes are events."""

GRAPH_EVENTS: Final = ("ea", "eb", "ec", "ed")
"""Predicates of graph events, in the order in which rules mostly cause them."""

EVENTS: Final = tuple(f"EVENT {p.upper()}(?x) AS {{ ?x :{p} ?y }}" for p in GRAPH_EVENTS)

BODIES: Final = (
    *["ON {A}(?x)"] * 6,
    "WHEN EVENT a = {A}(?x) EVENT b = {B}(?x) AFTER[0,{n}] a",
    "WHEN EVENT a = {A}(?x) EVENT b = {B}(?x) AFTER[1,{n}] a",
    "WHEN EVENT a = {A}(?x) EVENT b = {B}(?y) AFTER[-{n},{n}] a",
    "WHEN FACT {{ ?x :{f} ?y }} EVENT a = {A}(?x)",
    "WHEN FACT {{ ?x :{f} ?y }} EVENT a = {A}(?x) EVENT b = {B}(?x) AFTER[0,{n}] a",
    "WHEN EVENT a = {A}(?x) NO EVENT b = {B}(?x) AFTER[0,{n}] a",
    "WHEN EVENT a = {A}(?x) NO EVENT b = {B}(?y) AFTER[0,{n}] a",
    "WHEN EVENT a = {A}(?x) NO EVENT b = {B}(?x) BEFORE[0,{n}] a",
    "WHEN FACT {{ ?x :{f} ?y }} EVENT a = {A}(?x) NO EVENT b = {B}(?x) AFTER[0,{n}] a",
)

RETRACTIONS: Final = (
    "EVENT a = {A}(?x) EVENT b = {B}(?x) AFTER[0,5] a",
    "EVENT a = {A}(?x) NO EVENT b = {B}(?x) AFTER[0,{n}] a",
)

PATTERNS: Final = (
    "({A}(?x) -> {B}(?x)) WITHIN {n}",
    "{A}(?x) -> {B}(?x)",
    "({A}(?x) -> {B}(?y)) WITHIN {n}",
    "{A}(?x) -> NOT {B}(?x) WITHIN {n}",
    "{A}(?x) -> NOT {B}(_) WITHIN {n}",
    "({A}(?x) -> {C}(?x) -> NOT {B}(?x)) WITHIN {n}",
    "{A}(?x) -> NOT {C}(?x) -> {B}(?x)",
    "{A}(?x){{2}} WITHIN {n}",
    "({A}(?x) OR {C}(?x)) -> {B}(?x)",
    "({A}(?x) -> {B}(?x)) HOLDS FOR 1",
    "ALL({A}(?x), {B}(?x))",
    "{A}(?x){{1,2}} GREEDY -> {B}(?x)",
    "({A}(?x) AS a -> {B}(?y) AS b WHERE (?b.x != ?a.x)) WITHIN {n}",
    "({A}(?x) -> {C}(?x)? -> {B}(_) AS b WHERE (COUNT(?b) = 1)) WITHIN {n}",
)
CONTEXTS: Final = (
    *("", "", "", " CONTEXT IMMEDIATE", " CONTEXT STRICT", " CONTEXT STRICT PER ?x"),
    *(" CONTEXT UNRESTRICTED", " CONTEXT UNRESTRICTED SKIP PAST LAST"),
)

_WINDOW = "REGISTER {out} :{name} AS SELECT ?x ?y FROM NAMED WINDOW :w ON :{s} [{size}]"
WINDOWS: Final = (
    f"{_WINDOW} WHERE {{{{ WINDOW :w {{{{ ?x :{{e}} ?y }}}} }}}}",
    f"{_WINDOW} WHERE {{{{ WINDOW :w {{{{ ?x :{{e}} ?z }}}} ?x :p ?y }}}}",
)
_BOTH = _WINDOW.replace("WINDOW", "WINDOW :v ON :{t} [{other}] FROM NAMED WINDOW")
TWO_WINDOWS: Final = (
    f"{_BOTH} WHERE {{{{ WINDOW :w {{{{ ?x :{{e}} ?y }}}} WINDOW :v {{{{ ?x :{{f}} ?z }}}} }}}}"
)
"""Not mixed with ELEMENTS."""

SIZES: Final = ("RANGE 4 STEP 2", "RANGE 3 STEP 1", "RANGE 5 STEP 5", "ELEMENTS 2 STEP 1")


def random_schedule(rng: Random, *, items: int = 16) -> Schedule:
    """A random schedule of up to a number of items."""
    programs = [_program(rng)]
    if rng.random() < 0.15:
        programs.append(_program(rng, prefix="Z"))
    firing = "agenda" if rng.random() < 0.15 else "events"
    late = {name: rng.randint(1, 4) for name in STREAMS if rng.random() < 0.1}
    inputs = _items(rng, rng.randint(3, items), late)
    return Schedule(
        tuple(programs),
        inputs,
        max(item.time for item in inputs) + rng.choice((0, 3, 12)),
        firing=firing,  # type: ignore[arg-type] # one of both
        resolver=rng.choice(("priority", "oldest", "newest")) if firing == "agenda" else "priority",
        alignment=rng.choice(("close", "close", "close", "w3c", "yabench")),
        failing="b" if rng.random() < 0.08 else "",
        on_error=rng.choice(("raise", "raise", "skip")),
        lateness=tuple(late.items()),
        reacting=rng.random() < 0.15,
    )


class _ProgramText:
    """The declarations of a program as they are made; `types` are its events so far."""

    def __init__(self, rng: Random, prefix: str) -> None:
        self._rng = rng
        self._prefix = prefix
        self.lines = list(EVENTS)
        self.types = [line.split()[1].partition("(")[0] for line in EVENTS]
        self.level = {name: at for at, name in enumerate(self.types)}
        self._simple = len(self.types)  # patterns come after these
        self.consumed: list[str] = []
        """The types that patterns name."""

    def add_query(self, number: int) -> None:
        """A standing query, with events for its rows."""
        rng, name = self._rng, f"{self._prefix}Q{number}"
        self.lines.append(f"QUERY {name} AS {rng.choice(QUERIES)}")
        self._add_changes(name)

    def add_window(self, number: int) -> None:
        """A query over a window, perhaps with events for its rows."""
        rng, name = self._rng, f"{self._prefix}W{number}"
        two = rng.random() < 0.3
        text = (TWO_WINDOWS if two else rng.choice(WINDOWS)).format(
            out=rng.choice(("ISTREAM", "DSTREAM", "RSTREAM")),
            name=name.lower(),
            s=rng.choice(STREAMS),
            t=rng.choice(STREAMS),
            size=rng.choice(SIZES[:-1] if two else SIZES),
            other=rng.choice(SIZES[:-1]),
            e=rng.choice(GRAPH_EVENTS),
            f=rng.choice(GRAPH_EVENTS),
        )
        self.lines.append(f"QUERY {name} AS {text}")
        if rng.random() < 0.5:
            self._add_changes(name)

    def add_state_change(self) -> None:
        """An event for nodes that go from one state to another."""
        name = f"{self._prefix}Turn"
        self.lines.append(f"EVENT {name}(?x) ON CHANGE OF ?x FROM {{ ?x :p ?y }} TO {{ ?x :q ?y }}")
        self._add_type(name, 1)

    def _add_changes(self, query: str) -> None:
        kinds = self._rng.sample(("APPEAR", "DISAPPEAR", "UPDATE"), self._rng.randint(1, 2))
        for kind in kinds:
            event = f"{query}{kind.title()}"
            self.lines.append(f"EVENT {event}(?x) ON {kind} OF {query}(?x)")
            self._add_type(event, 1)

    def _add_type(self, name: str, level: int) -> None:
        self.types.append(name)
        self.level[name] = level
        self._simple += not name.startswith(f"{self._prefix}P")

    def add_pattern(self, number: int) -> None:
        """A pattern, which is an event for the rules."""
        name = f"{self._prefix}P{number}"
        body, level = self._filled(PATTERNS, self.types[: self._simple])
        context = self._rng.choice(CONTEXTS)
        if "PER" in context and ("?y" in body or "(_)" in body):
            context = ""
        self.lines.append(f"PATTERN {name}(?x) AS {body}{context}")
        self.consumed += [each for each in self.types if f"{each}(" in body]
        self._add_type(name, level)

    def add_retraction(self) -> None:
        """A rule that retracts events which patterns consume, at once or when they have waited."""
        a, b = self._rng.choice(self.consumed), self._rng.choice(self.types)
        body = self._rng.choice(RETRACTIONS).format(A=a, B=b, n=self._rng.randint(0, 2))
        self.lines.append(f"RULE {self._prefix}Back WHEN {body} THEN RETRACT a")

    def add_rule(self, number: int) -> None:
        """A rule: what it emits mostly is of a later kind than what it reacts to."""
        rng = self._rng
        body, level = self._filled(BODIES, self.types)
        priority = rng.choice(("", "", " PRIORITY 1"))
        if body.startswith("ON") and priority:
            body = body.replace("ON ", "WHEN EVENT a = ", 1)
        actions = [self._action(body, level) for _ in range(rng.choice((1, 1, 2)))]
        chosen = " ; ".join(dict.fromkeys(actions))
        self.lines.append(f"RULE {self._prefix}R{number}{priority} {body} THEN {chosen}")

    def _filled(self, templates: tuple[str, ...], types: list[str]) -> tuple[str, int]:
        rng = self._rng
        template = rng.choice(templates)
        a, b, c = (rng.choice(types) for _ in range(3))
        text = template.format(A=a, B=b, C=c, f=rng.choice("pq"), n=rng.randint(1, 5))
        used = [name for name, mark in ((a, "{A}"), (b, "{B}"), (c, "{C}")) if mark in template]
        return text, max(self.level[name] for name in used)

    def _action(self, body: str, level: int) -> str:
        rng, o = self._rng, self._rng.choice(NODES)
        later = range(min(level + 1, len(GRAPH_EVENTS) - 1), len(GRAPH_EVENTS))
        event = rng.choice(GRAPH_EVENTS if rng.random() < 0.1 else [GRAPH_EVENTS[i] for i in later])
        options = [
            f"INSERT {{ ?x :{rng.choice('pq')} :{o} }}",
            f"INSERT {{ ?x :done :{o} }}",
            f"DELETE {{ ?x :{rng.choice('pq')} :{o} }}",
            f"EMIT :{rng.choice((*STREAMS, 'u'))} {{ ?x :{event} :{o} }}",
            f"EMIT :{rng.choice((*STREAMS, 'u'))} {{ ?x :{event} :{o} }}",
            "CALL f(?x)",
            "CALL g(?x)",
        ]
        if " a = " in body:
            options.append("RETRACT a")
        return rng.choice(options)


def _program(rng: Random, prefix: str = "") -> tuple[str, ...]:
    text = _ProgramText(rng, prefix)
    for number in range(rng.choice((0, 1, 1, 2))):
        text.add_query(number)
    for number in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 2))):
        text.add_window(number)
    if rng.random() < 0.2:
        text.add_state_change()
    for number in range(rng.choice((0, 0, 1, 2))):
        text.add_pattern(number)
    for number in range(rng.randint(2, 6)):
        text.add_rule(number)
    if text.consumed and rng.random() < 0.3:
        text.add_retraction()
    return tuple(text.lines)


def _items(rng: Random, many: int, lateness: Mapping[str, int]) -> tuple[Item, ...]:
    items: list[Item] = []
    time = 0
    kind, stream = "push", "s"
    for _ in range(many):
        time += rng.choice((0, 0, 0, 1, 1, 2, 5))
        if rng.random() < 0.4:  # else one more of the same, so that there are batches
            kind = rng.choice(("push", "push", "push", "change", "change", "publish", "advance"))
            stream = rng.choice(STREAMS)
        if kind == "advance":
            items.append(Item(time, "advance"))
        elif kind == "change":
            changes = [
                (rng.choice((1, 1, 1, -1)), _quad(rng, "pq")) for _ in range(rng.randint(1, 3))
            ]
            items.append(Item(time, "change", tuple(changes)))
        else:
            triples = [
                (1, _quad(rng, ("ea", "ea", "eb", "eb", "ec")))
                for _ in range(rng.choice((1, 1, 2)))
            ]
            named = stream if kind == "push" else ""
            early = max(0, time - rng.randint(0, lateness.get(named, 0)))
            items.append(Item(early, kind, tuple(dict.fromkeys(triples)), named))  # type: ignore[arg-type]
    return tuple(items)


def _quad(rng: Random, predicates: str | tuple[str, ...]) -> Triple:
    return rng.choice(NODES), rng.choice(predicates), rng.choice(NODES)
