"""Explain: a pattern's automaton as text that can be read aloud, as Mermaid, or drawn as SVG."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Final, assert_never

from graphtide.diagram import Drawing, DrawnEdge, DrawnNode
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.format import PatternText, absent, chain, event, interleaved
from graphtide.patterns.build import atom_text
from graphtide.patterns.determine import determine
from graphtide.patterns.gather import condition_text
from graphtide.patterns.measure import lifetime
from graphtide.patterns.tables import key_of
from graphtide.plan.describe import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.lang.durations import WrittenDuration
    from graphtide.patterns.automaton import Automaton, AutomatonPosition, Transition
    from graphtide.patterns.detector import AnyDetector
    from graphtide.patterns.tokens import ConfigurationMover, Token
    from graphtide.plan.explain import ExplainFormat


SHOWN_TOKENS: Final = 5
"""Tokens that are written into a state of a drawing."""

# --- The nodes of a pattern as a program writes them.


def pattern_text(node: tide.EventPattern) -> PatternText:
    """A pattern in the words of the language.

    >>> a, b = tide.Atom("A", ()), tide.Atom("B", ())
    >>> print(pattern_text(tide.Follows((a, tide.Either((a, b)), tide.Repeat(b, 1, None)))))
    A -> (A OR B) -> B{+}
    """
    match node:
        case tide.Atom():
            return event(atom_text(node))
        case tide.Follows(parts):
            return chain("->", *map(pattern_text, parts))
        case tide.Either(parts):
            return chain("OR", *map(pattern_text, parts))
        case tide.Both(parts):
            return chain("AND", *map(pattern_text, parts))
        case tide.Interleaved(parts):
            return interleaved(*map(pattern_text, parts))
        case tide.Repeat(part, least, most, greedy):
            many = {(0, None): "{*}", (1, None): "{+}", (0, 1): "?", (most, most): f"{{{most}}}"}
            often = many.get((least, most), f"{{{least},{'' if most is None else most}}}")
            return pattern_text(part).suffixed(often + (" GREEDY" if greedy else ""))
        case tide.Not(part):
            return absent(pattern_text(part))
        case tide.Within(part, length):
            return pattern_text(part).within(_written(length))
        case tide.HoldsFor(part, length):
            return pattern_text(part).holds_for(_written(length))
        case _:
            assert_never(node)


def _written(length: WrittenDuration) -> str:
    return f"{int(length.amount)}{'ms' if length.in_time else ''}"


# --- An automaton, its transitions and its tokens in words.


def facts(automaton: Automaton) -> list[str]:
    """What holds for the whole pattern: context, PER, key, life of a token, memory."""
    per = [automaton.variables[slot] for slot in automaton.per]
    each = f", for each {names(per)} by itself" if per else ""
    each = f", {automaton.skip}{each}" if automaton.context == "UNRESTRICTED" else each
    reasons = determine(automaton).why_not
    form = f"tokens may be in several states: {'; '.join(reasons)}" if reasons else ""
    return [
        f"context {automaton.context}{each}",
        _division(automaton),
        *_memory(automaton, " of each " + names(per) if per else ""),
        form or "deterministic: a token is in one state",
    ]


def _division(automaton: Automaton) -> str:
    """By what the events of a pattern can be divided among cells."""
    if automaton.noisy and not automaton.per:
        return "every event may be noise: on Spark it runs in one partition"
    key = [automaton.variables[slot] for slot in key_of(automaton)[0]]
    if automaton.skip != "NO SKIP" and not key:
        return f"{automaton.skip} is about all instances: on Spark it runs in one partition"
    if not key:
        return "no value is shared by all events: on Spark it runs in one partition"
    return f"all events share {names(key)}: on Spark it is divided by that"


def _memory(automaton: Automaton, each: str) -> list[str]:
    life = lifetime(automaton)
    ticks = "1 tick" if life.ticks == 1 else f"{life.ticks:,} ticks"
    lives = f"a token lives {ticks} at most" if life.ticks < inf else "a token may live for ever"
    if automaton.context == "STRICT":
        return [lives, f"memory: one token{each}"]
    if automaton.context == "UNRESTRICTED":
        of = f"those of {ticks}" if life.ticks < inf else "all events"
        return [lives, f"memory: a token for each combination of {of} that can begin a match"]
    if life.ticks < inf:
        return [lives, f"memory: a token for each event of the last {ticks} that can begin one"]
    until = ", unless noise drops it" if automaton.context == "IMMEDIATE" else ""
    return [lives, f"memory: no bound, {life.why}{until}"]


def position_text(position: AutomatonPosition) -> str:
    """What has happened at a position.

    >>> from graphtide.patterns.automaton import AutomatonPosition
    >>> position_text(AutomatonPosition(0, None, None, (), (), "start"))
    'start'
    """
    text = position.name if position.number == 0 else f"after {position.name}"
    return f"{text}, complete" if position.final else text


def transition_text(automaton: Automaton, transition: Transition) -> str:
    """What a transition waits for, and on what terms."""
    target = automaton.positions[transition.target]
    parts = [target.name] if target.timer is None else [_timer_text(automaton, transition)]
    if transition.spare or (transition.greedy and transition.source >= transition.target):
        parts.append("again")
    if transition.greedy:
        parts.append("greedy")
    for zone in transition.crosses:
        most = automaton.zones[zone].most
        if most is not None and (target.timer is None or target.timer[0] != zone):
            parts.append(f"at most {most} after zone {zone} began")
    held = (*transition.held, *transition.early)
    parts += [f"at least {least} after zone {zone} began" for zone, least in held]
    parts += [f"zone {zone} begins" for zone in transition.enters]
    unless = [str(pattern_text(automaton.negations[n].node.part)) for n in transition.nots]
    return ", ".join(parts) + (f", unless {' or '.join(unless)}" if unless else "")


def _timer_text(automaton: Automaton, transition: Transition) -> str:
    zone, length = automaton.positions[transition.target].timer or (0, 0)
    since = "from here" if zone in transition.enters else f"since zone {zone} began"
    return f"{length} have passed {since}"


def token_text(token: Token, reader: ConfigurationMover, decode: Callable[[int], str]) -> str:
    """A token: since when, where, with which values, until when."""
    automaton, at = reader.automaton, token.configurations[0]
    values = [
        f"{variable}={decode(value)}"
        for variable, value in zip(automaton.variables, at.values, strict=True)
        if value
    ]
    where = sorted({c.position for c in token.configurations})
    deadline = token.deadline(reader)
    until = f"until {deadline:,}" if deadline < inf else "without end"
    places = " or ".join(map(str, where))
    return " ".join([f"token since {token.start:,} at {places}", *values, f"waits {until}"])


def explain_pattern(
    automaton: Automaton,
    format: ExplainFormat = "text",  # noqa: A002 - the user's word
    running: AnyDetector | None = None,
    decode: Callable[[int], str] = str,
) -> str:
    """How a pattern works; with its tokens, if a running detector is given.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
    >>> body = tide.Follows((tide.Atom("A", ()), tide.Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> print(explain_pattern(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1)))
    PATTERN P, parameters nothing
      context CHRONICLE
      no value is shared by all events: on Spark it runs in one partition
      a token may live for ever
      memory: no bound, after A it may wait for B for ever
      deterministic: a token is in one state
    [0] start
      to [1]: A
    [1] after A
      to [2]: B
    [2] after B, complete
    """
    match format:
        case "text":
            return _text(automaton, running, decode)
        case "mermaid":
            return drawing(automaton, running, decode).mermaid()
        case "svg":
            return drawing(automaton, running, decode).svg()
        case _:
            assert_never(format)


def _title(automaton: Automaton) -> str:
    parameters = names(automaton.variables[slot] for slot in automaton.parameters)
    computed = "".join(
        f", {automaton.variables[slot]} is {condition_text(expression)}"
        for slot, expression in automaton.computed
    )
    return f"PATTERN {automaton.name}, parameters {parameters}{computed}"


def _edges(automaton: Automaton) -> list[DrawnEdge]:
    moves = (t for out in automaton.transitions for t in out)
    return [DrawnEdge(t.source, t.target, transition_text(automaton, t)) for t in moves]


def _lines(
    automaton: Automaton, running: AnyDetector | None, decode: Callable[[int], str], position: int
) -> list[str]:
    """What is said of a position: what has happened, and which tokens are there."""
    lines = [position_text(automaton.positions[position])]
    if running is None or position == 0:
        return lines
    here = [t for t in running.tokens() if any(c.position == position for c in t.configurations)]
    shown = [token_text(t, running.reader, decode) for t in here[:SHOWN_TOKENS]]
    more = [f"… {len(here) - len(shown):,} more"] if len(here) > len(shown) else []
    return [*lines, *([_tokens(len(here))] if here else []), *shown, *more]


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


def _text(automaton: Automaton, running: AnyDetector | None, decode: Callable[[int], str]) -> str:
    lines = [_title(automaton), *(f"  {fact}" for fact in facts(automaton))]
    tokens = running.tokens() if running is not None else []
    counts = Counter(p for t in tokens for p in {c.position for c in t.configurations})
    for position in automaton.positions:
        held = f": {_tokens(counts[position.number])}" if counts[position.number] else ""
        lines.append(f"[{position.number}] {position_text(position)}{held}")
        lines += [
            f"  to [{t.target}]: {transition_text(automaton, t)}"
            for t in automaton.transitions[position.number]
        ]
    if running is not None:
        lines.append(f"{_tokens(len(tokens))} now")
        lines += [f"  {token_text(token, running.reader, decode)}" for token in tokens]
    return "\n".join(lines)


def drawing(
    automaton: Automaton,
    running: AnyDetector | None = None,
    decode: Callable[[int], str] = str,
) -> Drawing:
    """The automaton as a drawing, from the start to the right."""
    return Drawing(
        "right",
        [
            DrawnNode(
                _lines(automaton, running, decode, position.number),
                "double" if position.final else "box" if position.number else "round",
            )
            for position in automaton.positions
        ],
        _edges(automaton),
    )
