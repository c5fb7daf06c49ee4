"""Explain: a plan as text that can be read aloud, as a Mermaid diagram, or drawn as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

from graphtide.plan.describe import describe, state_of
from graphtide.plan.draw import draw
from graphtide.plan.physical import Physical, children

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.plan.physical import QueryPlan

ExplainFormat = Literal["text", "mermaid", "svg"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a plan at work: rows held, expected and there, by node; and its answer."""

    sizes: Mapping[Physical, Mapping[str, int]] | None = None
    expected: Mapping[Physical, float] | None = None
    actual: Mapping[Physical, int] | None = None
    answer: int | None = None

    def stores(self, node: Physical) -> str:
        """What a node stores, in words; empty if nothing."""
        state = state_of(node, None if self.sizes is None else self.sizes.get(node))
        return f"stores {state}" if state else ""

    def line(self, node: Physical) -> str:
        """What a node does, and how many rows it has: counted, and expected by the planner."""
        there = None if self.actual is None else self.actual.get(node)
        guess = None if self.expected is None else self.expected.get(node)
        parts = [describe(node)]
        if there is not None:
            parts.append(
                rows(there) + (f" ({round(guess):,} expected)" if guess is not None else "")
            )
        elif guess is not None:
            parts.append(f"{rows(round(guess))} expected")
        return ": ".join(parts)

    def lines(self, node: Physical) -> list[str]:
        """All there is to say of a node."""
        return [line for line in (self.line(node), self.stores(node)) if line]


NO_FACTS = Facts()


def explain(
    plan: QueryPlan,
    format: ExplainFormat = "text",  # noqa: A002 - the user's word
    facts: Facts = NO_FACTS,
) -> str:
    """A query's physical plan, with what is known of it at work."""
    match format:
        case "text":
            return _text(plan, facts)
        case "mermaid":
            return _mermaid(plan, facts)
        case "svg":
            return draw(plan.root, _title(plan, facts), facts.lines)
        case _:
            assert_never(format)


def _title(plan: QueryPlan, facts: Facts) -> str:
    columns = " ".join(f"?{v.name}" for v in plan.variables) or "no columns"
    held = "" if facts.answer is None else f", {rows(facts.answer)} now"
    return f"answer {columns}{held}"


def rows(count: int) -> str:
    """A count of rows in words.

    >>> rows(1), rows(2000)
    ('1 row', '2,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def _text(plan: QueryPlan, facts: Facts) -> str:
    lines = [f"strategy {plan.strategy}", _title(plan, facts)]
    numbers: dict[Physical, int] = {}

    def walk(node: Physical, prefix: str, *, last: bool) -> None:
        branch = "└─ " if last else "├─ "
        below = prefix + ("   " if last else "│  ")
        if node in numbers:
            lines.append(f"{prefix}{branch}[{numbers[node]}] again")
            return
        numbers[node] = len(numbers) + 1
        first, *others = facts.lines(node)
        lines.append(f"{prefix}{branch}[{numbers[node]}] {first}")
        beside = f"{below}{'│  ' if children(node) else '   '}"
        lines.extend(f"{beside}{line}" for line in others)
        for i, child in enumerate(inputs := children(node), start=1):
            walk(child, below, last=i == len(inputs))

    walk(plan.root, "", last=True)
    return "\n".join(lines)


def _mermaid(plan: QueryPlan, facts: Facts) -> str:
    lines = ["flowchart BT", f'  answer(["{_escape(_title(plan, facts))}"])']
    numbers: dict[Physical, int] = {}

    def walk(node: Physical) -> int:
        if node in numbers:
            return numbers[node]
        numbers[node] = number = len(numbers) + 1
        label = "<br/>".join(facts.lines(node))
        lines.append(f'  n{number}["{_escape(label)}"]')
        lines.extend(f"  n{walk(child)} --> n{number}" for child in children(node))
        return number

    lines.append(f"  n{walk(plan.root)} --> answer")
    return "\n".join(lines)


def _escape(label: str) -> str:
    """Mermaid reads a label as HTML, all but the line breaks that we put in."""
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(sign, entity)
    return label.replace("&lt;br/&gt;", "<br/>")
