"""The entry point: commands, and what happens when one fails.

Exit codes: 0 done; 1 problems found by `check`; 2 a mistake in the input or the command line;
70 a bug of ours; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from graphtide import __version__
from graphtide.errors import GraphtideError

MISTAKE = 2
BUG = 70
INTERRUPTED = 130

HELP = """Standing questions over a graph that keeps changing, answered with exact deltas.

Example: `graphtide demo` shows a railway change; it needs no files.
"""

# The modules are imported when their command runs.
COMMANDS = {
    "watch": ("watch:watch", "Watch how the answers of queries change: + and - rows."),
    "explain": ("explain:explain", "Show a query's plans: its meaning, and how it is maintained."),
    "check": ("check:check", "Check queries, data and change logs; report every problem."),
    "demo": ("demo:demo", "Watch a railway change, with live + and - rows; needs no files."),
    "bench": ("bench:app", "Measure it yourself, beside other engines."),
}

app = App(
    name="graphtide",
    version=__version__,
    help=HELP,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
for command, (place, what) in COMMANDS.items():
    app.command(f"graphtide.cli.{place}", name=command, help=what)


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command; every failure becomes a message on standard error and an exit code."""
    debug = bool(os.environ.get("GRAPHTIDE_DEBUG"))
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


if __name__ == "__main__":
    sys.exit(main())
