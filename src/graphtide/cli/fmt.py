"""`graphtide fmt`: programs in canonical form."""

from __future__ import annotations

from pathlib import Path

from graphtide.errors import GraphtideError, ProgramError, QueryError
from graphtide.lang.tide.format import format_program
from graphtide.lang.tide.program import read_text


def fmt(*files: Path, check: bool = False) -> int:
    """Lay out programs.

    Parameters
    ----------
    files
        Programs (.tide); they are written back where they lie.
    check
        Change nothing; the exit code is 1 if a file would be changed.
    """
    if not files:
        raise GraphtideError("there is nothing to lay out", hint="graphtide fmt FILE...")
    changed = [path for path in files if _fmt(path, check=check)]
    return 1 if check and changed else 0


def _fmt(path: Path, *, check: bool) -> bool:
    text = read_text(path)
    try:
        laid_out = format_program(text)
    except QueryError as error:
        for each in error.errors if isinstance(error, ProgramError) else (error,):
            each.source = str(path)
        error.source = str(path)
        raise
    if laid_out == text:
        return False
    if check:
        print(f"{path}: would be changed")
    else:
        path.write_text(laid_out, encoding="utf-8")
        print(f"{path}: changed")
    return True
