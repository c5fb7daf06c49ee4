"""The engine `process` of `graphtide run`: a program on a live graph in this process.

Output is printed as it occurs. With --out it goes to the same files as that of a Spark run.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from graphtide.algebra.nodes import SelectQuery
from graphtide.cli.explain import no_functions
from graphtide.cli.inputs import STANDARD_INPUT, ChangeLog, Rejects, load_data, open_graph
from graphtide.cli.options import invalid
from graphtide.cli.output import counted, open_output
from graphtide.cli.serve import page_of, wait_for_interrupt
from graphtide.cli.session import EventOutput, FiringOutput, RowOutput, Session, SessionOutput
from graphtide.cli.watch import INTERRUPTED, print_summary, stoppable
from graphtide.errors import DataError, GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide.program import PROGRAM_SUFFIX, Program
from graphtide.rdf.changes import CHANGE_SCHEMA, ChangeBatch, RejectedRow
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.registry import find_format
from graphtide.spark.driver.sink import Sink
from graphtide.spark.files import Location
from graphtide.spark.output import FIRINGS
from graphtide.spark.source.offsets import LogPosition, Offset
from graphtide.spark.source.plan import LOG_FAMILIES, Budget, Directory, latest, plan
from graphtide.spark.source.read import read_slice
from graphtide.spark.stages.unpack import check_names
from graphtide.spark.state.messages import REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from graphtide.cli.run import RunRequest
    from graphtide.rdf.terms import Term
    from graphtide.rules.program import RunningProgram

ROWS_PER_FILE: Final = 100_000
"""Rows of output after which a batch of files is written."""

POLL_SECONDS: Final = 0.1
ID_LENGTH: Final = 32
STAMPS: Final = ("time", "tx", "diff")


def run_in_process(request: RunRequest) -> int:
    """Run a program to the end of its changes, or until Ctrl-C; the exit code."""
    if request.lateness:
        allowed = "0 in process, where a change log is in order of time"
        raise invalid("--lateness", request.lateness, allowed)
    if request.idle_seconds is not None:
        raise GraphtideError(
            "--idle-seconds is for --engine spark",
            hint="in process, --until advances the clock at the end",
        )
    if request.checkpoint is not None:
        print("--checkpoint is not used: a run in process cannot be resumed", file=sys.stderr)
    rejects = Rejects(request.on_error, limits=request.limits)
    graph = open_graph(request.store, request.limits, request.functions, tick_ms=request.tick_ms)
    with graph:
        if not request.page:
            return _run(graph, request, rejects)
        with page_of(graph):
            code = _run(graph, request, rejects)
            if code == 0 and not request.follow:
                wait_for_interrupt()
            return code


def _run(graph: LiveGraph, request: RunRequest, rejects: Rejects) -> int:
    for name in request.streams:
        graph.stream(name)
    # As on Spark, the program takes in the data like any other transaction.
    known = [each for each in graph.programs if each.program == request.program]
    running = known[0] if known else graph.run(
        request.program, functions=request.functions, disabled=request.disabled
    )  # fmt: skip
    session = Session(
        graph, {}, on_error=request.on_error, tick_ms=request.tick_ms, shown=request.page
    )
    session.add_program(running, new=not known)
    files = None if request.out is None else OutputFiles(request)
    load_data(graph, request.data)
    watch = None if request.watched is None else ProgramWatch(request.watched, running, session)
    code = 0
    try:
        with (
            stoppable(),
            open_output(request.prologues, session, as_json=request.as_json) as output,
        ):
            for found in _outputs(session, request, rejects):
                if files is not None:  # first: Ctrl-C must not lose what was printed
                    files.add(found, rejects.rows)
                output.write(found)
                _check_quarantine(rejects, request)
                if watch is not None:
                    output.write(watch.look())
    except KeyboardInterrupt:
        code = 0 if request.follow else INTERRUPTED
    except GraphtideError:
        if session.transactions:
            print_summary(session, rejects)
        raise
    finally:
        if files is not None:
            files.write(rejects.rows)
    print_summary(session, rejects)
    if request.out is not None:
        print(f"the output is in {Location.of(request.out)}", file=sys.stderr)
    return code


class ProgramWatch:
    """Looks whether the file of a program has changed, or others below its folder, and reads it."""

    def __init__(self, path: Path, running: RunningProgram, session: Session) -> None:
        self._path = path
        self._running = running
        self._session = session
        self._looked, self._seen = time.monotonic(), self._stamps()

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        found = {self._path, *self._path.parent.rglob(f"*{PROGRAM_SUFFIX}")}
        stats = {path: path.stat() for path in found if path.exists()}
        return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in stats.items()}

    def look(self) -> list[SessionOutput]:
        """Replace the program if its text is another now; the first output of the new one."""
        if time.monotonic() - self._looked < POLL_SECONDS:
            return []
        self._looked, before, self._seen = time.monotonic(), self._seen, self._stamps()
        if self._seen == before:
            return []
        try:
            program = Program.read(self._path)
            done = self._running.replace(program, functions=no_functions(program))
        except GraphtideError as error:
            print(f"the program goes on as it was: {error}", file=sys.stderr)
            return []
        print(f"{self._path} was read again: {done}", file=sys.stderr)
        self._session.go_on(self._running, done)
        return self._session.take()


def _check_quarantine(rejects: Rejects, request: RunRequest) -> None:
    limit = 0 if request.on_error == "raise" else request.max_quarantined
    if limit is not None and len(rejects.rows) > limit:
        raise GraphtideError(
            f"{counted(len(rejects.rows), 'input row')} rejected, more than the {limit} allowed: "
            f"{rejects.rows[-1]}",
            hint="fix the input, or allow more with --max-quarantined",
        )


def _outputs(
    session: Session, request: RunRequest, rejects: Rejects
) -> Iterator[list[SessionOutput]]:
    """The output of the program on the data, then on each change."""
    changes = Location.of(request.changes)
    if request.changes != STANDARD_INPUT and (
        changes.is_dir() or find_format(changes.name).family in LOG_FAMILIES
    ):
        yield session.take()
        for batches in _read_log(request, rejects):
            if batches:
                yield from session.apply(batches)
            else:
                yield session.take()
        yield session.end(request.until)
        return
    if changes.local is None:
        raise DataError(
            "is no change log, and remote",
            source=str(changes),
            hint="use RDF Patch, N-Quads, N-Triples or Parquet, or copy the file to a path",
        )
    log = ChangeLog(changes.local, request.follow, rejects, until=request.until)
    log.check()
    yield from session.follow(log)


def _read_log(request: RunRequest, rejects: Rejects) -> Iterator[list[ChangeBatch]]:
    """Whole transactions of a change log or a directory of them, as a Spark run reads them."""
    log = Directory.of(request.changes)
    position = LogPosition(tx=len(request.data) - 1)
    offset = Offset(position)
    if request.start == "latest":
        offset = latest(log, offset)
    if not request.follow:
        log.freeze()
    budget = Budget(request.spark.rows_per_batch, files=1)
    while True:
        slices, offset = plan(log, offset, budget, ended=not request.follow)
        for each in slices:
            read = read_slice(each, request.limits)
            yield [batch for rows in read for batch in _batches(rows, rejects)]
        if not slices:
            if not request.follow:
                return
            yield []
            time.sleep(POLL_SECONDS)


def _batches(rows: pa.RecordBatch, rejects: Rejects) -> Iterator[ChangeBatch]:
    """The changes of rows of the log; rejected ones go to the rejects."""
    table: Any = pa.table(rows)
    reasons = table["reason"]
    for row in table.filter(reasons.is_valid()).to_pylist():
        line = RejectedRow(
            row["file"], row["line"] or 0, row["column"] or 0, row["text"] or "", row["reason"]
        )
        if rejects.on_error == "raise":
            raise DataError(
                line.reason, source=line.file, line=line.line or None, column=line.column or None
            )
        rejects.rows.append(line)
    changes = table.filter(reasons.is_null())
    changes = changes.filter(pc.field("diff") != 0)  # 0 ends a transaction
    if len(changes):
        yield from read_changes(changes.select(CHANGE_SCHEMA.names))


# --- files ---


class OutputFiles:
    """A directory of output, with the files that `graphtide.spark.output` describes."""

    def __init__(self, request: RunRequest) -> None:
        program = request.program
        assert request.out is not None  # noqa: S101 - seen by the caller
        self._columns = {query.name: _variables(query.text) for query in program.queries}
        for pattern in program.patterns:
            self._columns[pattern.name] = [parameter.name for parameter in pattern.parameters]
        for names in self._columns.values():
            check_names(names)
        self._sink = Sink(
            request.out,
            uuid.uuid4().hex,
            self._columns,
            request.output_format,
            fires=bool(program.rules),
        )
        self._waiting: list[SessionOutput] = []
        self._rejected = 0
        self._batch = 0
        self._same: Counter[tuple[object, ...]] = Counter()

    def add(self, found: Sequence[SessionOutput], rejected: Sequence[RejectedRow]) -> None:
        """Take more output; write it when there is much of it, or when nothing more came."""
        self._waiting += found
        if len(self._waiting) >= ROWS_PER_FILE or not found:
            self.write(rejected)

    def write(self, rejected: Sequence[RejectedRow]) -> None:
        """Write what there is as a batch of files."""
        lines, self._rejected = rejected[self._rejected :], len(rejected)
        if not self._waiting and not lines:
            return
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self._columns}
        fired: list[dict[str, Any]] = []
        for found in self._waiting:
            match found:
                case RowOutput(query, row):
                    rows[query].append(_row((row.time, row.tx, row.diff), row.row))
                case EventOutput(pattern, _, time_, values):
                    rows[pattern].append(_row((time_, None, 1), values))
                case FiringOutput():
                    fired.append(self._firing(found))
                case _:
                    pass
        aside = [
            {"file": x.file, "line": x.line or None, "column": x.column or None}
            | {"text": x.text, "reason": x.reason}
            for x in lines
        ]
        tables = {name: _table(rows[name], columns) for name, columns in self._columns.items()}
        self._sink.write(
            self._batch,
            tables,
            pa.Table.from_pylist(aside, schema=REJECTED),
            pa.Table.from_pylist(fired, schema=FIRINGS),
        )
        self._batch += 1
        self._waiting.clear()

    def _firing(self, found: FiringOutput) -> dict[str, Any]:
        """A row of `FIRINGS`; equal runs give equal ids."""
        values = {name: str(term) for name, term in found.values.items()}
        key = found.rule, found.time, *values.values()
        made = "\0".join(map(str, (*key, self._same[key])))
        self._same[key] += 1
        return {
            "time": found.time,
            "tx": None,
            "rule": found.rule,
            "id": sha256(made.encode()).hexdigest()[:ID_LENGTH],
            "values": list(values.items()),
            "events": list(found.events.items()),
        }


def _variables(text: str) -> list[str]:
    parsed = parse_standing(text)
    select = parsed if isinstance(parsed, SelectQuery) else parsed.select
    return [variable.name for variable in select.variables]


def _table(rows: list[dict[str, Any]], names: list[str]) -> pa.Table:
    """Rows with a column per name, sorted by time, transaction and row."""
    kinds: dict[str, pa.DataType] = dict.fromkeys(STAMPS, pa.int64())
    kinds |= dict.fromkeys(names, pa.string())
    table = pa.Table.from_pylist(rows, schema=pa.schema(kinds))
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _row(stamps: tuple[int | None, ...], values: Mapping[str, Term | None]) -> dict[str, Any]:
    texts = {name: None if term is None else str(term) for name, term in values.items()}
    return {**dict(zip(STAMPS, stamps, strict=True)), **texts}
