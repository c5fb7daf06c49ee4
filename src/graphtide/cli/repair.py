"""`graphtide repair`: plans that make data meet the goals of a program; one can be applied."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from graphtide.cli import options as opt
from graphtide.cli.inputs import load_data
from graphtide.cli.output import counted, shortener
from graphtide.cli.query import check_out, write_graph
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.limits import MAX_PLANS, MAX_SECONDS, MAX_STATES
from graphtide.repair.search import RepairStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.engine.results import DeltaRow
    from graphtide.rdf.terms import Term
    from graphtide.repair.plan import QuadChange, RepairPlan, Repairs, Step

NO_PLAN_FOUND: Final = 1

STEPS_SHOWN: Final = 8
"""Steps of a plan that the table shows."""

CHANGES_SHOWN: Final = 40
"""Changes, and delta rows of a query, that are shown of one plan."""

PIPE_WIDTH: Final = 200


def repair(
    program: Path,
    /,
    *,
    data: opt.DataOption,
    search: RepairStrategy = "best-first",
    max_steps: int | None = None,
    max_seconds: float = MAX_SECONDS,
    max_states: int = MAX_STATES,
    max_plans: int = MAX_PLANS,
    seed: opt.SeedOption = 0,
    apply: int | None = None,
    out: Annotated[
        Path | None,
        Parameter(
            help=f"{opt.OUT_HELP} A file for the quads after --apply, in the format of its suffix; "
            "by default N-Quads to standard output."
        ),
    ] = None,
    as_json: opt.JsonOption = False,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> int:
    """Search for repair plans.

    Parameters
    ----------
    program
        A program (.tide) with goals and fixes.
    search
        Search strategy. bfs, dfs and best-first are exhaustive; hill-climbing only takes steps
        that improve; random-restarts does so from many states, by --seed.
    max_steps
        Maximum number of steps in a plan; by default any number.
    max_seconds
        Stop the search after this many seconds.
    max_states
        Stop the search after this many states.
    max_plans
        Maximum number of plans to list, the best first.
    apply
        Apply the plan of this number, after showing its changes.
    """
    _check_options(apply, out, as_json=as_json)
    opt.at_least("--max-steps", max_steps, 0)
    opt.at_least("--max-states", max_states, 1)
    opt.at_least("--max-plans", max_plans, 1)
    if max_seconds <= 0:
        raise opt.invalid("--max-seconds", f"{max_seconds:g}", "give more than 0")
    parsed = Program.read(program)
    graph = LiveGraph(limits=limits.limits())
    load_data(graph, data or ())
    found = graph.repairs(
        parsed,
        strategy=search,
        max_steps=max_steps,
        max_seconds=max_seconds,
        max_states=max_states,
        max_plans=max(max_plans, apply or 1),
        seed=seed,
    )
    if not found:
        print(f"graphtide: no plan was found: {summary(found)}", file=sys.stderr)
        return NO_PLAN_FOUND
    if apply is not None and apply > len(found):
        raise opt.invalid("--apply", apply, f"{counted(len(found), 'plan')} found")
    aside = apply is not None and out is None
    if as_json:
        sys.stdout.writelines(json_line(n, plan) + "\n" for n, plan in enumerate(found, start=1))
    else:
        short = shortener(parsed.queries[0].text)
        print_to(plan_table(found[:max_plans], short), aside=aside)
        if apply is not None:
            print_to(plan_details(apply, found[apply - 1], short), aside=aside)
    if apply is not None:
        found[apply - 1].apply()
        write_graph(graph, out)
    print(summary(found), file=sys.stderr)
    return 0


def _check_options(apply: int | None, out: Path | None, *, as_json: bool) -> None:
    """Reject combinations that make no sense, before any work is done."""
    if apply is not None and apply < 1:
        raise opt.invalid("--apply", apply, "plans are numbered from 1")
    if out is not None and apply is None:
        raise GraphtideError("--out is for the result of --apply", hint="add --apply 1")
    if as_json and apply is not None and out is None:
        raise GraphtideError(
            "plans as JSON and data cannot both go to standard output",
            hint="name a file for the data with --out",
        )
    check_out(out)


# --- output ---


def print_to(shown: RenderableType, *, aside: bool) -> None:
    """Print to standard output, or `aside` to standard error; a pipe gets long lines."""
    file = sys.stderr if aside else sys.stdout
    width = None if file.isatty() else PIPE_WIDTH
    Console(file=file, highlight=False, width=width).print(shown, soft_wrap=False)


def plan_table(plans: Sequence[RepairPlan], short: Callable[[Term], str]) -> Table:
    """One row per plan: its number, cost, number of steps and of changes, and the steps."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("plan", "cost", "steps", "changes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fixes", overflow="fold")
    for number, plan in enumerate(plans, start=1):
        added = sum(change.diff > 0 for change in plan.changes)
        removed = len(plan.changes) - added
        changes = Text.assemble((f"+{added}", "green"), " ", (f"-{removed}", "red"))
        fixes = [step_text(step, short) for step in plan.steps[:STEPS_SHOWN]]
        fixes += _more(len(plan.steps), STEPS_SHOWN, "step")
        steps = "\n".join(fixes) or "nothing to do: all goals are met"
        table.add_row(str(number), f"{plan.cost:g}", str(len(plan.steps)), changes, Text(steps))
    return table


def step_text(step: Step, short: Callable[[Term], str]) -> str:
    """A step with its bindings.

    >>> from graphtide.repair.plan import Step
    >>> from pyoxigraph import Literal
    >>> step_text(Step("Mend", {"room": Literal(7)}, ()), str)
    'Mend(?room="7"^^<http://www.w3.org/2001/XMLSchema#integer>)'
    """
    values = ", ".join(f"?{name}={short(term)}" for name, term in step.bindings.items())
    return f"{step.fix}({values})"


def plan_details(number: int, plan: RepairPlan, short: Callable[[Term], str]) -> Text:
    """The quads that a plan inserts and deletes, then the deltas of the queries."""
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
    """How many states were searched, and why not more; without a plan, the nearest state.

    >>> from graphtide.repair.plan import RepairPlan, Repairs
    >>> closest = RepairPlan((), (), 0, {"Sound": 2}, {"Sound": 2}, {}, None)
    >>> print(summary(Repairs([], closest, "max_seconds=1 reached")))
    0 states searched in 0.00 s, not all: max_seconds=1 reached
    the nearest, in 0 steps, leaves violations of Sound: 2
    """
    searched = f"{counted(found.states, 'state')} searched in {found.seconds:.2f} s"
    left_out = f", not all: {found.stopped}" if found.stopped else ", which is all there are"
    plans = f"{counted(len(found), 'plan')}; " if found else ""
    near = ""
    if not found:
        left = ", ".join(f"{name}: {n}" for name, n in found.closest.violations.items() if n)
        steps = counted(len(found.closest.steps), "step")
        near = f"\nthe nearest, in {steps}, leaves violations of {left}"
    return f"{plans}{searched}{left_out}{near}"


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
