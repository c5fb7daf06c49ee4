"""Short ways to write patterns and streams: one letter is an event type, `a` or `a(x, 5, _)`."""

from __future__ import annotations

import re

from pyoxigraph import Literal

from graphtide.algebra.expressions import Var
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Both,
    Either,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    PatternDeclaration,
    Repeat,
    Within,
)
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import Detector

TYPES = {
    name: i for i, name in enumerate(["a", "b", "c", "d", "e", "x", "y", "z", "a1", "a2", "a3"])
}


def atom(text):
    """`a(x, 5, _)`: a variable, a constant with the id 5, any value."""
    name, _, inside = text.rstrip(")").partition("(")
    return Atom(name, tuple(map(_argument, re.findall(r"\w+", inside))))


def _argument(word):
    if word == "_":
        return None
    return Literal(int(word)) if word.isdigit() else Var(word)


def _node(part):
    return atom(part) if isinstance(part, str) else part


def then(*parts):
    return Follows(tuple(map(_node, parts)))


def either(*parts):
    return Either(tuple(map(_node, parts)))


def both(*parts):
    return Both(tuple(map(_node, parts)))


def beside(*parts):
    return Interleaved(tuple(map(_node, parts)))


def times(part, count):
    return Repeat(_node(part), count, count)


def plus(part):
    return Repeat(_node(part), 1, None)


def star(part):
    return Repeat(_node(part), 0, None)


def no(part):
    return Not(_node(part))


def within(part, ticks):
    return Within(_node(part), WrittenDuration(ticks))


def holds(part, ticks):
    return HoldsFor(_node(part), WrittenDuration(ticks))


def pattern(body, context="CHRONICLE", *, per="", parameters=""):
    names = (tuple(map(Var, text.split())) for text in (parameters, per))
    parameters, per = names
    return PatternDeclaration("P", parameters, _node(body), context, per, 1)


def automaton(body, context="CHRONICLE", *, per="", parameters=""):
    declared = pattern(body, context, per=per, parameters=parameters)
    return compile_pattern(declared, TYPES, lambda term: int(term.value), 1)


def detector(body, context="CHRONICLE", *, per="", parameters=""):
    return Detector(automaton(body, context, per=per, parameters=parameters))


def run(running, events, until=None):
    """Feeds `a b(1) a@7`: without `@` each event is one tick after the one before."""
    found, time = [], -1 if running.now is None else running.now
    for word in events.split():
        text, _, at = word.partition("@")
        time = int(at) if at else time + 1
        name, _, inside = text.rstrip(")").partition("(")
        values = tuple(map(int, inside.split(","))) if inside else ()
        found += running.step(TYPES[name], values, time)
    return found + (running.advance(until) if until is not None else [])


def used(found):
    return [list(one.used) for one in found]
