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

app = App(
    name="graphtide",
    version=__version__,
    help="Standing questions over a graph that keeps changing, answered with exact deltas.",
    help_epilogue="Example: `graphtide demo` shows a railway change, without any files.",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
app.command("graphtide.cli.watch:watch")
app.command("graphtide.cli.explain:explain")
app.command("graphtide.cli.check:check")
app.command("graphtide.cli.demo:demo")
app.command("graphtide.cli.bench:app", name="bench")


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
