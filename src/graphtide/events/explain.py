"""Explain: a pattern's automaton as text that can be read aloud, as Mermaid, or drawn as SVG."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from graphtide.events.picture import picture
from graphtide.events.wording import facts, position_text, token_text, transition_text
from graphtide.plan.wording import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.events.automaton import Automaton
    from graphtide.events.detect import AnyDetector
    from graphtide.plan.explain import ExplainFormat


def explain_pattern(
    automaton: Automaton,
    format: ExplainFormat = "text",  # noqa: A002 - the user's word
    running: AnyDetector | None = None,
    decode: Callable[[int], str] = str,
) -> str:
    """How a pattern works; with its tokens, if a running detector is given.

    >>> from graphtide.events.compile import compile_pattern
    >>> from graphtide.lang.event_algebra import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> print(explain_pattern(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1)))
    PATTERN P, parameters nothing
      context CHRONICLE
      no value is shared by all events: on Spark it runs in one cell
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
            return _mermaid(automaton, running, decode)
        case "svg":
            nodes = [_lines(automaton, running, decode, p) for p in range(len(automaton.positions))]
            return picture([*nodes], _edges(automaton))
        case _:
            assert_never(format)


def _title(automaton: Automaton) -> str:
    parameters = names(automaton.variables[slot] for slot in automaton.parameters)
    return f"PATTERN {automaton.name}, parameters {parameters}"


def _edges(automaton: Automaton) -> list[tuple[int, int, str]]:
    moves = (t for out in automaton.transitions for t in out)
    return [(t.source, t.target, transition_text(automaton, t)) for t in moves]


def _lines(
    automaton: Automaton, running: AnyDetector | None, decode: Callable[[int], str], position: int
) -> list[str]:
    """What is said of a position: what has happened, and which tokens are there."""
    lines = [position_text(automaton.positions[position])]
    if running is None:
        return lines if position else [_title(automaton), *facts(automaton), *lines]
    if position == 0:
        return [_title(automaton), *facts(automaton), *lines]
    here = [t for t in running.tokens() if any(c.position == position for c in t.configurations)]
    count = _tokens(len(here))
    return [
        *lines,
        *([count] if here else []),
        *(token_text(t, running.reader, decode) for t in here),
    ]


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


def _mermaid(
    automaton: Automaton, running: AnyDetector | None, decode: Callable[[int], str]
) -> str:
    lines = ["flowchart TB"]
    for position in range(len(automaton.positions)):
        label = "<br/>".join(map(_escape, _lines(automaton, running, decode, position)))
        lines.append(f'  n{position}["{label}"]')
    for source, target, text in _edges(automaton):
        lines.append(f'  n{source} -->|"{_escape(text)}"| n{target}')
    return "\n".join(lines)


def _escape(label: str) -> str:
    """Mermaid reads a label as HTML."""
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(sign, entity)
    return label
