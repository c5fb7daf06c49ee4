"""Commands that show a page: start one, and end it with Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial


def start(*words):
    """A command, and the address of the page that it opens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "graphtide.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
        # Who starts the tests in the background may have them ignore interrupts.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    for line in process.stderr:
        if found := re.search(r"http://\S+", line):
            return process, found[0]
    raise AssertionError(process.stdout.read())


def ended(process):
    """The exit code of a command after Ctrl-C, and what it printed."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # it prints where each thread is
        raise AssertionError(process.communicate()[1]) from None
    return process.returncode, output
