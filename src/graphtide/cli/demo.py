"""`graphtide demo`: a railway changes, and four standing queries say what is wrong with it."""

from __future__ import annotations

import sys
import time
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from graphtide.bench.railway import QUERIES, change_stream
from graphtide.cli.output import open_output, summary
from graphtide.cli.session import Session
from graphtide.engine import LiveGraph
from graphtide.errors import GraphtideError

PAUSE_SECONDS = 0.03
"""Between transactions on a terminal, so that one can follow them."""


def demo(
    *,
    transactions: int = 200,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Watch a railway change.

    Parameters
    ----------
    transactions
        How many transactions of faults and repairs to run.
    seed
        Equal seeds give equal railways and equal rows.
    as_json
        Print one JSON object for each row and nothing else.
    """
    if transactions < 0:
        raise GraphtideError(f"--transactions {transactions} is less than none")
    pause = PAUSE_SECONDS if sys.stdout.isatty() and not as_json else 0.0
    _get_ready()
    session = Session(LiveGraph(), QUERIES)
    session.expected = transactions + 1
    code = 0
    try:
        with open_output(session, QUERIES, as_json=as_json) as output:
            for batch in change_stream(transactions, seed=seed):
                for rows in session.apply([batch]):
                    output.rows(rows)
                time.sleep(pause)
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    print(summary(session), file=sys.stderr)
    return code


def _get_ready() -> None:
    """Run a little of it unseen, so that what follows is not interrupted by compiling."""
    screen = Console(stderr=True, highlight=False)
    with screen.status("getting ready; the first time this compiles, for up to a minute"):
        session = Session(LiveGraph(), QUERIES)
        for batch in change_stream(20, seed=1):
            list(session.apply([batch]))
