"""`graphtide bench sequence`: one pattern over many keys, beside an automaton by hand."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from cyclopts import Parameter

from graphtide.cli.bench import show_table, telling


def sequence(
    *,
    events: int = 1_000_000,
    keys: int = 1_000,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    seed: int = 0,
) -> None:
    """Four kinds of event of one key, a -> b -> c -> d within 10 s, each event used once.

    Parameters
    ----------
    events
        How many events, a millisecond apart on average.
    keys
        How many keys they have.
    as_json
        Print a list of JSON objects instead of a table.
    seed
        The events are random; equal seeds give equal events.
    """
    from graphtide.bench.sequence.report import to_objects, to_table
    from graphtide.bench.sequence.run import run_benchmark

    with telling() as progress:
        results, left_out = run_benchmark(events, keys, seed, progress=progress)
    for name, reason in left_out.items():
        print(f"{name} was left out: {reason}", file=sys.stderr)
    if as_json:
        print(json.dumps(to_objects(results)))
    else:
        show_table(to_table(results))
