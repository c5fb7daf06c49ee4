"""The entry point: commands, and what happens when one fails.

Exit codes: 0 done; 1 problems found by `check`, or no plan by `fix`; 2 a mistake in the input or
the command line; 70 a bug of ours; 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from cyclopts import App, CycloptsError, Parameter

from graphtide import __version__
from graphtide.errors import GraphtideError

MISTAKE = 2
BUG = 70
INTERRUPTED = 130

HELP = """Standing questions over a graph that keeps changing, answered with exact deltas.

Example: `graphtide demo` shows a railway change; it needs no files.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the function or group that runs it, what it does, an example, and more."""

    place: str
    what: str
    example: str
    more: str = ""


COMMANDS = (
    Command(
        "watch:watch",
        "Watch how the answers of queries change: + and - rows, transaction by transaction.",
        "graphtide watch route.rq --data rail.ttl --changes today.rdfp --follow",
        "Of queries over windows, the reports: graphtide watch hot.rq --changes readings.rdfp. "
        "Rows go to standard output, the summary to standard error. With --follow, Ctrl-C is the "
        "way to end and gives exit code 0; without, it gives 130.",
    ),
    Command(
        "query:query",
        "Answer a query once, as a table, CSV, TSV, JSON or XML; triples as N-Triples or Turtle.",
        "graphtide query route.rq --data rail.ttl --format json",
        "All of SPARQL 1.1 but SERVICE; NOW, RAND and the like are allowed here.",
    ),
    Command(
        "update:update",
        "Carry out a SPARQL Update request on files, and write what is there afterwards.",
        "graphtide update mend.ru --data rail.ttl --out mended.nq",
        "The data files stay as they are.",
    ),
    Command(
        "explain:explain",
        "Show a query's plans: what it means, and how it is maintained; of a program, its rules.",
        "graphtide explain route.rq --data rail.ttl --format mermaid",
    ),
    Command(
        "check:check",
        "Check programs, queries, data and change logs; report every problem with its place.",
        "graphtide check alarms.tide route.rq rail.ttl today.rdfp",
        "Of a query it also says whether it can be maintained, and by which plan. The exit code "
        "is 1 if there is a problem.",
    ),
    Command(
        "fmt:fmt",
        "Lay out programs in canonical form; comments and SPARQL stay as they are.",
        "graphtide fmt alarms.tide",
        "With --check nothing is changed, and the exit code is 1 if something would be.",
    ),
    Command(
        "fix:fix",
        "Look for plans that make data meet the goals of a program, by the fixes it allows.",
        "graphtide fix rail.tide --data rail.ttl --apply 1 --out mended.ttl",
        "Plans are shown with their cost, the best first; --apply shows what a plan changes and "
        "what the queries would tell of it, then carries it out. The data files stay as they are. "
        "The exit code is 1 if no plan was found.",
    ),
    Command(
        "run:run",
        "Run a program of queries over a directory of change logs, on Spark.",
        "graphtide run rail.tide --changes logs/ --out out/ --checkpoint checkpoint/",
        "The deltas of each query go to a directory of OUT, what could not be used to "
        "OUT/quarantine. Ctrl-C stops after the micro-batch that is under way; the same command "
        "goes on from there. It needs Java 17 and graphtide[spark].",
    ),
    Command(
        "demo:demo",
        "Watch a railway change: four standing queries on Spark, live + and - rows; no files.",
        "graphtide demo --transactions 100 --seed 7",
    ),
    Command(
        "generate:app",
        "Make data to try things out with.",
        "graphtide generate train --size 64 --scenario repair --out rail.nt.gz",
    ),
    Command(
        "bench:app",
        "Measure it yourself, beside other engines.",
        "graphtide bench route-sensor --edges 130000 --no-peers",
    ),
)

app = App(
    name="graphtide",
    version=__version__,
    help=HELP,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
for command in COMMANDS:
    # By name: a module is imported when its command runs.
    app.command(
        f"graphtide.cli.{command.place}",
        name=command.place.split(":")[0],
        help=f"{command.what}\n\nExample: `{command.example}`\n\n{command.more}",
    )


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command; every failure becomes a message on standard error and an exit code."""
    debug = bool(os.environ.get("GRAPHTIDE_DEBUG"))
    _buffer_output()
    try:
        code = app(tokens, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except CycloptsError:
        return MISTAKE
    except GraphtideError as error:
        if debug:
            traceback.print_exc()
        print(f"graphtide: {error}", file=sys.stderr)
        return MISTAKE
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user who did not ask for it
        if debug:
            traceback.print_exc()
        told = "" if debug else "; GRAPHTIDE_DEBUG=1 shows where"
        print(
            f"graphtide: this is a bug in graphtide, please report it{told}: {error!r}",
            file=sys.stderr,
        )
        return BUG
    return code if isinstance(code, int) else 0


def _buffer_output() -> None:
    """Give standard output its buffer back where PYTHONUNBUFFERED has taken it away.

    Without one, what a single write leaves over, as when a reader goes away, is lost unnoticed.
    """
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.isatty(),
        )


if __name__ == "__main__":
    sys.exit(main())
