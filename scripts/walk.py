"""Print which files one call of each kind goes through, in the order in which it enters them.

    python scripts/walk.py            # all kinds
    python scripts/walk.py rule       # one kind, with each step from file to file

What is called once is left out: each call is made before it is traced.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import graphtide as gt

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE = Path(gt.__file__).parent
PREFIX = "PREFIX : <http://example.org/> "
EVENT = PREFIX + "EVENT Seen(?x) AS { ?x :seen ?y } RULE Note ON Seen(?x) THEN "
INSERTS = EVENT + "INSERT { ?x :is :seen }"
EMITS = EVENT + "EMIT :out { ?x :is :seen }"
WINDOW = """PREFIX : <http://example.org/> REGISTER RSTREAM :out AS SELECT ?x
    FROM NAMED WINDOW :w ON :in [RANGE 5 STEP 5] { WINDOW :w { ?x :seen ?y } }"""


def name(number: int) -> str:
    """Return the IRI of a node."""
    return f"<http://example.org/n{number}>"


def inserts() -> Callable[[int], object]:
    """Return a call that inserts a quad, and reads the delta of a query."""
    graph = gt.LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?x ?y { ?x :seen ?y }")

    def call(number: int) -> object:
        graph.insert(name(number), "<http://example.org/seen>", 1)
        return query.delta()

    return call


def pushes(program: str) -> Callable[[int], object]:
    """Return a call that pushes an event for which a rule fires."""
    graph = gt.LiveGraph()
    graph.run(gt.Program.parse(program))
    stream = graph.stream("<http://example.org/in>")

    def call(number: int) -> object:
        stream.push([(name(number), "<http://example.org/seen>", 1)], time=number)
        return len(graph)

    return call


def closes() -> Callable[[int], object]:
    """Return a call that closes a window, and reads its result."""
    graph = gt.LiveGraph()
    query = graph.watch(WINDOW)
    stream = graph.stream("<http://example.org/in>")

    def call(number: int) -> object:
        stream.push([(name(number), "<http://example.org/seen>", 1)], time=5 * number)
        return query.last_result

    return call


WALKS: dict[str, Callable[[], Callable[[int], object]]] = {
    "insert": inserts,
    "rule": lambda: pushes(INSERTS),
    "emit": lambda: pushes(EMITS),
    "window": closes,
}


def walk_of(call: Callable[[int], object]) -> list[str]:
    """Return the files that a call enters, again and again, without repetitions in a row."""
    steps: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            file = str(path.relative_to(PACKAGE))
            if steps[-1:] != [file]:
                steps.append(file)

    for number in range(1, 4):
        call(number)
    sys.setprofile(note)
    try:
        call(4)
    finally:
        sys.setprofile(None)
    return steps


def main(wanted: list[str]) -> int:
    """Print the walks of some kinds, or of all."""
    unknown = sorted(set(wanted) - set(WALKS))
    if unknown:
        sys.stderr.write(f"no walk is named {', '.join(unknown)}; there are {', '.join(WALKS)}\n")
        return 2
    for kind in wanted or WALKS:
        steps = walk_of(WALKS[kind]())
        files = list(dict.fromkeys(steps))
        sys.stdout.write(f"{kind}: {len(steps)} steps through {len(files)} files\n")
        for file in steps if wanted else files:
            sys.stdout.write(f"  {file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
