"""Explain: a plan as text that can be read aloud, or as a Mermaid diagram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, assert_never

from graphtide.plan.describe import describe, state_of
from graphtide.plan.physical import Physical, children

if TYPE_CHECKING:
    from graphtide.plan.physical import QueryPlan

ExplainFormat = Literal["text", "mermaid"]

Sizes = Mapping[Physical, Mapping[str, int]]


def explain(
    plan: QueryPlan,
    format: ExplainFormat = "text",  # noqa: A002 - the user's word
    *,
    sizes: Sizes | None = None,
    answer: int | None = None,
) -> str:
    """A query's physical plan; with `sizes`, the rows that each node holds."""
    match format:
        case "text":
            return _text(plan, sizes, answer)
        case "mermaid":
            return _mermaid(plan, sizes, answer)
        case _:
            assert_never(format)


def _title(plan: QueryPlan, answer: int | None) -> str:
    columns = " ".join(f"?{v.name}" for v in plan.variables) or "no columns"
    held = "" if answer is None else f", {rows(answer)} now"
    return f"answer {columns}{held}"


def rows(count: int) -> str:
    """A count of rows in words.

    >>> rows(1), rows(2000)
    ('1 row', '2,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def _text(plan: QueryPlan, sizes: Sizes | None, answer: int | None) -> str:
    lines = [f"strategy {plan.strategy}", _title(plan, answer)]
    numbers: dict[Physical, int] = {}

    def walk(node: Physical, prefix: str, *, last: bool) -> None:
        branch = "└─ " if last else "├─ "
        below = prefix + ("   " if last else "│  ")
        if node in numbers:
            lines.append(f"{prefix}{branch}[{numbers[node]}] again")
            return
        numbers[node] = len(numbers) + 1
        lines.append(f"{prefix}{branch}[{numbers[node]}] {describe(node)}")
        state = state_of(node, None if sizes is None else sizes.get(node))
        if state:
            lines.append(f"{below}{'│  ' if children(node) else '   '}stores {state}")
        for i, child in enumerate(inputs := children(node), start=1):
            walk(child, below, last=i == len(inputs))

    walk(plan.root, "", last=True)
    return "\n".join(lines)


def _mermaid(plan: QueryPlan, sizes: Sizes | None, answer: int | None) -> str:
    lines = ["flowchart BT", f'  answer(["{_escape(_title(plan, answer))}"])']
    numbers: dict[Physical, int] = {}

    def walk(node: Physical) -> int:
        if node in numbers:
            return numbers[node]
        numbers[node] = number = len(numbers) + 1
        state = state_of(node, None if sizes is None else sizes.get(node))
        label = describe(node) + (f"<br/>stores {state}" if state else "")
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
