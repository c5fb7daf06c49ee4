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
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import GraphtideError
from graphtide.spark.source.offsets import Offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


def in_topics(offset: Mapping[str, Any]) -> bool:
    """Whether an offset is one in topics of Kafka.

    >>> in_topics({"rail": {"0": 17}}), in_topics({"logOffset": 3})
    (True, False)
    """
    return bool(offset) and all(
        isinstance(partitions, dict) and all(map(str.isdigit, partitions))
        for partitions in offset.values()
    )


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


def has_begun(stream: Location) -> bool:
    """Whether a stream has planned a micro-batch; of old ones, Spark has deleted the offsets."""
    return bool(_numbers(stream / "offsets"))


def _numbers(folder: Location) -> list[int]:
    return [int(entry.name) for entry in folder.entries() if entry.name.isdigit()]


def _offset(stream: Location, batch: int) -> Mapping[str, Any]:
    """The offset of the first source after a micro-batch; that of actions comes second."""
    path = stream / "offsets" / str(batch)
    with explaining_damage(path):
        found = json.loads(path.read_text().splitlines()[2])
        return dict(found) if isinstance(found, dict) else {"offset": found}


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
    with explaining_damage(path):
        return dict(json.loads(path.read_text()))


@contextmanager
def explaining_damage(path: Location) -> Iterator[None]:
    """Say which file of a checkpoint is damaged."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise GraphtideError(
            f"{path} cannot be read: {error}",
            hint="the checkpoint is damaged: use a copy of it, or start again with another "
            "--checkpoint and --out",
        ) from None
