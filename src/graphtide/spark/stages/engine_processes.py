"""Engine processes: where an executor has several Python workers, engines live outside of them.

Spark gives a partition to any worker of an executor. If engines lived in workers, every second one
of two workers would have to catch up from the log, which is the work of the other one again. So the
process that forks workers first forks a *keeper*, and that one an engine process for each core. The
partitions of all stages are divided among these. A worker passes on what a partition gets, and what
comes back; meanwhile it answers the calls of the log, because only the worker of a task reaches
Spark's state store.

The log stays the truth (`state.cache`): an engine process that is killed loses engines, and nothing
else. The keeper forks another one. Where none listens, a worker has the engines itself.
"""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphtide.spark.metrics import counted_in
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionState
from graphtide.spark.topology import StageSpec, run_partition, stages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.log import Head, Log, LogEntry
    from graphtide.spark.state.messages import StageRow

ENVIRONMENT: Final = "GRAPHTIDE_ENGINE_PROCESSES"
"""How many engine processes an executor has; with less than two, its workers have the engines."""

PAUSE: Final = 0.1
"""Seconds before an engine process is forked again that has died."""


class Work(NamedTuple):
    """One partition's part of a micro-batch; `small_log` as in `PartitionState`."""

    key: EngineKey
    rows: Sequence[StageRow]
    now: int | None
    small_log: int


class Asked(NamedTuple):
    """A call of the log, or for the job, that the worker is to answer."""

    method: str
    arguments: tuple[Any, ...] = ()


class Done(NamedTuple):
    """What a partition sends, how the engine was found (`metrics.COUNTED`), bytes of its state."""

    rows: list[StageRow]
    counts: dict[str, int]
    size: int


class Failed(NamedTuple):
    """An error, and where it was raised."""

    error: Exception
    trace: str


class RemoteError(Exception):
    """The traceback of an error that was raised in an engine process."""


# --- in the worker ---


class EngineProcesses(NamedTuple):
    """The engine processes that a worker can ask; they live as long as `held` is open anywhere."""

    folder: Path
    number: int
    held: int

    def reach(self, partition: int) -> Connection | None:
        """A connection to the process of a partition; None if none listens."""
        end = socket.socket(socket.AF_UNIX)
        try:
            end.connect(str(self.folder / str(partition % self.number)))
        except OSError:
            end.close()
            return None
        return Connection(end.detach())


_processes: EngineProcesses | None = None


def reached(partition: int) -> Connection | None:
    """A connection to the engine process of a partition, if this worker's executor has any."""
    return None if _processes is None else _processes.reach(partition)


def ask(connection: Connection, work: Work, log: Log, job: JobSpec) -> Done:
    """Let an engine process do some work, and answer what it asks meanwhile."""
    answers: dict[str, Callable[..., object]] = {
        "head": log.head,
        "put_head": log.put_head,
        "chunk": log.chunk,
        "put_chunk": log.put_chunk,
        "drop_chunk": log.drop_chunk,
        "clear": log.clear,
        "job": lambda: job,
    }
    with connection:
        connection.send(work)
        while True:
            match connection.recv():
                case Asked(method, arguments):
                    connection.send(answers[method](*arguments))
                case Failed(error, trace):
                    raise error from RemoteError(trace)
                case done:
                    assert isinstance(done, Done)  # noqa: S101 - nothing else is sent
                    return done


# --- in an engine process ---


class RemoteLog:
    """A log that the worker at the other end of a connection has."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - as the method returns
        """Call a method at the other end."""
        self._connection.send(Asked(method, arguments))
        return self._connection.recv()

    def head(self) -> Head | None:
        """The head, or None before the first batch."""
        found: Head | None = self.ask("head")
        return found

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self.ask("put_head", head)

    def chunk(self, version: int) -> LogEntry | None:
        """A chunk outside the head, if there is one."""
        found: LogEntry | None = self.ask("chunk", version)
        return found

    def put_chunk(self, entry: LogEntry) -> None:
        """Add a chunk outside the head."""
        self.ask("put_chunk", entry)

    def drop_chunk(self, version: int) -> None:
        """Drop a chunk outside the head."""
        self.ask("drop_chunk", version)

    def clear(self) -> None:
        """Drop all chunks outside the head."""
        self.ask("clear")


class EngineHost:
    """The engines of some partitions, and the stages that they are of."""

    def __init__(self) -> None:
        self.cache = EngineCache()
        self._stages: dict[tuple[str, str], tuple[StageSpec, int]] = {}

    def serve(self, connection: Connection) -> None:
        """Do the work of one connection; an error is told to the worker, if it still lives."""
        work: Work = connection.recv()
        try:
            answer: Done | Failed = self._work(work, RemoteLog(connection))
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker raises it
            answer = Failed(_portable(error), traceback.format_exc())
        connection.send(answer)
        self.cache.freeze()

    def _work(self, work: Work, log: RemoteLog) -> Done:
        stage, partitions = self._stage(work.key, log)
        before = counted_in(self.cache)
        state = PartitionState(log, self.cache, work.key, work.small_log)
        rows = run_partition(stage, state, work.rows, partitions, now=work.now)
        counted = counted_in(self.cache)
        cached = self.cache.engines.get(work.key)
        return Done(
            rows,
            {name: counted[name] - before[name] for name in counted},
            0 if cached is None else cached.size,
        )

    def _stage(self, key: EngineKey, log: RemoteLog) -> tuple[StageSpec, int]:
        """The stage of an engine, without what tasks do themselves; and how many partitions."""
        known = {(each.operator, each.stage) for each in self.cache.engines}
        self._stages = {name: stage for name, stage in self._stages.items() if name in known}
        name = key.operator, key.stage
        if name not in self._stages:
            job: JobSpec = log.ask("job")
            stage = next(each for each in stages_of(job) if each.name == key.stage)
            self._stages[name] = replace(stage, emit=None), job.partitions
        return self._stages[name]


def _portable(error: Exception) -> Exception:
    """An error as it can be sent."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - errors can have anything in them
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


# --- in the processes that fork ---


def start_engine_processes() -> None:
    """Fork as many engine processes as the environment says; workers forked later know them.

    Where there is no room for sockets or processes, workers have the engines.
    """
    global _processes  # noqa: PLW0603 - forked processes inherit it
    count = int(os.environ.get(ENVIRONMENT) or 0)
    if count > 1:
        with suppress(OSError):
            _processes = fork_engine_processes(count)


def fork_engine_processes(count: int) -> EngineProcesses:
    """Fork a keeper and its engine processes, from a process that has no threads.

    They end when this process and all that it forks later have ended, because then nobody holds the
    other end of a pipe any more.
    """
    folder = Path(mkdtemp(prefix="graphtide-engines-"))
    listeners = [_listener(folder / str(number)) for number in range(count)]
    life, held = os.pipe()
    if os.fork() == 0:
        try:
            os.close(held)
            _keep(listeners, life, folder)
        except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
            traceback.print_exc()
        os._exit(0)
    os.close(life)
    for listener in listeners:
        listener.close()
    return EngineProcesses(folder, count, held)


def _listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def _keep(listeners: list[socket.socket], life: int, folder: Path) -> None:
    """Fork an engine process for each listener, again if it dies, until all have ended."""
    os.setpgid(0, 0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # Spark reads what its own child prints
    numbers = {_forked(listeners, number, life): number for number in range(len(listeners))}
    while numbers:
        ended, status = os.wait()
        number = numbers.pop(ended)
        if status:
            time.sleep(PAUSE)
            numbers[_forked(listeners, number, life)] = number
    shutil.rmtree(folder, ignore_errors=True)


def _forked(listeners: list[socket.socket], number: int, life: int) -> int:
    """The id of a new engine process."""
    if child := os.fork():
        return child
    try:
        for other in listeners[:number] + listeners[number + 1 :]:
            other.close()
        _listen(listeners[number], life)
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _listen(listener: socket.socket, life: int) -> None:
    """Serve one connection after the other, until nobody is left who could ask."""
    host = EngineHost()
    while life not in wait([listener, life]):
        accepted, _ = listener.accept()
        # The worker may be killed while it waits for an answer, or answers.
        with Connection(accepted.detach()) as connection, suppress(EOFError, OSError):
            host.serve(connection)
