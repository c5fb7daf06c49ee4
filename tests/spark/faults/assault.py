"""Kill parts of a running job with SIGKILL, at moments that a seed decides.

The input of a paced job is held back: a file becomes visible when a micro-batch before it was seen
to be committed. So there is always something left to interrupt, however slow the machine is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spark.faults import stacks

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

JOB = Path(__file__).with_name("stream_job.py")

FORKED = "-m graphtide.spark.stages.worker"
"""In the command of the process that forks workers, and of workers."""

JAVA = "org.apache.spark"
"""In the command of a driver's Java half and of executors."""

PATIENCE = 300.0
"""Seconds after which a job that makes no progress is given up."""

TOTAL: Counter = Counter()
"""All kills of this process, by kind."""

MAIN = ("-m", "graphtide.cli.main")
"""How Python starts the command line."""


@dataclass
class Assault:
    """A job, started again each time its driver is killed."""

    folder: Path
    job: dict
    random: Random
    kills: Counter = field(default_factory=Counter)
    lives: int = 0
    process: subprocess.Popen | None = None
    held: deque[Path] = field(default_factory=deque)

    def pace(self) -> None:
        """Hold the input back, to be released file by file."""
        self.job["paced"] = True
        aside = self.folder / "held"
        aside.mkdir()
        for path in sorted(Path(self.job["input"]).iterdir()):
            self.held.append(path.rename(aside / path.name))

    def release(self, count: int) -> None:
        """Make some more files of the input visible; their times keep their order."""
        assert self.held or not self.job.get("paced"), "the input is used up: the test needs more"
        for _ in range(min(count, len(self.held))):
            path = self.held.popleft()
            path.rename(Path(self.job["input"], path.name))

    def start(self, files_per_trigger: list[int]) -> None:
        """Begin a life of the driver, with micro-batches of other sizes."""
        self.lives += 1
        path = self.folder / f"job-{self.lives}.json"
        settings = {"spark.local.dir": str(self.folder / "scratch")}
        job = {"files_per_trigger": files_per_trigger, "settings": settings, **self.job}
        path.write_text(json.dumps(job), encoding="utf-8")
        self.launch([sys.executable, str(JOB), str(path)])

    def launch(self, command: list[str]) -> None:
        """Start a process in a session of its own, so that its whole family can be found."""
        with (self.folder / f"log-{self.lives}.txt").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )

    def kill(self, kind: str) -> None:
        """Let some micro-batches pass, then kill at a random moment of one.

        If that one is over before a worker was seen, and its workers have ended, those of the next
        one wait to be seen. So a kill uses up five files at most, on however busy a machine.
        """
        self.await_batches(self.random.randint(1, 2))
        seen = self.last_batch()
        self.release(1)
        time.sleep(self.random.uniform(0, 0.4))
        deadline = time.monotonic() + PATIENCE
        holds = False
        while not self.strike(kind):
            if self.job.get("paced") and not holds and self.last_batch() > seen:
                holds = True
                Path(self.job["notes"], "hold").touch()
                self.release(1)
            self.check(deadline, f"there is no {kind} to kill")
            time.sleep(0.02)
        if holds:
            Path(self.job["notes"], "hold").unlink()
        self.count(kind)
        if kind in {"driver", "command"}:
            self.clear()

    def count(self, kind: str) -> None:
        """Count a kill."""
        self.kills[kind] += 1
        TOTAL[kind] += 1

    def campaign(self, kills: int, sizes: Callable[[], object]) -> None:
        """So many kills, of kinds that the seed decides, and all lives up to the end.

        Most are of workers: those of a driver take the longest, so there is one in eight.
        """
        self.start(sizes())
        for number in range(kills):
            kind = "driver" if number % 8 == 5 else self.random.choice(["worker"] * 6 + ["daemon"])
            self.kill(kind)
            if kind == "driver":
                self.start(sizes())
        self.finish()
        assert self.kills.total() == kills

    def strike(self, kind: str) -> bool:
        """Kill a process of a kind; whether there was one."""
        victims = self.victims(kind)
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            if victims:
                os.kill(self.random.choice(victims), signal.SIGKILL)
                return True
        return False

    def finish(self) -> None:
        """Wait until the job has used up its input."""
        if self.held:
            self.release(len(self.held))
        if self.job.get("paced"):
            Path(self.job["notes"], "finish").touch()
        deadline = time.monotonic() + 2 * PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"no end\n{self.log()}\n{self.stacks()}"
            time.sleep(0.02)
        assert self.process.returncode == 0, self.log()
        self.clear()

    def victims(self, kind: str) -> list[int]:
        """The processes of a kind in this life.

        `driver` is its Java half, `command` its Python. `daemon` forks the workers; if it is
        killed, they go on without a parent. Engine processes and their keeper count as workers.
        """
        found = []
        for pid, parent, command in self.family():
            match kind:
                case "worker" if FORKED in command and JAVA not in self.command(parent):
                    found.append(pid)
                case "daemon" if FORKED in command and JAVA in self.command(parent):
                    found.append(pid)
                case "executor" if "CoarseGrainedExecutorBackend" in command:
                    found.append(pid)
                case "driver" if "SparkSubmit" in command:
                    found.append(pid)
                case "command" if pid == self.process.pid:
                    found.append(pid)
        return sorted(found)

    def family(self) -> list[tuple[int, int, str]]:
        """Every process of this life's session: its id, its parent, its command."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    parts = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    if int(parts[3]) == self.process.pid and parts[0] != "Z":
                        pid = int(entry.name)
                        found.append((pid, int(parts[1]), self.command(pid)))
        return found

    @staticmethod
    def command(pid: int) -> str:
        """The command line of a process, or nothing if it is gone."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return ""

    def clear(self) -> None:
        """End what is left of this life, as the loss of a machine would."""
        for pid, _, _ in self.family():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def await_batches(self, count: int) -> None:
        """Wait until the checkpoint has committed so many batches more."""
        for _ in range(count):
            wanted = self.last_batch() + 1
            self.release(1)
            deadline = time.monotonic() + PATIENCE
            while self.last_batch() < wanted:
                self.check(deadline, "no progress")
                time.sleep(0.02)

    def last_batch(self) -> int:
        """The last batch that was committed."""
        commits = Path(self.job["checkpoint"], "commits").glob("[0-9]*")
        return max((int(path.name) for path in commits if path.name.isdigit()), default=-1)

    def check(self, deadline: float, problem: str) -> None:
        """Fail if the job has ended or takes too long; then also with what its threads do.

        On a busy machine a query may have to be started again, up to three times: a job that has
        just said so gets twice the time.
        """
        assert self.process.poll() is None, f"{problem}: the job has ended\n{self.log()}"
        late = time.monotonic() - deadline
        if late >= PATIENCE or (late >= 0 and not self.spoke()):
            said = self.log()
            raise AssertionError(f"{problem} for {PATIENCE} s\n{said}\n{self.stacks()}")

    def spoke(self) -> bool:
        """Whether the job has said something lately."""
        path = self.folder / f"log-{self.lives}.txt"
        return time.time() - path.stat().st_mtime < PATIENCE

    def stacks(self) -> str:
        """What the threads of Java and of Python do now, as both print it when they are asked."""
        return stacks.of_processes(
            [(pid, command) for pid, _, command in self.family()],
            self.folder / f"log-{self.lives}.txt",
        )

    def log(self) -> str:
        """How far the job is, and the end of what it has said in this life."""
        offsets = [path.name for path in Path(self.job["checkpoint"], "offsets").glob("[0-9]*")]
        far = f"committed batch {self.last_batch()}, planned {sorted(map(int, offsets))[-1:]}"
        seen = f"{len(self.held)} files are held; {self.family()}"
        return (
            f"{far}; {seen}\n"
            + (self.folder / f"log-{self.lives}.txt").read_text(encoding="utf-8")[-5000:]
        )

    def found(self) -> Counter:
        """How often engines were found to be right, behind, ahead, missing, of another attempt."""
        return Counter(note["found"] for note in self.noted())

    def noted(self) -> list[dict]:
        """What the tasks wrote down; of a line that a kill has cut off, nothing."""
        notes = Path(self.job["notes"]).glob("*.jsonl")
        lines = [line for path in notes for line in path.read_text(encoding="utf-8").splitlines()]
        return [json.loads(line) for line in lines if line.endswith("}")]


class RunAssault(Assault):
    """`graphtide run`, started again with the same command but for the size of micro-batches."""

    def start(self, rows_per_batch: int) -> None:
        """Begin a life of the command."""
        self.lives += 1
        paths = {"--changes": "input", "--out": "out", "--checkpoint": "checkpoint"}
        options = {name: str(self.folder / folder) for name, folder in paths.items()}
        options |= self.job.get("options", {})
        tokens = [token for option in options.items() for token in option]
        for setting in ("master=local[2,4]", f"rows-per-batch={rows_per_batch}"):
            tokens += ["--spark", setting]
        program = str(self.folder / "rail.tide")
        self.launch([sys.executable, *self.job.get("code", MAIN), "run", program, *tokens])
