"""Replacement: another program takes the place of a running one, with the state of what it keeps.

A query is as it was if its text is the same. A pattern or a rule is, if its declaration and those
of all that it names are; a pattern that any event may disturb depends on all events in use. That
is how a run on Spark goes on with another program, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphtide.algebra.nodes import SelectQuery
from graphtide.lang.fingerprint import fingerprint_text
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.pattern_facts import walk
from graphtide.rules.compile import events_in_use

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from graphtide.lang.tide.program import Program
    from graphtide.rules.detection import Detection
    from graphtide.rules.effects import GraphConnection
    from graphtide.rules.running.parts import ProgramParts
    from graphtide.rules.runtime import RuleEngine

QUERY, PATTERN, RULE = "QUERY", "PATTERN", "RULE"
_WORDS: Final = ("kept", "changed", "added", "removed")

Declared = tuple[str, str]
"""What a declaration is, and its name."""


@dataclass(frozen=True, slots=True, repr=False)
class Replacement:
    """What a replacement did, by declaration: `kept` ones go on, the others begin or end.

    >>> Replacement(kept=(("QUERY", "Open"),), changed=(("RULE", "Warn"),))
    <Replacement: kept QUERY Open; changed RULE Warn>
    """

    kept: tuple[Declared, ...] = ()
    changed: tuple[Declared, ...] = ()
    added: tuple[Declared, ...] = ()
    removed: tuple[Declared, ...] = ()

    def __str__(self) -> str:
        parts = [(word, getattr(self, word)) for word in _WORDS]
        texts = [
            f"{word} {', '.join(' '.join(each) for each in found)}"
            for word, found in parts
            if found
        ]
        return "; ".join(texts) or "nothing was declared, and nothing is"

    def __repr__(self) -> str:
        return f"<Replacement: {self}>"

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of the queries, patterns or rules that are kept."""
        return tuple(name for what, name in self.kept if what == kind)


def compare(old: Mapping[Declared, str], new: Mapping[Declared, str]) -> Replacement:
    """What is as it was, and what is not, given by texts."""
    return Replacement(
        kept=tuple(each for each in new if old.get(each) == new[each]),
        changed=tuple(each for each in new if each in old and old[each] != new[each]),
        added=tuple(each for each in new if each not in old),
        removed=tuple(each for each in old if each not in new),
    )


def declared_texts(program: Program, disabled: Collection[str]) -> dict[Declared, str]:
    """For each query, pattern and enabled rule a text of all that it depends on.

    >>> from graphtide.lang.tide.program import Program
    >>> text = "EVENT E(?x) AS { ?x a <ex:E> } RULE R ON E(?x) THEN CALL f(?x)"
    >>> one, two = Program.parse(text), Program.parse(text.replace("ex:E", "ex:F"))
    >>> compare(declared_texts(one, ()), declared_texts(two, ()))
    <Replacement: changed RULE R>
    """
    texts: dict[Declared, str] = {(QUERY, each.name): each.text for each in program.queries}
    in_use = events_in_use(program)
    events = {each.name: _event_text(each, texts) for each in in_use}
    for pattern in program.patterns:
        atoms = {part.event for part in walk(pattern.body) if isinstance(part, tide.Atom)}
        seen = [n for n in events if n in atoms or pattern.context in tide.NOISY]
        named = [(name, events[name]) for name in seen]
        texts[PATTERN, pattern.name] = f"{fingerprint_text(pattern)} {named}"
    for rule in program.without_groups(disabled).rules:
        uses = [_event_text(use.type, texts) for use in rule.events]
        texts[RULE, rule.name] = f"{fingerprint_text(replace(rule, group=''))} {uses}"
    return texts


def _event_text(event: tide.EventDeclaration, texts: Mapping[Declared, str]) -> str:
    """All that an event depends on."""
    match event.source:
        case tide.QueryChange(query) | tide.QueryUpdate(query):
            more = texts[QUERY, query]
        case tide.PatternSource(pattern):
            more = texts[PATTERN, pattern]
        case _:
            more = ""
    return f"{fingerprint_text(event)} {more}"


def check_new(program: Program, graph: GraphConnection, done: Replacement) -> None:
    """Raise what would be raised if new queries, and facts of new rules, were registered."""
    for query in program.queries:
        if (QUERY, query.name) not in done.kept:
            parsed = parse_standing(query.text)
            if isinstance(parsed, SelectQuery):
                graph.check(parsed)
    for rule in program.rules:
        if rule.facts is not None and (RULE, rule.name) not in done.kept:
            graph.check(rule.facts)


class KeptState(NamedTuple):
    """The state of what a replacement keeps."""

    done: Replacement
    engine: RuleEngine
    order: int
    rules: Mapping[str, Mapping[str, Any]]
    conflicts: Mapping[str, Any] | None
    detection: Detection | None
    emitted: list[int]

    def give_to(self, new: ProgramParts) -> None:
        """Let the new parts go on with it."""
        engine, names = new.engine, self.done.names(RULE)
        engine.take_over(self.engine)
        engine.rules.order = self.order
        for name, saved in self.rules.items():
            engine.rules[name].matcher.load(saved)
        if self.conflicts is not None and engine.conflicts is not None:
            engine.conflicts.load_kept(self.conflicts, engine.rules, new.graph.terms, names)
        if self.detection is not None and new.detection is not None:
            new.detection.take_over(self.detection, self.done.names(PATTERN))
        new.effects.emitted = self.emitted


def save_kept(old: ProgramParts, done: Replacement) -> KeptState:
    """The state of what is kept of some parts, which are still at work."""
    engine, conflicts = old.engine, old.engine.conflicts
    since = {} if conflicts is None else conflicts.first_since()
    rules = {n: engine.rules[n].matcher.dump(since.get(n, inf)) for n in done.names(RULE)}
    saved = None if conflicts is None else conflicts.dump()
    return KeptState(
        done, engine, engine.rules.order, rules, saved, old.detection, old.effects.emitted
    )
