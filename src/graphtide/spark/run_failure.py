"""What went wrong in a run, in a few words, from what Spark reports."""

from __future__ import annotations

import re
from typing import Final

from graphtide.errors import GraphtideError

_KNOWN: Final = {
    "No space left on device": (
        "no space is left for the checkpoint",
        "make room there and for Spark's scratch files (spark.local.dir), and start again",
    ),
    "Python worker exited unexpectedly": (
        "a Python worker was killed, or it crashed",
        "is there enough memory? Start again; --master 'local[*,4]' allows each task four attempts",
    ),
}
"""Signs of a failure in Spark's reports; what it was, and what to do."""

_OURS = re.compile(r"graphtide\.errors\.\w+: (.*?)(?:\n\s*\n|\nJVM|\n\tat |\Z)", re.DOTALL)


def explained(report: str) -> GraphtideError | None:
    """What is wrong in a report of Spark, which comes with the traces of two languages.

    >>> explained("org.apache.spark.TaskException: java.io.IOException: No space left on device")
    GraphtideError('no space is left for the checkpoint')
    >>> explained("something of Spark's own")
    """
    found = _OURS.search(report)
    if found is not None:
        return GraphtideError(found[1].strip())
    for sign, (message, hint) in _KNOWN.items():
        if sign in report:
            return GraphtideError(message, hint=f"{hint}; nothing is lost")
    return None
