"""Repair plans as output: a table, the changes of one plan, or JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphtide.cli.output import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType

    from graphtide.engine.watch import DeltaRow
    from graphtide.rdf.terms import Term
    from graphtide.repair.plan import QuadChange, RepairPlan, Repairs, Step

STEPS_SHOWN: Final = 8
"""Steps of a plan in the table."""

CHANGES_SHOWN: Final = 40
"""Changes, and delta rows of a query, that are shown of one plan."""

PIPE_WIDTH: Final = 200


def print_to(shown: RenderableType, *, aside: bool) -> None:
    """Print to standard output, or aside to standard error; lines in a pipe are long."""
    file = sys.stderr if aside else sys.stdout
    width = None if file.isatty() else PIPE_WIDTH
    Console(file=file, highlight=False, width=width).print(shown, soft_wrap=False)


def plan_table(plans: Sequence[RepairPlan], short: Callable[[Term], str]) -> Table:
    """One row for each plan: number, cost, number of steps, changes, and what the steps are."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("plan", "cost", "steps", "changes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for number, plan in enumerate(plans, start=1):
        come = sum(change.diff > 0 for change in plan.changes)
        changes = Text.assemble((f"+{come}", "green"), " ", (f"-{len(plan.changes) - come}", "red"))
        what = [step_text(step, short) for step in plan.steps[:STEPS_SHOWN]]
        what += _more(len(plan.steps), STEPS_SHOWN, "step")
        steps = "\n".join(what) or "nothing to do, all goals are met"
        table.add_row(str(number), f"{plan.cost:g}", str(len(plan.steps)), changes, Text(steps))
    return table


def step_text(step: Step, short: Callable[[Term], str]) -> str:
    """A step with its values, in short.

    >>> from graphtide.repair.plan import Step
    >>> from pyoxigraph import Literal
    >>> step_text(Step("Mend", {"room": Literal(7)}, ()), str)
    'Mend(?room="7"^^<http://www.w3.org/2001/XMLSchema#integer>)'
    """
    values = ", ".join(f"?{name}={short(term)}" for name, term in step.bindings.items())
    return f"{step.fix}({values})"


def plan_details(number: int, plan: RepairPlan, short: Callable[[Term], str]) -> Text:
    """The quads that come and go with a plan, then the deltas of the queries."""
    lines = [(f"\nplan {number}", "bold")]
    lines += _limited([_quad(change, short) for change in plan.changes], "change")
    for name, rows in plan.preview.items():
        if rows:
            lines.append((f"{name}", "bold"))
            lines += _limited([_row(row, short) for row in rows], "row")
    return Text("\n").join(Text(text, style) for text, style in lines)


def _quad(change: QuadChange, short: Callable[[Term], str]) -> tuple[str, str]:
    terms = " ".join(short(term) for term in change[1:] if term is not None)
    return _signed(change.diff, terms)


def _row(row: DeltaRow, short: Callable[[Term], str]) -> tuple[str, str]:
    values = [f"?{name}={short(term)}" for name, term in row.row.items() if term is not None]
    times = [f"{abs(row.diff)}×"] if abs(row.diff) > 1 else []
    return _signed(row.diff, " ".join(times + values))


def _signed(diff: int, text: str) -> tuple[str, str]:
    return (f"  + {text}", "green") if diff > 0 else (f"  - {text}", "red")


def _limited(lines: list[tuple[str, str]], thing: str) -> Iterator[tuple[str, str]]:
    yield from lines[:CHANGES_SHOWN]
    yield from ((f"  {more}", "") for more in _more(len(lines), CHANGES_SHOWN, thing))


def _more(there: int, shown: int, thing: str) -> list[str]:
    return [f"… and {counted(there - shown, 'more ' + thing)}"] if there > shown else []


def summary(found: Repairs) -> str:
    """What was looked at, and what was left out; of no plan, how near one came.

    >>> from graphtide.repair.plan import RepairPlan, Repairs
    >>> closest = RepairPlan((), (), 0, {"Sound": 2}, {"Sound": 2}, {}, None)
    >>> print(summary(Repairs([], closest, "max_seconds=1 reached")))
    0 states were looked at in 0.00 s, not all: max_seconds=1 reached
    the nearest, in 0 steps, leaves violations of Sound: 2
    """
    looked = f"{counted(found.states, 'state')} were looked at in {found.seconds:.2f} s"
    looked = looked.replace("1 state were", "1 state was") if found.states == 1 else looked
    left_out = f", not all: {found.stopped}" if found.stopped else ", which is all there are"
    plans = f"{counted(len(found), 'plan')}; " if found else ""
    near = ""
    if not found:
        left = ", ".join(f"{name}: {n}" for name, n in found.closest.violations.items() if n)
        steps = counted(len(found.closest.steps), "step")
        near = f"\nthe nearest, in {steps}, leaves violations of {left}"
    return f"{plans}{looked}{left_out}{near}"


def json_line(number: int, plan: RepairPlan) -> str:
    """A plan as a JSON object; terms are N-Triples texts, null is unbound or the default graph."""
    return json.dumps(
        {
            "plan": number,
            "cost": plan.cost,
            "steps": [
                {"fix": step.fix, "bindings": {n: str(t) for n, t in step.bindings.items()}}
                for step in plan.steps
            ],
            "changes": [
                {"diff": change.diff} | dict(zip("spog", map(_text, change[1:]), strict=True))
                for change in plan.changes
            ],
            "violations": plan.violations,
            "counts": plan.counts,
            "preview": {
                name: [
                    {"diff": row.diff, "row": {n: _text(term) for n, term in row.row.items()}}
                    for row in rows
                ]
                for name, rows in plan.preview.items()
            },
        }
    )


def _text(term: Term | None) -> str | None:
    return None if term is None else str(term)
