"""An automaton, its transitions and its tokens in words."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from graphtide.events.determine import determine
from graphtide.events.kernel_tables import key_of
from graphtide.events.lifetime import lifetime
from graphtide.events.pattern_text import pattern_text
from graphtide.plan.wording import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.events.automaton import Automaton, Position, Transition
    from graphtide.events.configuration import Reader
    from graphtide.events.token import Token


def facts(automaton: Automaton) -> list[str]:
    """What holds for the whole pattern: context, PER, key, life of a token, memory."""
    per = [automaton.variables[slot] for slot in automaton.per]
    each = f", for each {names(per)} by itself" if per else ""
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
    if automaton.context != "CHRONICLE" and not automaton.per:
        return "every event may be noise: on Spark it runs in one cell"
    key = [automaton.variables[slot] for slot in key_of(automaton)[0]]
    if not key:
        return "no value is shared by all events: on Spark it runs in one cell"
    return f"all events share {names(key)}: on Spark it is divided by that"


def _memory(automaton: Automaton, each: str) -> list[str]:
    life = lifetime(automaton)
    ticks = "1 tick" if life.ticks == 1 else f"{life.ticks:,} ticks"
    lives = f"a token lives {ticks} at most" if life.ticks < inf else "a token may live for ever"
    if automaton.context == "STRICT":
        return [lives, f"memory: one token{each}"]
    if life.ticks < inf:
        return [lives, f"memory: a token for each event of the last {ticks} that can begin one"]
    until = ", unless noise drops it" if automaton.context == "IMMEDIATE" else ""
    return [lives, f"memory: no bound, {life.why}{until}"]


def position_text(position: Position) -> str:
    """What has happened at a position.

    >>> from graphtide.events.automaton import Position
    >>> position_text(Position(0, None, None, (), (), "start"))
    'start'
    """
    text = position.name if position.number == 0 else f"after {position.name}"
    return f"{text}, complete" if position.final else text


def transition_text(automaton: Automaton, transition: Transition) -> str:
    """What a transition waits for, and on what terms."""
    target = automaton.positions[transition.target]
    parts = [target.name] if target.timer is None else [_timer_text(automaton, transition)]
    if transition.spare:
        parts.append("again")
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


def token_text(token: Token, reader: Reader, decode: Callable[[int], str]) -> str:
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
