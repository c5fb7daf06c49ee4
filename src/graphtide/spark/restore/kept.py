"""What the state of a job holds, as notes in its checkpoint; and whether another job can use it.

A partition keeps the quads and events that its queries can match, and no others. A query that is
added later starts with its whole answer, so all quads that it can match must have been kept.
Patterns and rules go on if they and their events are as they were. New ones begin empty: with the
facts of now, and with the events from now on.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph
from graphtide.errors import GraphtideError
from graphtide.lang.fingerprint import fingerprint_text
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.pattern_facts import walk
from graphtide.spark.topology import stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rules.model import EventType
    from graphtide.spark.job import JobSpec
    from graphtide.spark.partition.program import ProgramSpec

    Notes = Mapping[str, Any]
    """Of a job: `stages` with state, `clock`, `kept` patterns, `windows`; and, of a program, its
    `types` of events, those that are `named`, its `patterns` and `rules`, as digests."""

DEFAULT_GRAPH = "the default graph"


def job_notes(job: JobSpec) -> dict[str, Any]:
    """What a later change of the checkpoint has to know of a job."""
    kept = {(stream, *each) for stream, _, each in patterns_of(job)}
    spec = job.program
    return {
        "stages": [stage.name for stage in stages_of(job) if stage.stateful],
        "clock": list(job.clock.window_times),
        "kept": sorted(map(list, kept), key=str),
        "windows": sorted([window.stream, window.graph.value] for window in job.windows.values()),
        **({} if spec is None else program_notes(spec)),
    }


def program_notes(spec: ProgramSpec) -> dict[str, Any]:
    """Digests of the events, patterns and rules of a program, in the order of their ids."""
    keys = {type_: _type_text(type_, spec) for type_ in spec.types}
    named = {name: keys[type_] for name, type_ in spec.named.items()}
    patterns = {each.name: _pattern_text(each, named, spec) for each in spec.source.patterns}
    for name, type_ in spec.complex.items():
        keys[type_] = f"complex event {patterns[name]}"
    rules = [
        f"{fingerprint_text(declared)} {spec.tick_ms} {[keys[c.type] for c in rule.events]}"
        for declared, rule in zip(spec.source.rules, spec.rules, strict=True)
    ]
    return {
        "types": [_digest(keys[type_]) for type_ in spec.types],
        "named": [_digest(f"{name} {key}") for name, key in named.items()],
        "patterns": [_digest(text) for text in patterns.values()],
        "rules": [_digest(text) for text in rules],
    }


def ended(job: JobSpec, notes: Notes) -> int:
    """How many patterns and rules of an earlier job are not in a later one, or not as they were."""
    new = {} if job.program is None else program_notes(job.program)
    return sum(len({*notes.get(each, ())} - {*new.get(each, ())}) for each in ("patterns", "rules"))


def _type_text(type_: EventType, spec: ProgramSpec) -> str:
    """All that events of a type depend on."""
    source = spec.changes.get(type_)
    query = getattr(source, "query", None)
    text = "" if query is None else spec.source.texts[query]
    parts = type_.name, type_.parameters, type_.pattern, type_.check, source
    return f"{fingerprint_text(parts)} {text}"


def _pattern_text(
    pattern: tide.PatternDeclaration, named: Mapping[str, str], spec: ProgramSpec
) -> str:
    """All that the tokens of a pattern depend on; outside CHRONICLE, any event may be noise."""
    atoms = {part.event for part in walk(pattern.body) if isinstance(part, tide.Atom)}
    seen = [name for name in named if name in atoms or pattern.context in tide.NOISY]
    return f"{fingerprint_text(pattern)} {spec.tick_ms} {[(n, named[n]) for n in seen]}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def same_places(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """The places of what is in both lists, from old to new.

    >>> same_places(["a", "b", "c"], ["c", "a"])
    {0: 1, 2: 0}
    """
    where = {text: at for at, text in enumerate(new)}
    return {at: where[text] for at, text in enumerate(old) if text in where}


# --- quads and events ---


def patterns_of(job: JobSpec) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    """The patterns whose quads, or events of a stream, a job keeps, and for which query."""
    for stream, grids in job.routes.items():
        every = [query.name for query in job.partition_queries]
        for at, grid in enumerate(grids):
            for part in (grid, *(hub.grid for hub in grid.hubs)):
                for leaf in part.leaves:
                    yield stream, every[at % len(every)], _positions(leaf.pattern)


def _positions(pattern: TriplePattern) -> tuple[str, ...]:
    terms = (pattern.subject, pattern.predicate, pattern.object)
    default = isinstance(pattern.graph, DefaultGraph)
    return *map(_text, terms), DEFAULT_GRAPH if default else _text(pattern.graph)


def _text(term: object) -> str:
    return f"?{term.name}" if isinstance(term, Var) else str(term)


def covers(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether a pattern matches all quads that another one matches.

    >>> covers(["?a", "<ex:p>", "?b", DEFAULT_GRAPH], ["<ex:x>", "<ex:p>", "?b", DEFAULT_GRAPH])
    True
    >>> covers(["?a", "<ex:p>", "?a", DEFAULT_GRAPH], ["?a", "<ex:p>", "?b", DEFAULT_GRAPH])
    False
    >>> covers(["?a", "?p", "?b", "?g"], ["?a", "?p", "?b", DEFAULT_GRAPH])
    False
    """
    stands_for: dict[str, str] = {}
    for before, now in zip(old, new, strict=True):
        if not before.startswith("?"):
            if before != now:
                return False
        elif stands_for.setdefault(before, now) != now:
            return False
    return not (old[3].startswith("?") and new[3] == DEFAULT_GRAPH)


def check_kept(notes: Notes, job: JobSpec) -> None:
    """Raise if a query of a job asks for quads or events that were not kept."""
    known = notes["kept"]
    windows = {tuple(each) for each in notes["windows"]}
    streams = {stream for stream, _ in windows}
    for window in job.windows.values():
        if window.stream in streams and (window.stream, window.graph.value) not in windows:
            raise GraphtideError(
                f"a new window on {window.stream} ({window.graph.value.rpartition('#')[2]}) needs "
                "events that other windows on this stream have not kept",
                hint="give it a stream of its own, or run it with a checkpoint of its own",
            )
    missing = {
        (name, each)
        for stream, name, each in patterns_of(replace(job, layouts=()))
        if (stream is None or stream in streams)
        and not any(place == stream and covers(old, each) for place, *old in known)
    }
    if missing:
        said = "; ".join(sorted(f"{name} asks for {_said(each)}" for name, each in missing))
        raise GraphtideError(
            f"quads that new queries ask for were never kept: {said}",
            hint="the state holds what the queries so far can match; run these queries with a "
            "checkpoint of their own, which reads the input from its start",
        )


def _said(pattern: Sequence[str]) -> str:
    triple = " ".join(pattern[:3])
    if pattern[3] == DEFAULT_GRAPH:
        return f"{{ {triple} }}"
    return f"GRAPH {pattern[3]} {{ {triple} }}"
