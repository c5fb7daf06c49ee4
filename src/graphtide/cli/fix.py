"""`graphtide fix`: plans that make data meet the goals of a program, and one of them applied."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphtide.cli.files import load_data
from graphtide.cli.fix_output import json_line, plan_details, plan_table, print_to, summary
from graphtide.cli.shorten import shortener
from graphtide.cli.update import check_out, write_graph
from graphtide.engine.live_graph import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.repair.model import MAX_PLANS, MAX_SECONDS, MAX_STATES
from graphtide.repair.search import RepairStrategy, find_repairs

if TYPE_CHECKING:
    from graphtide.repair.plan import Repairs

NOTHING_FOUND = 1


def fix(
    program: Path,
    *,
    data: list[Path],
    strategy: RepairStrategy = "best-first",
    depth: int | None = None,
    seconds: float = MAX_SECONDS,
    states: int = MAX_STATES,
    plans: int = MAX_PLANS,
    seed: int = 0,
    apply: int | None = None,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Look for plans.

    Parameters
    ----------
    program
        A program (.tide) with goals and fixes.
    data
        RDF to mend; it is read, never written. Repeat the option for several files.
    strategy
        In which order states are looked at. bfs, dfs and best-first leave none out; hill-climbing
        goes uphill only; random-restarts does so from many places, as the seed has it.
    depth
        The most steps in a plan; any number by default.
    seconds
        How long to look.
    states
        How many states to look at.
    plans
        How many plans to show, the best first.
    seed
        The seed of random-restarts.
    apply
        The number of a plan to carry out, after its changes were shown.
    out
        Where to write the quads that are there after --apply, in the format that the suffix
        tells; by default N-Quads to standard output.
    as_json
        One JSON object for each plan, with all its changes and deltas.
    """
    _check_options(apply, out, as_json=as_json)
    read = Program.read(program)
    graph = LiveGraph()
    load_data(graph, data)
    found = find_repairs(
        graph, read, strategy=strategy, max_steps=depth, max_seconds=seconds,
        max_states=states, max_plans=max(plans, apply or 1), seed=seed,
    )  # fmt: skip
    if not found:
        print(f"graphtide: no plan was found: {summary(found)}", file=sys.stderr)
        return NOTHING_FOUND
    if apply is not None and apply > len(found):
        hint = "choose one of those" if len(found) > 1 else "use --apply 1"
        raise GraphtideError(f"there is no plan {apply}: {len(found)} found", hint=hint)
    prologue = read.queries[0].text
    _show(found, prologue, plans, apply, aside=apply is not None and out is None, as_json=as_json)
    if apply is not None:
        found[apply - 1].apply(graph)
        write_graph(graph, out)
    print(summary(found), file=sys.stderr)
    return 0


def _check_options(apply: int | None, out: Path | None, *, as_json: bool) -> None:
    """Refuse what makes no sense before any work is done."""
    if apply is not None and apply < 1:
        raise GraphtideError(f"there is no plan {apply}", hint="plans are numbered from 1")
    if out is not None and apply is None:
        raise GraphtideError("--out is for the result of --apply", hint="add --apply 1")
    if as_json and apply is not None and out is None:
        hint = "name a file for the data with --out"
        raise GraphtideError("plans as JSON and data cannot both go to standard output", hint=hint)
    check_out(out)


def _show(
    found: Repairs, prologue: str, plans: int, apply: int | None, *, aside: bool, as_json: bool
) -> None:
    """The plans; on standard error if standard output is for data."""
    if as_json:
        sys.stdout.writelines(json_line(n, plan) + "\n" for n, plan in enumerate(found, start=1))
        return
    short = shortener(prologue)
    print_to(plan_table(found[:plans], short), aside=aside)
    if apply is not None:
        print_to(plan_details(apply, found[apply - 1], short), aside=aside)
