"""An explanation as text, JSON, Mermaid or HTML: four views of the same tree."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from pyoxigraph import Literal

from graphtide.diagram import Mermaid, draw_tree
from graphtide.plan.describe import short
from graphtide.rdf.kinds import XSD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.why.tree import Explanation, Fact, WhyStep


def text(why: Explanation) -> str:
    """Lines of text: the row, a tree for each derivation, the changes, the notes."""
    changed = {change.fact.quad: change.diff for change in why.changes}

    def show(node: Any) -> tuple[list[str], Sequence[Any]]:  # noqa: ANN401 - a step or a title
        if isinstance(node, tuple):
            return [node[0]], node[1]
        return _lines(node, changed), node.children

    many = len(why.derivations) > 1
    each = [(f"derivation {n}", _top(found)) for n, found in enumerate(why.derivations, 1)]
    below: Sequence[Any] = each if many else [step for _, top in each for step in top]
    lines = draw_tree((why.title, below), show, "")
    if why.changes:
        lines += [why.changed_by, *(f"  {change.text()}" for change in why.changes)]
    return "\n".join([*lines, *why.notes])


def _top(derivation: WhyStep) -> tuple[WhyStep, ...]:
    return derivation.children if derivation.kind == "all" else (derivation,)


def _head(step: WhyStep) -> str:
    mark = "" if step.holds else "✗ "
    return f"{mark}{step.text}" + (f": {step.note}" if step.note else "")


def _lines(step: WhyStep, changed: dict[Any, int]) -> list[str]:
    return [_head(step) or "all of", *(_fact(fact, changed) for fact in step.facts)]


def _fact(fact: Fact, changed: dict[Any, int]) -> str:
    sign = {1: " (+)", -1: " (-)"}.get(changed.get(fact.quad, 0), "")
    return f"{fact.text()}{sign}"


def json_text(why: Explanation) -> str:
    """JSON with terms in N-Triples; every step has its kind, text, quads and children."""
    return json.dumps(
        {
            "query": why.query,
            "row": {name: None if term is None else str(term) for name, term in why.row.items()},
            "title": why.title,
            "derivations": [_json(step) for step in why.derivations],
            "changes": [{"diff": c.diff, "quad": _quad(c.fact)} for c in why.changes],
            "notes": list(why.notes),
        },
        ensure_ascii=False,
    )


def _json(root: WhyStep) -> dict[str, Any]:
    made: dict[int, dict[str, Any]] = {}
    for step in reversed([*root.walk()]):
        found: dict[str, Any] = {"kind": step.kind, "text": step.text, "holds": step.holds}
        if step.note:
            found["note"] = step.note
        if step.facts:
            found["quads"] = [_quad(fact) for fact in step.facts]
        if any(fact.times for fact in step.facts):
            found["times"] = [list(fact.times) for fact in step.facts]
        if step.children:
            found["children"] = [made[id(child)] for child in step.children]
        made[id(step)] = found
    return made[id(root)]


def _quad(fact: Fact) -> list[str]:
    return [str(term) for term in fact.quad if term is not None]


def mermaid(why: Explanation) -> str:
    """A flowchart from the row to its quads."""
    chart = Mermaid("down")
    chart.node("row", [why.title], rounded=True)
    changed = {change.fact.quad: change.diff for change in why.changes}
    rest = [("row", step) for derivation in why.derivations for step in _top(derivation)]
    number = 0
    while rest:
        above, step = rest.pop(0)
        number += 1
        name = f"n{number}"
        chart.node(name, [_head(step) or "all of"])
        chart.edge(above, name)
        for at, fact in enumerate(step.facts):
            chart.node(f"{name}q{at}", [_fact(fact, changed)], rounded=True)
            chart.edge(name, f"{name}q{at}")
        rest += [(name, child) for child in step.children]
    return str(chart)


def html(why: Explanation) -> str:
    """Nested lists; what does not hold has the class `fails`."""
    changed = {change.fact.quad: change.diff for change in why.changes}
    found = [f"<div class='why'><p>{escape(why.title)}</p>"]
    for derivation in why.derivations:
        found.append("<ul>")
        rest: list[WhyStep | str] = [*reversed(_top(derivation))]
        while rest:
            step = rest.pop()
            if isinstance(step, str):
                found.append(step)
                continue
            style = "" if step.holds else " class='fails'"
            quads = (f"<li><code>{escape(_fact(f, changed))}</code></li>" for f in step.facts)
            found.append(f"<li{style}>{escape(_head(step) or 'all of')}<ul>{''.join(quads)}")
            rest += ["</ul></li>", *reversed(step.children)]
        found.append("</ul>")
    if why.changes:
        each = "".join(f"<li><code>{escape(c.text())}</code></li>" for c in why.changes)
        found.append(f"<p>{escape(why.changed_by)}</p><ul>{each}</ul>")
    found += [f"<p>{escape(note)}</p>" for note in why.notes]
    return "".join([*found, "</div>"]).replace("<ul></ul>", "")


def values_text(values: Iterable[tuple[object, object]]) -> str:
    """Names with their values: `?v = "95"`, separated by commas."""
    return ", ".join(f"{name} = {'unbound' if v is None else brief(v)}" for name, v in values)


_BARE: Final = frozenset(f"{XSD}{name}" for name in ("integer", "decimal", "boolean"))


def brief(term: object) -> str:
    """A term as text: IRIs by their last segment, numbers and booleans as SPARQL writes them.

    >>> brief(Literal(80)), brief(Literal("a"))
    ('80', '"a"')
    """
    if isinstance(term, Literal) and term.datatype.value in _BARE:
        return term.value
    return short(term)
