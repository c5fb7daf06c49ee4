"""The entry point of the command line: the commands, and their exit codes.

Exit codes: 0 done; 1 problems found by `check`, a failed `test`, no plan by `repair`, or no such
row by `why`; 2 an error in the input or the arguments; 70 a bug of Graphtide; 130 interrupted.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import shorten
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from graphtide import __version__
from graphtide.cli.options import PrefixesOption, VerboseOption, command_line_error
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.prefixes import known_in_files

MISTAKE = 2
BUG = 70
INTERRUPTED = 130
MAX_MESSAGE = 300
"""Characters that are shown of an unexpected error."""

HELP = """Standing queries, patterns and rules over an RDF graph that changes, with exact deltas.

Example: `graphtide demo` shows a railway change; it needs no files.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the function or group that runs it, what it does, an example, and details."""

    target: str
    what: str
    example: str
    details: str = ""

    @property
    def name(self) -> str:
        """The word on the command line: the function's name, or that of a group's module."""
        module, _, function = self.target.partition(":")
        return module if function == "app" else function

    @property
    def help(self) -> str:
        """The help text, in Markdown."""
        return f"{self.what}\n\nExample: `{self.example}`\n\n{self.details}"


COMMANDS = (
    Command(
        "watch:watch",
        "Watch standing queries: + and - rows of their answers, transaction by transaction.",
        "graphtide watch route.rq --data rail.ttl --changes today.rdfp --follow",
        "A windowed query (RSP-QL) prints a result whenever a window closes: "
        "graphtide watch hot.rq --changes readings.rdfp. An insert into a graph that has the name "
        "of a stream is an event of it. Rows go to standard output, the summary to standard error. "
        "With --follow, Ctrl-C ends it with exit code 0; without, with 130.",
    ),
    Command(
        "query:query",
        "Evaluate a query once: a table, CSV, TSV, JSON or XML; triples as N-Triples or Turtle.",
        "graphtide query route.rq --data rail.ttl --format json",
        "All of SPARQL 1.2, with NOW, RAND and other non-deterministic functions.",
    ),
    Command(
        "query:update",
        "Run a SPARQL Update request on files, and write the resulting graph.",
        "graphtide update cleanup.ru --data rail.ttl --out cleaned.nq",
        "The data files are not changed.",
    ),
    Command(
        "explain:explain",
        "Show a query's logical and physical plan; a program's plans, automata and rules.",
        "graphtide explain route.rq --data rail.ttl --format mermaid",
        "With --data or --changes, a plan shows the rows that each node holds, and a pattern its "
        "tokens. One pattern of a program: graphtide explain doors.tide --pattern Left "
        "--format svg > left.svg",
    ),
    Command(
        "explain:trace",
        "Trace a program over changes: events, tokens, activations, firings, and what is dropped.",
        "graphtide trace examples/doors.tide --changes examples/doors.rdfp",
        "One line per step, in order; of a token or a match that is dropped, why. With --format "
        "chrome, a file for Perfetto: graphtide trace doors.tide --changes doors.rdfp --format "
        "chrome > doors.json",
    ),
    Command(
        "explain:why",
        "Explain why a row is in a query's answer: the quads behind it; or why it is not.",
        "graphtide why route.rq --row route=:route5 --data rail.ttl",
        "For a row that is not there, it shows what of the query holds, what does not, and changes "
        "with which the row would be there; the exit code is then 1.",
    ),
    Command(
        "check:check",
        "Check programs, queries, data and change logs; report every problem with its line.",
        "graphtide check alarms.tide route.rq rail.ttl today.rdfp",
        "For a query it also reports whether it can be maintained, and by which plan. The exit "
        "code is 1 if there is a problem.",
    ),
    Command(
        "check:test",
        "Run the tests that programs declare (TEST … GIVEN … EXPECT …).",
        "graphtide test examples/alarms.tide",
        "Each test has an empty graph of its own; CALL calls nothing. Of a test that fails, it "
        "shows what was expected, after -, and what came, after +; the exit code is then 1.",
    ),
    Command(
        "check:fmt",
        "Format programs; comments and SPARQL are not changed.",
        "graphtide fmt alarms.tide",
        "With --check nothing is written, and the exit code is 1 if something would be.",
    ),
    Command(
        "repair:repair",
        "Search for plans that make data meet the goals of a program, by the fixes it declares.",
        "graphtide repair rail.tide --data rail.ttl --apply 1 --out repaired.ttl",
        "Plans are listed with their cost, the best first. --apply shows the changes of a plan and "
        "the deltas of the queries, then applies it. The data files are not changed. The exit code "
        "is 1 if no plan was found.",
    ),
    Command(
        "run:run",
        "Run a program, its queries, patterns and rules, over change logs: on Spark or in process.",
        "graphtide run rail.tide --data rail.ttl --changes logs/ --out out/ --checkpoint ckpt/",
        "Without --out, the output is printed: + and - rows of queries, * complex events of "
        "patterns, ! firings of rules. With --out, it goes to a directory per query and pattern, "
        "firings to OUT/firings, rejected input to OUT/quarantine; in process it is printed, too. "
        "On Spark, Ctrl-C stops after the current micro-batch, and the same command resumes from "
        "--checkpoint. Spark needs Java 17 and graphtide[spark]; without them, or with --engine "
        "process, the program runs in this process.",
    ),
    Command(
        "serve:serve",
        "Serve a graph over HTTP: SPARQL, changes, subscriptions to standing queries, and a page.",
        "graphtide serve rail.tide --store rail/",
        "Only this machine can reach it, unless --host says otherwise; then it needs a "
        "--token-file. SIGTERM and Ctrl-C stop it after the transaction that is under way. It "
        "needs graphtide[serve].",
    ),
    Command(
        "check:store",
        "Look into the store of a durable graph, and maintain it.",
        "graphtide store verify rail/",
    ),
    Command(
        "run:replay",
        "Run another program or query over the inputs that a store has recorded.",
        "graphtide replay rail/ alarms.tide --since 1200",
        "The store is only read, and what ran on it does not run. Rows go to standard output, as "
        "with run.",
    ),
    Command(
        "demo:demo",
        "Watch a railway change: four standing queries on Spark, with live + and - rows.",
        "graphtide demo --transactions 100 --seed 7",
        "It needs no files, and leaves none behind.",
    ),
    Command(
        "demo:warm",
        "Compile the inner loops, once after an install: no first answer waits for that.",
        "graphtide warm --no-spark",
        "Without it they are compiled when they are first needed. It does nothing that was done "
        "before.",
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
    app.command(f"graphtide.cli.{command.target}", name=command.name, help=command.help)


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    verbose: VerboseOption = 0,
    prefixes: PrefixesOption = "none",
) -> object:
    """Run a command, after the options that all commands have."""
    with log_to_stderr(verbose), known_in_files(prefixes):
        return app(tokens, exit_on_error=False, print_error=False, result_action="return_value")


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command; every failure becomes a message on standard error and an exit code."""
    debug = bool(os.environ.get("GRAPHTIDE_DEBUG"))
    _buffer_output()
    try:
        code = app.meta(
            tokens, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone. Python would complain again when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except CycloptsError as error:
        print(f"graphtide: {command_line_error(error)}", file=sys.stderr)
        return MISTAKE
    except GraphtideError as error:
        if debug:
            traceback.print_exc()
        print(f"graphtide: {error}", file=sys.stderr)
        return MISTAKE
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user who did not ask for it
        if debug:
            traceback.print_exc()
        how = "" if debug else "; GRAPHTIDE_DEBUG=1 prints the traceback"
        print(
            f"graphtide: this is a bug in graphtide, please report it{how}: "
            f"{shorten(repr(error), MAX_MESSAGE)}",
            file=sys.stderr,
        )
        return BUG
    return code if isinstance(code, int) else 0


@contextmanager
def log_to_stderr(verbose: int) -> Iterator[None]:
    """Print log records on standard error: with 1 what a user may act on, with 2 everything."""
    if not verbose:
        yield
        return
    from graphtide.progress import show_progress

    logger, handler = logging.getLogger("graphtide"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
    show_progress(shown=True)
    try:
        yield
    finally:
        show_progress(shown=False)
        logger.setLevel(before)
        logger.removeHandler(handler)


def _buffer_output() -> None:
    """Buffer standard output even with PYTHONUNBUFFERED.

    Without a buffer, a write that is cut short, as when the reader goes away, goes unnoticed.
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
