"""`graphtide bench gesture`: the gesture case study of paper 4, measured here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling
from graphtide.errors import GraphtideError


def gesture(
    *,
    bodies: str = "1,2,4,8,16,24,25",
    most: Annotated[bool, Parameter(negative="--no-most")] = True,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    plot: Path | None = None,
) -> None:
    """Gestures of bodies before a camera: the event engine alone, and the chain from coordinates.

    Parameters
    ----------
    bodies
        Numbers of bodies, separated by commas.
    most
        Look for the largest number of bodies that can be followed at 25 frames a second.
    as_json
        Print a list of JSON objects instead of a table.
    plot
        Draw the speed over the number of bodies, to FILE.png and FILE.svg.
    """
    from graphtide.bench.gesture.plot import write_plot
    from graphtide.bench.gesture.report import to_objects, to_table
    from graphtide.bench.gesture.run import make_tasks, run_tasks
    from graphtide.bench.train.plot import check_plot

    tasks = make_tasks(_numbers(bodies), search=most)
    if plot is not None:
        check_plot(plot)
    with telling() as progress:
        results = run_tasks(tasks, progress=progress)
    if as_json:
        print(json.dumps(to_objects(results)))
    else:
        show_table(to_table(results), width=120)
    if plot is not None:
        for path in write_plot(results, plot):
            print(f"drew {path}", file=sys.stderr)


def _numbers(text: str) -> list[int]:
    """Numbers of bodies.

    >>> _numbers("1, 24")
    [1, 24]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) for part in parts):
        hint = "give whole numbers from 1 on, separated by commas, such as 24,100"
        raise GraphtideError(f"--bodies {text!r}: these are no numbers of bodies", hint=hint)
    return [int(part) for part in parts]
