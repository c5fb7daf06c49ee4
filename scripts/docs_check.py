"""Run every command that README.md, CONTRIBUTING.md and docs/*.md print, each to its end.

    python scripts/docs_check.py                     # all, in a folder of their own
    python scripts/docs_check.py --list              # what would be run, and what not and why
    python scripts/docs_check.py --only docs/why     # those whose page or text has this in it
    python scripts/docs_check.py --skip 'bench|run'  # not those (a regular expression, as above)

One line per command, with its time and result; the exit code is 1 if one fails. `PLANS` says for
each which options make it small, and which exit codes are right. A command without an end is
interrupted after a while, as a user would do it; `curl` has a server. What needs a network or
another machine is not run: the options of `graphtide` are parsed then, and `make` prints what it
would do.

The store and the checkpoint that commands of several pages use (`MADE_BY`) are made before the
first of them, so that each page can be checked alone.

`make test` runs the blocks of Python, and the `console` blocks of docs/serve.md on a server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator  # noqa: TC003 - for readers of this script
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from cyclopts import CycloptsError

from graphtide.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"(?:\w+=\S+ )*(?:time )?(?:\.venv/bin/)?(?:graphtide|python|make|pip|curl|spark-submit) "
)
LANGUAGES = ("", "bash", "sh", "console")
TESTED = {"docs/serve.md": "console"}
"""Blocks that tests run: page -> language."""

TIMEOUT_S = 1800
STOP_AFTER_S = 15.0
INTERRUPTED = 130
TIMED_OUT = 28
"""Of curl: an endless answer was read for a while."""


# ---- the commands of a page ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A command, and where it is printed."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} {self.text}"


def commands_in(text: str, page: str) -> Iterator[Shown]:
    """The commands of a page: lines of its blocks that begin with a program's name.

    What follows a command after `#`, or after two spaces, explains it.
    """
    for block in BLOCK.finditer(text):
        if block[1] not in LANGUAGES or TESTED.get(page) == block[1]:
            continue
        first = text.count("\n", 0, block.start(2)) + 1
        yield from _in_block(block[2].replace("\\\n", "\\"), first, page)


def _in_block(block: str, first: int, page: str) -> Iterator[Shown]:
    number = first
    for line in block.splitlines():
        plain = re.sub(r"\\\s*", "", line.removeprefix("$ "))
        if COMMAND.match(plain):
            yield Shown(page, number, without_comment(plain))
        number += 1 + line.count("\\")


def without_comment(line: str) -> str:
    """A command alone; quoted text may have anything in it.

    >>> without_comment("graphtide query a.rq --format json   # one answer")
    'graphtide query a.rq --format json'
    >>> without_comment("make bench-table ARGS='--jobs  groups #1'     one job")
    "make bench-table ARGS='--jobs  groups #1'"
    """
    found = re.match(r"""((?:'[^']*'|"[^"]*"|(?!\s\s|\s#)[^'"])*)""", line)
    assert found is not None
    return found[1].strip()


# ---- what is done with them ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """How commands that begin with `start` are run.

    `small` are options, or variables of make, that replace those printed, or are added. What is
    `endless` is interrupted. With a `reason` it is not run. What `curl` asks is asked of a server.
    """

    start: str
    small: str = ""
    codes: tuple[int, ...] = (0,)
    endless: bool = False
    reason: str = ""


PLANS = (
    Plan("make setup", reason="downloads packages"),
    Plan("make test", small="ARGS=tests/test_layout.py"),
    Plan("make quick", small="ARGS=tests/test_layout.py"),
    Plan("make w3c", small="ARGS='-k test_harness'"),
    Plan("make fuzz", small="N=50"),
    Plan("make mutants ARGS=--tests", reason="takes an hour; the command without is run"),
    Plan("make mutants", small="ARGS='--only ends-early --schedules 50 --transcripts 20'"),
    Plan("make transcripts", small="N=100"),
    Plan("make transcripts N=100000 ARGS=--write", reason="writes what is frozen"),
    Plan("PYTHONPATH=tests .venv/bin/python -m oracles.transcripts", reason="has to have another"),
    Plan("make bench-table", small="JSON= ARGS='--small --jobs groups'"),
    Plan("make bench-train", small="ARGS=--small"),
    Plan("make docs-check", small="ARGS=--list"),
    Plan("make cluster-test", reason="needs a network namespace per host, and half an hour"),
    Plan("pip install", reason="downloads packages"),
    Plan("spark-submit", reason="needs a cluster; `make cluster-test` has one"),
    Plan("curl", small="--max-time 10", codes=(0, TIMED_OUT)),
    Plan("graphtide run rail.tide --kafka", reason="needs a broker; tests/spark/kafka has one"),
    Plan("graphtide serve", endless=True),
    Plan("graphtide watch route.rq --data rail.ttl --changes today.rdfp --follow", endless=True),
    Plan("graphtide watch hot.rq --data rooms.ttl --changes log.rdfp --follow", endless=True),
    Plan(
        "graphtide run examples/rail.tide --changes logs/ --out out/ --checkpoint ckpt/"
        " --partitions",
        small="--partitions 2",
    ),
    Plan("graphtide why", codes=(0, 1)),
    Plan("GRAPHTIDE_NO_JIT=1 .venv/bin/python -m pytest", small="-k test_paper3_definitions"),
    Plan("GRAPHTIDE_NO_JIT=1 PYTHONPATH=tests .venv/bin/python -m oracles.fuzz", small="--cases 5"),
)


def plan_for(text: str) -> Plan:
    """The plan with the longest beginning that fits; a command without one is run as it is.

    >>> plan_for("make fuzz N=100000").small, plan_for("graphtide check x").codes
    ('N=50', (0,))
    """
    fitting = [plan for plan in PLANS if f"{text} ".startswith(f"{plan.start} ")]
    return max(fitting, key=lambda plan: len(plan.start), default=Plan(text))


def with_options(text: str, options: str) -> str:
    """A command with some options in the place of those that it has, or after them.

    >>> with_options("graphtide run a.tide --partitions 64 --follow", "--partitions 2 --tick-ms 1")
    'graphtide run a.tide --partitions 2 --follow --tick-ms 1'
    >>> with_options("make test ARGS='-k join'", "ARGS=tests/kernel")
    'make test ARGS=tests/kernel'
    """
    words = shlex.split(text)
    for name, value in _pairs(shlex.split(options)):
        variable, is_variable, _ = name.partition("=")
        if is_variable:
            words = [each for each in words if not each.startswith(f"{variable}=")] + [name]
        elif name not in words:
            words += [name, *value]
        elif value:
            words[words.index(name) + 1] = value[0]
    return shlex.join(words)


def _pairs(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    while words:
        name, *words = words
        takes = name.startswith("-") and words and not words[0].startswith("-")
        value = [words.pop(0)] if takes else []
        yield name, value


# ---- running them --------------------------------------------------------------------------------

RAIL = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"
EX = "http://example.org/"
READINGS = f"<{EX}readings>"
HOT = '"31"^^<http://www.w3.org/2001/XMLSchema#integer>'
FILES = {
    "route.rq": f"""PREFIX : <{RAIL}>
SELECT ?route ?sensor {{ ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor
                         FILTER NOT EXISTS {{ ?route :requires ?sensor }} }}""",
    "rail.ttl": f"""@prefix : <{RAIL}> .
:route5 a :Route ; :follows :swP1 . :swP1 a :SwitchPosition ; :target :sw1 .
:sw1 a :Switch ; :monitoredBy :sensor1 . :sensor1 a :Sensor .""",
    "today.rdfp": f"""PA : <{RAIL}> .
H time 17 .
TX .
A :route5 :follows :swP1 .
A :swP1 :target :sw1 .
A :sw1 :monitoredBy :sensor1 .
TC .
H time 1300 .
TX .
A :route5 :requires :sensor1 .
TC .
""",
    "cleanup.ru": f"PREFIX : <{RAIL}> DELETE WHERE {{ :route5 :follows ?swP }}",
    "hot.rq": """PREFIX : <http://example.org/>
REGISTER ISTREAM :hot AS SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?sensor :shows ?t } ?sensor :in ?room FILTER (?t > 30) }""",
    "rooms.ttl": f"<{EX}sensor1> <{EX}in> <{EX}kitchen> .",
    "log.rdfp": f"H time 3 .\nTX .\nA <{EX}sensor1> <{EX}shows> {HOT} {READINGS} .\nTC .\n",
    "events.trig": f"""@prefix prov: <http://www.w3.org/ns/prov#> .
<{EX}e1> {{ <{EX}sensor1> <{EX}shows> 31 }}
<{EX}e1> prov:generatedAtTime 3 .""",
}
"""What the commands of the pages read."""

MADE_BY = {
    "rail/": "graphtide watch route.rq --store rail/ --changes today.rdfp",
    "ckpt/": "graphtide run examples/rail.tide --changes logs/ --out out/ --checkpoint ckpt/"
    " --partitions 8",
}
"""Folders that commands read, and the command of README.md that makes each."""

LINKS = (".venv", "examples", "tests", "src", "pyproject.toml", "Makefile")


def make_folder(folder: Path) -> None:
    """A folder with all that the commands read."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in LINKS:
        (folder / name).symlink_to(ROOT / name)
    (folder / "logs").mkdir()
    (folder / "logs" / "today.rdfp").write_text(FILES["today.rdfp"], encoding="utf-8")
    repairs = (ROOT / "examples" / "repairs.tide").read_text(encoding="utf-8")
    (folder / "rail.tide").write_text(repairs, encoding="utf-8")
    rail = (ROOT / "examples" / "rail.tide").read_text(encoding="utf-8")
    (folder / "rail-2.tide").write_text(rail, encoding="utf-8")


def missing_for(text: str, folder: Path) -> list[str]:
    """The commands that make what another one reads and is not there yet.

    >>> missing_for("graphtide store info rail/", Path("no-such-folder"))
    ['graphtide watch route.rq --store rail/ --changes today.rdfp']
    """
    words = text.split()
    needed = {made: maker for made, maker in MADE_BY.items() if made in words and maker != text}
    return [maker for made, maker in needed.items() if not (folder / made).exists()]


def run_command(shown: Shown, plan: Plan, folder: Path, log: Path) -> str:
    """Run a command to its end; what went wrong, or nothing."""
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    text = with_options(shown.text.removeprefix("time ").removesuffix(" &"), plan.small)
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(  # noqa: S603 - commands of our own pages
            ["bash", "-c", f"exec env {text}"],  # noqa: S607
            cwd=ROOT if text.startswith("make ") else folder,
            env=os.environ | {"PATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(STOP_AFTER_S if plan.endless else TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = _stop(process)
            if not plan.endless:
                return f"did not end within {TIMEOUT_S} s"
        except KeyboardInterrupt:
            _stop(process)  # it has a session of its own
            raise
        else:
            if plan.endless:
                return f"ended by itself, with exit code {code}"
    stopped = plan.endless and code == INTERRUPTED  # on a busy machine, while it was starting
    return "" if stopped or code in plan.codes else f"exit code {code}"


SERVER = "graphtide serve --demo"
SUBSCRIBE = "curl -s localhost:8765/subscriptions -H 'Content-Type: application/json'"
SUBSCRIBE += """ -d '{"name": "SwitchSet"}'"""
"""The server and the first request of README.md."""


def ask_server(shown: Shown, plan: Plan, folder: Path, log: Path) -> str:
    """Run a command of `curl` beside a server, with the id that it gave; what went wrong."""
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    server = subprocess.Popen(  # noqa: S603 - commands of our own pages
        shlex.split(SERVER),
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        text = shown.text
        answer = log.with_suffix(".json")
        asked = Shown(shown.page, shown.line, f"{SUBSCRIBE} --retry 60 --retry-connrefused")
        if problem := run_command(asked, Plan("curl"), folder, answer):
            return f"no answer of {SERVER}: {problem}"
        if "…" in text:
            text = text.replace("…", json.loads(answer.read_text(encoding="utf-8"))["id"])
        problem = run_command(Shown(shown.page, shown.line, text), plan, folder, log)
        return problem or ("" if log.stat().st_size else "no answer")
    finally:
        _stop(server)


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Interrupt a command as Ctrl-C does; one that does not listen is killed."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def look_at(shown: Shown) -> str:
    """Check a command that is not run; what is wrong with it, or nothing."""
    program, *words = shlex.split(shown.text)
    if program == "make":
        done = subprocess.run(  # noqa: S603
            ["make", "-n", *words],  # noqa: S607
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr.strip()
    if program == "graphtide":
        try:
            app.parse_args(words, exit_on_error=False, print_error=False)
        except CycloptsError as error:
            return str(error)
    return ""


def check(shown: Shown, folder: Path, log: Path) -> bool:
    """Run or look at a command, and print its line; whether it is right."""
    plan = plan_for(shown.text)
    start = perf_counter()
    before = [] if plan.reason else missing_for(shown.text, folder)
    for text in before:
        run_command(Shown(shown.page, shown.line, text), plan_for(text), folder, log)
    run = ask_server if shown.text.startswith("curl ") else run_command
    problem = look_at(shown) if plan.reason else run(shown, plan, folder, log)
    result = "FAILED" if problem else "not run" if plan.reason else "ok"
    note = problem or plan.reason or plan.small
    print(
        f"{perf_counter() - start:7.1f} s  {result:7}  {shown}{note and f'  ({note})'}", flush=True
    )
    if problem and not plan.reason:
        print(log.read_text(encoding="utf-8", errors="replace")[-2000:])
    return not problem


def main() -> int:
    """Check the commands of all pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the commands and their plans")
    parser.add_argument("--only", default="", help="commands with this in their page or text")
    parser.add_argument("--skip", default="(?!)", help="commands without this in them")
    options = parser.parse_args()
    # A shell starts what runs in the background so that it ignores Ctrl-C, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shown = [
        each
        for page in PAGES
        for each in commands_of(page)
        if re.search(options.only, str(each)) and not re.search(options.skip, str(each))
    ]
    if options.list:
        for each in shown:
            plan = plan_for(each.text)
            print(each, "|", plan.reason or plan.small or "as it is")
        return 0
    with tempfile.TemporaryDirectory(prefix="graphtide-docs-") as name:
        folder = Path(name)
        make_folder(folder)
        warm = Shown("", 0, "graphtide warm")  # else what is interrupted first compiles its loops
        run_command(warm, plan_for(warm.text), folder, folder / "output.log")
        results = [check(each, folder, folder / "output.log") for each in shown]
    print(f"{sum(results)} of {len(results)} commands are right")
    return 0 if all(results) else 1


def commands_of(page: Path) -> list[Shown]:
    """The commands of a file."""
    return list(commands_in(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))))


if __name__ == "__main__":
    sys.exit(main())
