"""Peak memory of this process."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak_rss_mb() -> float:
    """The most memory this process has held at once, in MB of 10^6 bytes.

    >>> peak_rss_mb() > 1
    True
    """
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss would count the process that started this one as well: Linux hands it on.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return round(int(found[1]) * 1024 / 1e6, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)
