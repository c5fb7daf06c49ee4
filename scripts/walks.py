"""Trace what one datum walks through: the files that are entered, and the hops between them.

    python scripts/walks.py            # a table of all walks
    python scripts/walks.py --files    # and the files of each, in the order they are entered

A hop is a call from a function of one file into a function of another. Compiled loops do not show.
Everything is warmed up first: what is traced is the way of one change, not that of starting.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator  # noqa: TC003 - for readers of this script
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType  # noqa: TC003

import graphtide as gt
from graphtide.cli.main import main as command
from graphtide.testing.partitions import PartitionRun

PACKAGE = str(Path(gt.__file__).parent)
HARNESS = str(Path(PACKAGE, "testing"))  # in the place of Spark
EX = "<http://example.org/{}>".format
ROUTE = """PREFIX : <http://example.org/>
    SELECT ?route ?sensor { ?route :follows ?switch . ?switch :monitoredBy ?sensor
                            FILTER NOT EXISTS { ?route :requires ?sensor } }"""
RULE = """PREFIX : <http://example.org/>
    EVENT Seen(?x) AS { ?x :seen ?y }
    RULE Note ON Seen(?x) THEN INSERT { ?x a :Known }"""


@dataclass
class Walk:
    """The files that were entered, and how often the walk went from one into another."""

    files: dict[str, None] = field(default_factory=dict)
    hops: int = 0
    begins: str = ""
    """The function with which the walk begins; what comes before is not part of it."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call (as `sys.setprofile` reports it)."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(PACKAGE) or name.startswith(HARNESS):
            return
        file = name[len(PACKAGE) + 1 :]
        if not self.files and self.begins not in ("", frame.f_code.co_qualname):
            return
        self.files[file] = None
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        self.hops += caller is not None and caller.f_code.co_filename != name


@contextlib.contextmanager
def traced(begins: str = "") -> Iterator[Walk]:
    """Trace the calls of a block."""
    walk = Walk(begins=begins)
    sys.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(None)


def insert_to_delta() -> Walk:
    """`graph.insert`, then `query.delta()`."""
    graph = gt.LiveGraph()
    query = graph.watch(ROUTE)
    for n in range(3):
        graph.insert(EX("route"), EX("follows"), EX(f"switch{n}"))
        assert not query.delta()
        with traced() as walk:
            graph.insert(EX(f"switch{n}"), EX("monitoredBy"), EX(f"sensor{n}"))
            print(query.delta())
    return walk


def rule_that_inserts() -> Walk:
    """An event is published, a rule fires and inserts a quad, somebody looks."""
    graph = gt.LiveGraph()
    program = graph.run(gt.Program.parse(RULE))
    for n in range(3):
        with traced() as walk:
            graph.publish([(EX(f"x{n}"), EX("seen"), n)], time=n)
            assert len(graph) == n + 1
        assert len(program.firings()) == n + 1
    return walk


def change_on_spark() -> Walk:
    """One change through the stages of the Spark pipeline, without Spark around them."""
    run = PartitionRun.of({"query": ROUTE}, partitions=1)
    names = (EX("route"), EX("follows"), EX("switch"))
    run.batch([[(0, 0, 1, *names, None), (1, 0, 0, None, None, None, None)]])
    for time in (2, 4):
        names = (EX("switch"), EX("monitoredBy"), EX(f"sensor{time}"))
        with traced() as walk:
            found = run.batch([[(time, 0, 1, *names, None), (time + 1, 0, 0, *[None] * 4)]])
        assert len(found) == 1
    return walk


class UntilPrinted(io.StringIO):
    """Standard output that ends the trace when the row is printed."""

    def write(self, text: str) -> int:
        """Take text."""
        if "example.org/a" in text:
            sys.setprofile(None)
        return super().write(text)


def watch_command() -> Walk:
    """`graphtide watch`, from a line of RDF Patch to the printed row."""
    with tempfile.TemporaryDirectory() as folder:
        query, changes = Path(folder, "q.rq"), Path(folder, "c.rdfp")
        query.write_text("SELECT * { ?s <http://example.org/p> ?o }")
        changes.write_text('TX .\nA <http://example.org/a> <http://example.org/p> "1" .\nTC .\n')
        arguments = ["watch", str(query), "--changes", str(changes)]
        for _ in range(2):
            with (
                contextlib.redirect_stdout(UntilPrinted()),
                contextlib.redirect_stderr(io.StringIO()),
                contextlib.suppress(SystemExit),
                traced("PatchReader.feed") as walk,
            ):
                command(arguments)
    return walk


WALKS: dict[str, tuple[Callable[[], Walk], int]] = {
    "`insert` to delta": (insert_to_delta, 14),
    "a rule that inserts": (rule_that_inserts, 24),
    "one change through the Spark stages": (change_on_spark, 26),
    "`graphtide watch`, from a patch line to the printed row": (watch_command, 23),
}
"""What is traced, and how many files it may enter."""


def main(arguments: list[str]) -> int:
    """Print the table; the exit code says whether every walk keeps to its limit."""
    kept = True
    print("| walk | files | hops | limit |\n|---|---|---|---|")
    for name, (trace, limit) in WALKS.items():
        with contextlib.redirect_stdout(io.StringIO()):
            walk = trace()
        kept = kept and len(walk.files) <= limit
        print(f"| {name} | {len(walk.files)} | {walk.hops} | {limit} |")
        if "--files" in arguments:
            print(*(f"    {file}" for file in walk.files), sep="\n")
    return not kept


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
