"""Locks of files between processes.

A lock belongs to the open file: it ends when that is closed, or with the process. SQLite's locks,
and those of `fcntl.lockf`, belong to the process: they end when it closes any other handle of the
file, as a copy of the directory does.
"""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def lock_file(path: Path, *, wait: bool) -> IO[str]:
    """Open a file and lock it; closing it ends the lock.

    Raises BlockingIOError if another process has the lock and `wait` is false, and OSError if the
    file cannot be opened or locked.
    """
    file = path.open("a", encoding="utf-8")
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - only there

            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except PermissionError as error:
                raise BlockingIOError(*error.args) from None
        else:
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        file.close()
        raise
    return file
