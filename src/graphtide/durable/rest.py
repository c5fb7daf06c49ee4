"""At rest: whether programs and windows hold anything that a snapshot would not have.

A snapshot has quads, clock, numbers, and the texts of what is registered. Retained events, tokens,
activations and the content of windows are not in it: while there are any, the last snapshot before
them stays the one to open from, and the journal leads from there to the present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.durable.replay import ReplayTarget
    from graphtide.streams.registry import Streams


def what_is_held(graph: ReplayTarget, streams: Streams) -> str | None:
    """What keeps a graph from having a snapshot now, in words; None if it is at rest."""
    if streams.has_windows:
        return "a query has windows"
    for stream in streams:
        if stream.waiting:
            return f"events of the stream {stream.name} wait for earlier ones"
    for program in graph.programs:
        held = program.what_is_held()
        if held is not None:
            return f"{program.name} holds {held}"
    return None


def counters(graph: ReplayTarget, streams: Streams) -> dict[str, dict[str, int]]:
    """The numbers that programs and streams go on from."""
    found = {f"stream {stream.name}": stream.counters() for stream in streams}
    found |= {f"program {each.name}": each.counters() for each in graph.programs}
    return found


def restore_streams(streams: Streams, saved: Mapping[str, dict[str, int]]) -> None:
    """Make the streams of a snapshot, also those that only rules have named."""
    for key, numbers in saved.items():
        kind, _, name = key.partition(" ")
        if kind == "stream":
            streams.stream(f"<{name}>", numbers["lateness"])


def restore_counters(
    graph: ReplayTarget, streams: Streams, saved: Mapping[str, dict[str, int]]
) -> None:
    """Let programs and streams go on from the numbers of a snapshot."""
    for stream in streams:
        stream.restore_counters(saved[f"stream {stream.name}"])
    for program in graph.programs:
        program.restore_counters(saved[f"program {program.name}"])
