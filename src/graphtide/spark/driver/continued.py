"""Continued: a checkpoint whose stream goes on from the state of another one.

A checkpoint is a directory with a file that says to whom it belongs, and Spark's checkpoint of the
stream. One that was rescaled or evolved has a second stream beside the first, which begins with
exported state:

    CHECKPOINT/graphtide.json         what runs, and with which stream; replacing it is the switch
    CHECKPOINT/job.json               the stages of the stream that ran last, and what they store
    CHECKPOINT/stream                 Spark's checkpoint of the first stream
    CHECKPOINT/stream-5f0c1a2b        that of the second one
    CHECKPOINT/feedback-5f0c1a2b      what actions change in the second stream
    CHECKPOINT/export-77e10ba4        the state of the first stream when it stopped
    CHECKPOINT/export-77e10ba4/for-…  the same for the partitions of the second one

Names are random: what a command has left that was killed is never taken for something else.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphtide.spark.source.offsets import Offset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.spark.files import Location

JOB_FILE: Final = "job.json"
BASE_STREAM: Final = "stream"
PROGRAM_NAME: Final = "events, patterns and rules"
"""Under what name a checkpoint has these, beside the names of queries."""


@dataclass(frozen=True, slots=True)
class Continued:
    """From where a stream goes on.

    `id` names the folders of the stream. `export` is the folder with the state of the one before,
    which had `partitions` partitions and `queries`, and of which `job` has notes.
    `first_batch` is the number of the first micro-batch; `reserved` of them come before it, for
    first answers. The source goes on at `offset`; a micro-batch up to `planned` had been begun and
    may have been written.
    """

    id: str
    export: str
    partitions: int
    queries: Mapping[str, str]
    first_batch: int
    offset: Mapping[str, Any]
    planned: Mapping[str, Any] | None = None
    job: Mapping[str, Any] = field(default_factory=dict)
    reserved: int = 0


def new_id() -> str:
    """A random name."""
    return uuid.uuid4().hex[:8]


def folder_of(name: str, continued: Continued | None) -> str:
    """The name of a folder that each stream of a checkpoint has for itself.

    >>> folder_of("stream", None)
    'stream'
    """
    return name if continued is None else f"{name}-{continued.id}"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where a stream stopped: its last micro-batch, its offset, and one that was only begun."""

    batch: int
    offset: Mapping[str, Any]
    planned: Mapping[str, Any] | None

    @property
    def read(self) -> Offset:
        """Up to where change logs are read."""
        return Offset.from_json(self.offset)


def stopped_at(stream: Location) -> Stopped | None:
    """Where a stream stopped, from Spark's own files; None if no micro-batch was committed."""
    done, begun = (_numbers(stream / name) for name in ("commits", "offsets"))
    if not done:
        return None
    last = max(done)
    planned = _offset(stream, last + 1) if last + 1 in begun else None
    return Stopped(last, _offset(stream, last), planned)


def begun_at(stream: Location) -> Mapping[str, Any] | None:
    """The offset at which the first micro-batch of a stream ends; None if it was not begun."""
    return _offset(stream, 0) if 0 in _numbers(stream / "offsets") else None


def _numbers(folder: Location) -> list[int]:
    return [int(entry.name) for entry in folder.entries() if entry.name.isdigit()]


def _offset(stream: Location, batch: int) -> Mapping[str, Any]:
    """The offset of the first source after a micro-batch; that of actions comes second."""
    lines = (stream / "offsets" / str(batch)).read_text().splitlines()
    found: Mapping[str, Any] = json.loads(lines[2])
    return found


def note_job(checkpoint: Location, notes: Mapping[str, Any]) -> None:
    """Write down what a later change of the checkpoint has to know of its job."""
    text = json.dumps(notes, indent=1)
    path = checkpoint / JOB_FILE
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def noted_job(checkpoint: Location) -> Mapping[str, Any] | None:
    """What was noted of the job of a checkpoint; None if it never ran."""
    path = checkpoint / JOB_FILE
    if not path.exists():
        return None
    found: Mapping[str, Any] = json.loads(path.read_text())
    return found
