"""clipspy on the same events: facts with a time, one rule that tests it, and facts that go in time.

CLIPS knows no clock, so what has expired is taken back from outside: confirmations at the end of
their tick, alarms when no confirmation can come in time any more. The agenda runs once for each
tick, which spares CLIPS a call for each event.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

import numpy as np

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.route_sensor.timing import timed
from graphtide.bench.rules.workload import HIGH, Workload, checksum

TEMPLATES = (
    "(deftemplate equipment (slot id) (slot state))",
    "(deftemplate alarm (slot id) (slot eqpt) (slot time))",
    "(deftemplate confirmation (slot id) (slot alarm) (slot time))",
    "(deftemplate confirmed (slot alarm) (slot by))",
)

RULE = """
(defrule alarm-confirmation
  (equipment (id ?e) (state ACTIVE))
  (alarm (id ?a) (eqpt ?e) (time ?before))
  (confirmation (id ?c) (alarm ?a) (time ?now&:(<= 1 (- ?now ?before) 5)))
  =>
  (assert (confirmed (alarm ?a) (by ?c))))
"""


class Engine(Protocol):
    """An environment of clipspy."""

    def build(self, construct: str) -> None:
        """Define something."""

    def find_template(self, name: str) -> Any:  # noqa: ANN401 - clipspy has no types
        """A kind of fact."""

    def run(self) -> int:
        """Let the rules on the agenda fire."""
        ...


Tick = tuple[int, list[tuple[Any, Any]], list[tuple[Any, Any]]]
"""A time, its alarms with their equipments, its confirmations with their alarms."""


def measure_clipspy(workload: Workload) -> dict[str, float]:
    """One call for each event; expired facts are retracted at the end of each tick."""
    import clips

    engine: Engine = clips.Environment()
    for construct in (*TEMPLATES, RULE):
        engine.build(construct)
    states = [clips.Symbol("ONLINE"), clips.Symbol("ACTIVE")]
    equipments = [clips.Symbol(f"equipment{n}") for n in range(len(workload.active))]
    equipment = engine.find_template("equipment").assert_fact
    for name, active in zip(equipments, workload.active.tolist(), strict=True):
        equipment(id=name, state=states[active])
    many = max(workload.alarms, int(workload.subject.max()) + 1)
    subjects = [clips.Symbol(f"s{n}") for n in range(many)]
    ticks = _ticks(workload, subjects, equipments)
    with timed() as watch:
        _stream(engine, ticks)
    pairs = [
        (int(fact["alarm"][1:]), int(fact["by"][1:]))
        for fact in engine.find_template("confirmed").facts()
    ]
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return {
        "events": len(workload),
        "events_per_s": round(len(workload) / watch.seconds),
        "firings": len(found),
        "checksum": checksum(found[:, 0], found[:, 1]),
        "rss_mb": peak_rss_mb(),
    }


def _ticks(workload: Workload, subjects: list[Any], equipments: list[Any]) -> list[Tick]:
    """For each tick its alarms and confirmations, as pairs of names."""
    found: dict[int, Tick] = {}
    columns = (workload.time, workload.confirms, workload.subject, workload.about)
    for time, confirms, subject, about in zip(*(c.tolist() for c in columns), strict=True):
        _, alarms, confirmations = found.setdefault(time, (time, [], []))
        if confirms:
            confirmations.append((subjects[subject], subjects[about]))
        else:
            alarms.append((subjects[subject], equipments[about]))
    return list(found.values())


def _stream(engine: Engine, ticks: list[Tick]) -> None:
    raise_alarm = engine.find_template("alarm").assert_fact
    confirm = engine.find_template("confirmation").assert_fact
    kept: deque[tuple[int, list[Any]]] = deque()
    for time, alarms, confirmations in ticks:
        while kept and kept[0][0] + HIGH < time:
            for fact in kept.popleft()[1]:
                fact.retract()
        kept.append((time, [raise_alarm(id=a, eqpt=e, time=time) for a, e in alarms]))
        passing = [confirm(id=c, alarm=a, time=time) for c, a in confirmations]
        engine.run()
        for fact in passing:
            fact.retract()
