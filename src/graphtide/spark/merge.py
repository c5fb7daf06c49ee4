"""Merge: many small chunks of a log become one, so that an engine is soon built again.

A log gets a chunk with each micro-batch. Whenever a run of them is complete, the run before it
becomes one chunk; a run of such chunks one of the next size; and so on, up to a size where merging
gains nothing. So a change is written a few times in all. The newest run is left as it is: an engine
that is a little behind catches up from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.spark.chunk import merged

if TYPE_CHECKING:
    from graphtide.spark.log import Log

RUN: Final = 16
LARGE: Final = 1_000_000
"""Bytes; no chunk is merged into a larger one."""


def merge_chunks(log: Log, version: int) -> None:
    """Merge what has become old enough with this version.

    >>> from graphtide.spark.chunk import to_chunk
    >>> from graphtide.spark.log import DictLog
    >>> import pyarrow as pa
    >>> log = DictLog()
    >>> for version in range(1, 41):
    ...     log.put_chunk(version, f"token {version}", to_chunk(pa.table({"a": [version]})))
    ...     merge_chunks(log, version)
    >>> log.versions()[:3], len(log.versions())
    ([16, 17, 18], 25)
    """
    end, span = version - RUN, RUN
    if version % RUN or end <= 0:
        return
    versions = [at for at in log.versions() if at <= end]
    while end % span == 0:
        run = [at for at in versions if at > end - span]
        if not _merge_run(log, run):
            return
        versions = [*versions[: -len(run)], run[-1]]
        span *= RUN


def _merge_run(log: Log, run: list[int]) -> bool:
    """Merge the last chunks of a run, as many as fit; whether the run is one chunk now."""
    chunks: list[bytes] = []
    token, size = "", 0
    for at in reversed(run):
        found = log.chunk(at)
        if found is None or size + len(found[1]) > LARGE:
            break
        token, size = token or found[0], size + len(found[1])
        chunks.append(found[1])
    if len(chunks) > 1:
        log.put_chunk(run[-1], token, merged(reversed(chunks)))
        for at in run[-len(chunks) : -1]:
            log.drop_chunk(at)
    return len(run) == len(chunks) > 0
