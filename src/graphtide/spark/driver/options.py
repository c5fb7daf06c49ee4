"""Options of a run, and the checkpoint that it owns.

A checkpoint can be resumed only by the program and the number of partitions that made it;
`graphtide.spark.driver.rescale` changes them.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, dataclass, field, replace
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from graphtide.errors import GraphtideError
from graphtide.limits import Limits
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver.feedback import MAX_ROUNDS
from graphtide.spark.driver.sink import holds_something
from graphtide.spark.files import Location
from graphtide.spark.partition import hubs as hub
from graphtide.spark.partition.program import ProgramSpec, program_spec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.source.plan import check_log
from graphtide.spark.stages.unpack import check_names
from graphtide.spark.watermark import lateness_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from graphtide.lang.tide.program import Program
    from graphtide.spark.layouts import Layouts
    from graphtide.spark.output import OutputFormat
    from graphtide.spark.partition.windows import Late
    from graphtide.streams.windows import Alignment

log = getLogger(__name__)

OnError = Literal["raise", "skip"]
Start = Literal["earliest", "latest"]

STREAMING: Final = "a DataFrame that streams"
BOUNDED: Final = "a bounded DataFrame"
"""How a checkpoint names its input, if that has no path."""

_TRIGGER = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m)")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000}


class RunSettings(TypedDict, total=False):
    """The options of a run that have defaults; `RunOptions` describes them."""

    trigger: str
    once: bool
    output_format: OutputFormat
    rows_per_batch: int
    on_error: OnError
    max_quarantined: int | None
    start: Start
    lateness: int | None
    tick_ms: int
    window_origin: int
    window_alignment: Alignment
    streams: tuple[str, ...]
    data: tuple[Path, ...]
    max_rounds: int
    shards: int | None
    idle: int | None
    late: Late | None
    idle_seconds: float | None
    layout: Layouts
    hubs: hub.Hubs
    limits: Limits


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run reads, where it writes, and how.

    `changes` is a change log, a directory of them, or a DataFrame as `watch` takes it. The files of
    `data` are loaded before a log, each as one transaction at time 0. `trigger` is the pause
    between micro-batches ("500ms", "1s", "2m"); with `once` the run ends when all that is there has
    been read. Rejected rows go to the quarantine in `out`; the run stops when there are more than
    `max_quarantined`, with `on_error="raise"` at the first. Of a directory, a micro-batch reads
    about `rows_per_batch` lines, and with `start="latest"` a first run begins with what is written
    from now on. Rows may be late by `lateness` ticks of `tick_ms` milliseconds; `window_origin` and
    `window_alignment` are those of `LiveGraph`. Inserts into graphs that are named in `streams` are
    events, if the changes have no column `stream`. The run stops if actions cause further actions
    more than `max_rounds` times in turn. Of a DataFrame, `shards`, `idle` and `late` are those of
    `watch`; late rows of a log are rejected. `idle_seconds`, `layout` and `hubs` are those of
    `watch`; without `hubs`, those of the checkpoint. With "auto" (alone, or in a list of others) a
    run over change logs or topics finds hubs itself, and goes on with them (`driver.dividing`).
    `limits` are those of the engines, and of what is read of a log.
    """

    changes: Location | DataFrame
    out: Location
    checkpoint: Location
    partitions: int
    trigger: str = "1s"
    once: bool = False
    output_format: OutputFormat = "parquet"
    rows_per_batch: int = 200_000
    on_error: OnError = "skip"
    max_quarantined: int | None = None
    start: Start = "earliest"
    lateness: int | None = None
    tick_ms: int = 1000
    window_origin: int = 0
    window_alignment: Alignment = "close"
    streams: tuple[str, ...] = ()
    data: tuple[Path, ...] = ()
    max_rounds: int = MAX_ROUNDS
    shards: int | None = None
    idle: int | None = None
    late: Late | None = None
    idle_seconds: float | None = None
    layout: Layouts = None
    hubs: hub.Hubs = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def clock(self) -> Clock:
        """Ticks, lateness, where windows begin, and shards; late rows of a log are rejected."""
        late: Late | None = None
        lateness = self.lateness or 0
        if isinstance(self.changes, Location):
            late = "reject"
        elif self.lateness is None:
            lateness = lateness_of(self.changes, self.tick_ms)
        return Clock(
            lateness,
            self.tick_ms,
            self.window_origin,
            self.window_alignment,
            self.shards,
            self.idle,
            self.late or late,
            self.idle_seconds,
        )

    @property
    def quarantine_limit(self) -> int | None:
        """How many rejected rows there may be; None: any number."""
        return 0 if self.on_error == "raise" else self.max_quarantined

    @property
    def finds_hubs(self) -> bool:
        """Whether hubs are found in the stream."""
        return hub.finds_hubs(self.hubs)

    def spec(self, program: Program) -> ProgramSpec | None:
        """The events, patterns and rules of a program; None if it has nothing but queries."""
        return program_spec(program, self.partitions, self.tick_ms, self.streams)


def check_options(program: Program, options: RunOptions) -> Fingerprint:
    """Check all that can be checked without Spark, and claim the checkpoint."""
    spec = options.spec(program)
    if spec is not None:
        spec.check()
        check_patterns(program)
    source = source_name(options.changes, options.data)
    options.out.check()
    options.checkpoint.check()
    if options.data and options.start == "latest":
        raise GraphtideError(
            'start="latest" leaves out data, which is read before the changes',
            hint='use start="earliest", or load no data',
        )
    streams = isinstance(options.changes, Location) or options.changes.isStreaming
    if options.idle_seconds is not None and (options.once or not streams):
        raise GraphtideError(
            "idle_seconds is for a run that goes on, and this one ends with its input",
            hint="leave out idle_seconds, or run a stream with once=False (--follow)",
        )
    if options.partitions < 1:
        raise GraphtideError(f"--partitions {options.partitions}: at least one partition is needed")
    trigger_milliseconds(options.trigger)
    texts = program.texts
    if spec is not None:
        texts = {**texts, going_on.PROGRAM_NAME: spec.fingerprint}
    named = hub.named_hubs(options.hubs)
    owner = claim_checkpoint(options.checkpoint, texts, options.partitions, source)
    return claim_hubs(options.checkpoint, owner, named, more=options.finds_hubs)


def check_patterns(program: Program) -> None:
    """Check the names of patterns: their output is beside that of queries."""
    for pattern in program.patterns:
        check_names([parameter.name for parameter in pattern.parameters])
        if pattern.name in program.texts:
            raise GraphtideError(
                f"a query and a pattern are both named {pattern.name}, and so is their output",
                hint="give one of them another name",
            )


def source_name(changes: Location | DataFrame, data: tuple[Path, ...] = ()) -> str:
    """The name of the input in a checkpoint: the paths of data and logs, a DataFrame's kind."""
    if not isinstance(changes, Location):
        if data:
            raise GraphtideError(
                "data is loaded before change logs, and changes is a DataFrame",
                hint="make the data a part of the DataFrame",
            )
        return STREAMING if changes.isStreaming else BOUNDED
    check_log(changes)
    loaded = [f"{path.resolve()}, then " for path in data]
    return f"{''.join(loaded)}{changes.absolute()}"


def trigger_milliseconds(text: str) -> int:
    """The pause between micro-batches.

    >>> trigger_milliseconds("1.5s"), trigger_milliseconds("200ms")
    (1500, 200)
    """
    found = _TRIGGER.fullmatch(text.strip())
    if found is None:
        raise GraphtideError(f'invalid trigger "{text}": write 500ms, 1s or 2m')
    return round(float(found[1]) * _MILLISECONDS[found[2]])


_CHECKPOINT_FILE: Final = "graphtide.json"
_CHECKPOINT_HINT: Final = (
    "resume with the program as it was; or change the checkpoint with graphtide.spark.rescale or "
    "graphtide.spark.evolve; or start again with another --checkpoint and --out"
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a checkpoint depends on, and a name for its run.

    Its `hubs` are None if it was made when they were not noted.
    """

    run: str
    queries: Mapping[str, str]
    partitions: int
    changes: str
    continued: going_on.Continued | None = None
    hubs: hub.HubCounts | None = None

    @staticmethod
    def from_json(found: dict[str, Any]) -> Fingerprint:
        """The fingerprint of a dict."""
        before, hubs = found.get("continued"), found.get("hubs")
        known = {
            "continued": None if before is None else going_on.Continued(**before),
            "hubs": None if hubs is None else hub.hub_counts({t: dict(c) for t, c in hubs}),
        }
        return Fingerprint(**{**found, **known})

    def write(self, checkpoint: Location) -> None:
        """Write the file of a checkpoint: whoever reads it sees the old one or the new one."""
        (checkpoint / _CHECKPOINT_FILE).write_text(json.dumps(asdict(self), indent=1))


def read_fingerprint(checkpoint: Location, *, needed: bool = False) -> Fingerprint | None:
    """The fingerprint of a checkpoint; None if there is none, or (not `needed`) none yet."""
    path = checkpoint / _CHECKPOINT_FILE
    with going_on.explaining_damage(path):
        if path.exists():
            return Fingerprint.from_json(json.loads(path.read_text()))
        strange = not needed and holds_something(checkpoint)
    if strange:
        raise GraphtideError(
            f"{checkpoint} is not empty, and not a checkpoint of graphtide run",
            hint="choose another --checkpoint",
        )
    return None


def claim_checkpoint(
    checkpoint: Location, queries: Mapping[str, str], partitions: int, changes: str
) -> Fingerprint:
    """Make a checkpoint for this program, or reject one that was made by another."""
    wanted = Fingerprint(uuid.uuid4().hex, dict(queries), partitions, changes, hubs=())
    found = read_fingerprint(checkpoint)
    if found is None:
        try:
            checkpoint.make_directory()
            wanted.write(checkpoint)
        except OSError as error:
            raise GraphtideError(f"{checkpoint} cannot be written: {error.strerror}") from None
        log.info("made checkpoint %s, for %d partitions", checkpoint, partitions)
        return wanted
    differences = _differences(found, wanted)
    if differences:
        raise GraphtideError(
            f"{checkpoint} was made by another program: {'; '.join(differences)}",
            hint=_CHECKPOINT_HINT,
        )
    log.info("resumes from checkpoint %s, of run %s", checkpoint, found.run)
    return found


def claim_hubs(
    checkpoint: Location, owner: Fingerprint, named: hub.HubCounts, *, more: bool
) -> Fingerprint:
    """The fingerprint with the hubs of the run; those of a stream that has begun stay.

    With `more`, the checkpoint may have others beside those that are named.
    """
    known, wanted = dict(owner.hubs or ()), dict(named)
    if not wanted or set(wanted) == set(known) or (more and set(wanted) < set(known)):
        return owner
    stream = checkpoint / going_on.folder_of(going_on.BASE_STREAM, owner.continued)
    changed = replace(owner, hubs=named)
    if not going_on.has_begun(stream):
        changed.write(checkpoint)
    elif owner.hubs is not None:
        raise GraphtideError(
            f"{checkpoint} has {_listed(known)} and not {_listed(wanted)}",
            hint="leave them out to go on as before; or stop the run and change its hubs with "
            "graphtide.spark.rescale(spark, CHECKPOINT, hubs=HUBS)",
        )
    return changed


def _listed(hubs: Mapping[str, object]) -> str:
    return f"the hubs {', '.join(hubs)}" if hubs else "no hubs"


def _differences(old: Fingerprint, new: Fingerprint) -> list[str]:
    """What differs, as text.

    >>> old = Fingerprint("a", {"A": "x", "B": "y"}, 2, "in")
    >>> _differences(old, Fingerprint("b", {"B": "z", "C": "x"}, 4, "in"))
    ['query A is missing', 'query B has changed', 'query C is new', 'it has 2 partitions and not 4']
    """
    said = [f"query {name} is missing" for name in old.queries if name not in new.queries]
    said += [
        f"query {name} has changed"
        for name, text in old.queries.items()
        if new.queries.get(name, text) != text
    ]
    said += [f"query {name} is new" for name in new.queries if name not in old.queries]
    if not said and list(old.queries) != list(new.queries):
        said.append("the queries have another order")
    if old.partitions != new.partitions:
        said.append(f"it has {old.partitions} partitions and not {new.partitions}")
    if old.changes != new.changes:
        said.append(f"it reads {old.changes} and not {new.changes}")
    return said
