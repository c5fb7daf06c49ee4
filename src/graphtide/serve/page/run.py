"""What the page shows of a run on Spark: micro-batches, partitions, state, quarantine, deltas.

The driver says how each micro-batch went (`RunData.take`). Deltas, firings and rejected rows are
read from what the run has committed, so the run does nothing for the page, and a run that is
resumed shows its last deltas at once. Large files are counted and not read.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from functools import cache
from itertools import pairwise
from logging import getLogger
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError
from graphtide.patterns import explain
from graphtide.patterns.compile import compile_pattern
from graphtide.rdf.formats.results import json_row
from graphtide.rdf.terms import parse_term
from graphtide.serve.page.data import NotFoundError
from graphtide.spark import explain as explain_division
from graphtide.spark import output as outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from graphtide.lang.tide.program import Program
    from graphtide.spark.driver.options import RunOptions
    from graphtide.spark.driver.run import SparkJob
    from graphtide.spark.driver.status import BatchStatus

log = getLogger(__name__)

SHOWN_BATCHES: Final = 60
"""The last micro-batches, in a sparkline and in a list."""

SHOWN: Final = 50
"""The last deltas of a query, matches of a pattern, firings of a rule, rejected rows."""

SHOWN_ROWS: Final = 50
"""Rows of a delta."""

READ_BYTES: Final = 4_000_000
"""A larger file is counted and not read."""


class RunData:
    """Answers what the page asks of a run."""

    def __init__(self, program: Program, options: RunOptions) -> None:
        self._program = program
        self._options = options
        self._lock = Lock()
        self._status: BatchStatus | None = None
        self._progress = outputs.Progress()
        self._batches: deque[dict[str, Any]] = deque(maxlen=SHOWN_BATCHES)
        self._stages: list[dict[str, Any]] = []
        self._read, self._rows, self._seq = -1, 0, 0
        self._ended: str | None = None
        self._last: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=SHOWN))
        self._fired: Counter[str] = Counter()
        self._schema: Callable[[str], pa.Schema] = cache(
            lambda name: outputs.schema_of(options.out, name)
        )

    # --- what the driver says ---

    def following(self, job: SparkJob, until: Callable[[], bool]) -> Iterator[BatchStatus]:
        """As `SparkJob.statuses`; each is taken in. What cannot be read does not end the run."""
        for status in job.statuses(until):
            try:
                self.take(job, status)
            except (OSError, ValueError, GraphtideError) as error:
                log.warning("the page does not show micro-batch %d: %s", status.batch, error)
            yield status

    def take(self, job: SparkJob, status: BatchStatus) -> None:
        """Take in a micro-batch, and what was written since the last one."""
        progress, loads = job.sink.progress, job.loads()
        first = max(self._read + 1, progress.batch + 1 - SHOWN_BATCHES)
        found = [
            outputs.read_manifest(self._options.out, b) for b in range(first, status.batch + 1)
        ]
        files = [[] if manifest is None else list(manifest.files) for manifest in found]
        with self._lock:
            self._read, self._status, self._progress = status.batch, status, progress
            self._rows += status.rows
            for batch, written in enumerate(files, first):
                self._take_files(batch, written)
            if self._batches:
                self._batches[-1] |= {
                    "rows": status.rows,
                    "ms": status.batch_ms,
                    "rows_per_s": round(status.rows_per_s),
                    "state_bytes": status.state_bytes,
                }
            stages: dict[str, list[dict[str, Any]]] = {}
            for (stage, number), each in loads.items():
                stages.setdefault(stage, []).append(
                    {
                        "partition": number,
                        "received_bytes": each.received,
                        "seconds": round(each.seconds, 4),
                        "state_bytes": each.state,
                    }
                )
            self._stages = [{"stage": name, "partitions": each} for name, each in stages.items()]

    def end(self, said: str) -> None:
        """The run has ended."""
        with self._lock:
            self._ended = said

    def _take_files(self, batch: int, files: Sequence[outputs.OutputFile]) -> None:
        """Take in the output of a micro-batch."""
        by_name: dict[str, list[outputs.OutputFile]] = {}
        for each in files:
            by_name.setdefault(each.name, []).append(each)
        moved = {
            name: (sum(f.appeared for f in some), sum(f.disappeared for f in some))
            for name, some in by_name.items()
        }
        self._batches.append(
            {
                "batch": batch,
                "added": sum(added for added, _ in moved.values()),
                "removed": sum(removed for _, removed in moved.values()),
                "rejected": sum(f.rows for f in by_name.get(outputs.QUARANTINE_NAME, ())),
                "moved": moved,
            }
        )
        for name, some in by_name.items():
            if name == outputs.QUARANTINE_NAME:
                self._last[name] += ({"batch": batch, **row} for row in self._rows_of(name, some))
            elif name == outputs.FIRINGS_NAME:
                self._take_firings(self._rows_of(name, some))
            else:
                self._take_deltas(name, some)

    def _rows_of(self, name: str, files: Iterable[outputs.OutputFile]) -> Iterator[dict[str, Any]]:
        for table in self._tables(name, files):
            yield from table.to_pylist()

    def _tables(self, name: str, files: Iterable[outputs.OutputFile]) -> list[pa.Table]:
        out, schema = self._options.out, self._schema(name)
        return [outputs.read_table(out / f.file, schema) for f in files if f.bytes <= READ_BYTES]

    def _take_firings(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            self._fired[row["rule"]] += 1
            self._last[f"rule {row['rule']}"].append(
                {
                    "number": self._fired[row["rule"]],
                    "time": row["time"],
                    "row": json_row({name: parse_term(text) for name, text in row["values"]}),
                    "events": {event: [time, time] for event, time in row["events"]},
                    "why": None,
                }
            )

    def _take_deltas(self, name: str, files: Sequence[outputs.OutputFile]) -> None:
        """The rows of each transaction; those of files that are not read are counted together."""
        table = pa.concat_tables([self._schema(name).empty_table(), *self._tables(name, files)])
        table = table.sort_by([("time", "ascending"), ("tx", "ascending")])
        large = [f for f in files if f.bytes > READ_BYTES]
        if large:
            time, tx = max(f.last or (0, 0) for f in large)
            added, removed = sum(f.appeared for f in large), sum(f.disappeared for f in large)
            self._add_delta(name, time, tx, added, removed, [])
        stamps = [np.asarray(table[key].fill_null(pa.scalar(-1))) for key in ("time", "tx")]
        diffs = np.asarray(table["diff"])
        changed = [np.diff(stamp, prepend=-2) != 0 for stamp in stamps]
        starts = np.flatnonzero(changed[0] | changed[1])[-SHOWN:]
        for start, end in pairwise([*starts, len(table)]):
            part = diffs[start:end]
            time, tx = (int(stamp[start]) for stamp in stamps)
            rows = [
                _row(row) for row in table.slice(start, min(end - start, SHOWN_ROWS)).to_pylist()
            ]
            added, removed = int(part[part > 0].sum()), int(-part[part < 0].sum())
            self._add_delta(name, time, None if tx < 0 else tx, added, removed, rows)

    def _add_delta(
        self, name: str, time: int, tx: int | None, added: int, removed: int, rows: list[Any]
    ) -> None:
        self._seq += 1
        self._last[name].append(
            {
                "seq": self._seq,
                "tx": tx,
                "time": time,
                "added": added,
                "removed": removed,
                "rows": rows,
            }
        )

    # --- what the page asks ---

    def answer(
        self,
        method: str,
        path: Sequence[str],
        params: Mapping[str, str] | None = None,  # noqa: ARG002 - as of a graph
        body: Mapping[str, Any] | None = None,  # noqa: ARG002 - as of a graph
    ) -> Any:  # noqa: ANN401 - JSON
        """The answer to a request: its path is what follows `/api/`, part by part."""
        with self._lock:
            match (method, *path):
                case "GET", "overview":
                    return self._overview()
                case "GET", "run":
                    return self._run()
                case "GET", "queries", name if name in self._program.texts:
                    return self._query(name)
                case "GET", "queries", name, "plan" if name in self._program.texts:
                    return self._plan(name)
                case "GET", "patterns", name if name in self._names("patterns"):
                    return self._pattern(name)
                case "GET", "rules", name if name in self._names("rules"):
                    return self._rule(name)
                case _:
                    raise NotFoundError(
                        f"there is no {method} /api/{'/'.join(path)}",
                        hint="a run on Spark shows its output; it cannot be asked",
                    )

    def _names(self, kind: str) -> list[str]:
        return [each.name for each in getattr(self._program, kind)]

    def _overview(self) -> dict[str, Any]:
        program, status = self._program, self._status
        return {
            "clock": self._progress.time or 0,
            "queries": [
                *(self._summary(name, "query") for name in program.texts),
                *(self._summary(pattern.name, "pattern") for pattern in program.patterns),
                *(self._rule_summary(rule.name) for rule in program.rules),
            ],
            "repairs": False,
            "history": None,
            "run": {
                "batch": None if status is None else status.batch,
                "rows": self._rows,
                "rows_per_s": 0 if status is None else round(status.rows_per_s),
                "state_bytes": 0 if status is None else status.state_bytes,
                "rejected": self._progress.quarantined,
                "ended": self._ended,
            },
        }

    def _summary(self, name: str, kind: str) -> dict[str, Any]:
        totals = self._progress.queries.get(name) or outputs.QueryTotals()
        moved = [batch["moved"].get(name, (0, 0)) for batch in self._batches]
        last = self._last[name][-1] if self._last[name] else None
        return {
            "name": name,
            "kind": kind,
            "rows": totals.answer,
            "added": [added for added, _ in moved],
            "removed": [removed for _, removed in moved],
            "last": last and {**last, "rows": last["rows"][:3]},
            "own": False,
        }

    def _rule_summary(self, name: str) -> dict[str, Any]:
        fired = self._last[f"rule {name}"]
        last = {"time": fired[-1]["time"], "row": fired[-1]["row"]} if fired else None
        return {"name": name, "kind": "rule", "rows": self._fired[name], "last": last}

    def _run(self) -> dict[str, Any]:
        """The last micro-batches, the partitions of each stage, what is left, what was rejected."""
        status = self._status
        return {
            "batches": [
                {key: value for key, value in batch.items() if key != "moved"}
                for batch in reversed(self._batches)
            ],
            "stages": self._stages,
            "partitions": self._options.partitions,
            "state_rows": 0 if status is None else status.state_rows,
            "state_bytes": 0 if status is None else status.state_bytes,
            "lag_files": None if status is None else status.lag_files,
            "lag_bytes": None if status is None else status.lag_bytes,
            "file": "" if status is None else status.file,
            "line": 0 if status is None else status.line,
            "quarantined": self._progress.quarantined,
            "rejected": list(reversed(self._last[outputs.QUARANTINE_NAME])),
            "ended": self._ended,
        }

    def _query(self, name: str) -> dict[str, Any]:
        return {
            **self._summary(name, "query"),
            "text": self._program.texts[name],
            "columns": None,  # the answer is in the partitions; deltas are what comes out
            "deltas": list(reversed(self._last[name])),
        }

    def _plan(self, name: str) -> dict[str, Any]:
        """How a query is divided among partitions, in words."""
        given = self._options
        text = explain_division(
            {name: self._program.texts[name]},
            given.partitions,
            tick_ms=given.tick_ms,
            layout=given.layout,
        )
        return {"direction": "up", "nodes": [], "edges": [], "text": text}

    def _pattern(self, name: str) -> dict[str, Any]:
        """A pattern: its automaton and its last matches; its tokens are in the partitions."""
        declared = next(each for each in self._program.patterns if each.name == name)
        types = {event.name: at for at, event in enumerate(self._program.events)}
        automaton = compile_pattern(declared, types, lambda _: 1, self._options.tick_ms)
        matches = [
            {"start": delta["time"], "time": delta["time"], "row": moved["row"]}
            for delta in reversed(self._last[name])
            for moved in delta["rows"]
        ]
        return {
            "name": name,
            **explain.drawing(automaton).json(),
            "facts": explain.facts(automaton),
            "clock": self._progress.time or 0,
            "tokens": None,
            "matched": self._summary(name, "pattern")["rows"],
            "matches": matches[:SHOWN],
        }

    def _rule(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "clock": self._progress.time or 0,
            "fired": self._fired[name],
            "firings": list(reversed(self._last[f"rule {name}"])),
        }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a delta, as the page has it."""
    diff = row.pop("diff")
    del row["time"], row["tx"]
    return {"diff": diff, "row": json_row({k: v and parse_term(v) for k, v in row.items()})}
