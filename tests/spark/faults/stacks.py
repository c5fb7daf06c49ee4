"""The stacks of a job's threads, for a failure that would otherwise only say that nothing happens.

Java prints its threads on SIGQUIT. Python does so on SIGUSR1, if `faulthandler` was told so;
a process that does not handle its signal is not asked, because that would end it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

SECONDS = 3.0
"""So long processes have for an answer."""

_BUSY = re.compile(
    r'^"(?:stream execution|Executor task|dag-scheduler|Thread-|python|state|main|rocksdb|async)'
)
"""Threads of Java that move a stream on; there are a hundred others."""

MOST = 30_000
"""Characters that are shown."""


def of_processes(processes: list[tuple[int, str]], log: Path) -> str:
    """Ask processes, by id and command, for their stacks; what they then write to their log."""
    before = log.stat().st_size
    states = []
    for pid, command in processes:
        name = "java" if "java" in command.split(" ", 1)[0] else "python"
        states.append(f"{pid} {name}: {_state(pid)}")
        sent = signal.SIGQUIT if name == "java" else signal.SIGUSR1
        if _catches(pid, sent):
            with contextlib.suppress(OSError):
                os.kill(pid, sent)
    time.sleep(SECONDS)
    with log.open("rb") as file:
        file.seek(before)
        told = file.read().decode(errors="replace")
    return "\n".join([*states, chosen(told)[:MOST]])


def chosen(told: str) -> str:
    """Of what processes print, the threads of Java that matter, and all that is not Java's.

    >>> java = '"main" #1\\n\\tat a.B.wait\\n\\n"GC task" #2\\n\\n'
    >>> chosen(java + "Thread 0x7f (most recent call first):\\n  File x\\n").splitlines()[-1]
    '  File x'
    >>> "GC task" in chosen(java)
    False
    """
    parts = told.split("\n\n")
    return "\n\n".join(
        p for p in parts if not p.lstrip().startswith('"') or _BUSY.match(p.lstrip())
    )


def _state(pid: int) -> str:
    """Whether a process runs, sleeps or is stopped, and in which call of the kernel."""
    found = "gone"
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        found = next(line for line in status.splitlines() if line.startswith("State:"))
        found += " " + Path(f"/proc/{pid}/wchan").read_text(encoding="utf-8")
    return found


def _catches(pid: int, sent: int) -> bool:
    """Whether a process handles a signal."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        mask = next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1]
        return bool(int(mask, 16) >> (sent - 1) & 1)
    return False
