"""Inputs of each kind, other than changes, as entries of the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.durable.chunks import InputEntry
from graphtide.durable.replay import program_fields
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs

if TYPE_CHECKING:
    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.events import EventBatch


def make_entry(kind: str, *what: Any) -> InputEntry:  # noqa: ANN401 - the fields of each kind
    """An input of a kind, with its fields.

    >>> make_entry("watermark", "<ex:readings>", 30).fields
    {'name': '<ex:readings>', 'to': 30}
    """
    match kind:
        case "events":
            return _events_entry(*what)
        case "push":
            return _push_entry(*what)
        case "clock":
            return InputEntry(kind, {"to": what[0]})
        case "watermark":
            return InputEntry(kind, {"name": what[0], "to": what[1]})
        case "stream":
            return InputEntry(kind, {"name": what[0], "lateness": what[1]})
        case "fire":
            return InputEntry(kind, {"name": what[0], "number": what[1]})
        case "unwatch" | "stop":
            return InputEntry(kind, {"name": what[0]})
        case "watch":
            return _watch_entry(*what)
        case "run":
            name, program, options = what
            return InputEntry(kind, {"name": name, "options": options, **program_fields(program)})
        case "replace":
            name, program, disabled = what
            return InputEntry(kind, {"name": name, "disabled": disabled, **program_fields(program)})
        case _:
            raise AssertionError(kind)


def replaced(run: InputEntry, fields: dict[str, Any]) -> InputEntry:
    """The registration of a program that another one has replaced."""
    options = {**run.fields["options"], "disabled": fields["disabled"]}
    texts = {key: value for key, value in fields.items() if key in ("sources", "queries")}
    return InputEntry("run", {"name": fields["name"], "options": options, **texts})


def _watch_entry(
    name: str, query: SelectQuery | WindowedQuery, options: dict[str, object]
) -> InputEntry:
    text = query.text if isinstance(query, SelectQuery) else query.select.text
    if not text:
        raise GraphtideError(
            f"the query {name} has no text, and a store keeps queries as texts",
            hint="give watch() the text of the query",
        )
    return InputEntry("watch", {"name": name, "text": text, "options": options})


def _events_entry(events: EventBatch, followers: tuple[Any, ...] | None) -> InputEntry:
    sizes = np.diff(events.offsets)
    rows = np.zeros((len(events.triples), VALUES + 4), np.int32)
    rows[:, TX] = np.repeat(np.arange(len(sizes)), sizes)
    rows[:, DIFF] = 1
    rows[:, VALUES : VALUES + 3] = events.triples
    names = None if followers is None else [follower.name for follower in followers]
    fields = {"starts": events.starts.tolist(), "ends": events.ends.tolist(), "programs": names}
    stamps = np.zeros(len(rows), np.int64)
    return InputEntry("events", fields, rows, stamps, stamps)


def _push_entry(
    name: str, times: Longs, quads: Ints, newest: int | None, events: Longs | None
) -> InputEntry:
    rows = np.zeros((len(quads), VALUES + 4), np.int32)
    rows[:, DIFF] = 1
    rows[:, VALUES:] = quads
    numbers = np.zeros(len(rows), np.int64) if events is None else np.asarray(events, np.int64)
    fields = {"name": name, "newest": newest, "numbered": events is not None}
    return InputEntry("push", fields, rows, np.array(times, np.int64), numbers)
