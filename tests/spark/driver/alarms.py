"""The alarms of paper 2 as transactions of a stream of changes."""

from __future__ import annotations

from pathlib import Path

from spark.stages.program_runs import TYPE, event, watermark

ALARMS = (Path(__file__).parents[3] / "examples" / "alarms.tide").read_text()


def ex(name):
    return f"<http://example.org/{name}>"


def alarm_event(kind, name, time, tx, **more):
    pairs = [(ex(name), TYPE, ex(kind)), *((ex(name), ex(p), ex(o)) for p, o in more.items())]
    return event(time, tx, *pairs)


def state(equipment, new, time, tx, was=None):
    rows = [(time, tx, 1, ex(equipment), TYPE, ex("Equipment"), None, None)]
    if was:
        rows.append((time, tx, -1, ex(equipment), ex("state"), ex(was), None, None))
    return [*rows, (time, tx, 1, ex(equipment), ex("state"), ex(new), None, None)]


SCENE = [
    state("e1", "ONLINE", 0, 0),
    state("e2", "ACTIVE", 1, 1),
    alarm_event("Alarm", "a1", 10, 2, eqpt="e2"),
    alarm_event("Alarm", "a2", 10, 3, eqpt="e2"),
    alarm_event("Cancellation", "x1", 12, 4, alarm="a1"),
    alarm_event("Confirmation", "c1", 13, 5, alarm="a1"),
    alarm_event("Confirmation", "c2", 13, 6, alarm="a2"),
    state("e1", "ACTIVE", 20, 7, was="ONLINE"),
    alarm_event("Alarm", "a3", 21, 8, eqpt="e1"),
    alarm_event("Alarm", "a4", 22, 9, eqpt="e1"),
    [watermark(60)],
]
"""The alarms of paper 2. By hand: a1 is cancelled, so its confirmation comes too late; a2 is
confirmed; a3 comes as soon as e1 is active and switches it off, and a4 does so again; a3 and a4
are ignored, and so is a1, whose cancellation retracts it only from the rules that come after."""
