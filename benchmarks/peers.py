"""Other engines on the same workloads: CLIPS (by clipspy) and DuckDB.

Nothing here imports Graphtide's engine, which would count as the peer's memory.

RouteSensor on CLIPS: a rule with a negation, whose conclusions are facts with logical support, so
that CLIPS retracts them by itself. Every assertion updates the network; the agenda runs once after
the load, which spares CLIPS the matches that appear and disappear on the way, and after every
update. DuckDB has no standing queries: the query is run again after every update.

AlarmConfirmation on CLIPS: facts with a time, and a rule that tests it. CLIPS has no clock, so
expired facts are retracted from Python: confirmations at the end of their tick, alarms when no
confirmation can be in time any more. The agenda runs once per tick.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from benchmarks import route_sensor
from benchmarks.harness import peak_rss_mb, time_each, timed
from benchmarks.rules import HIGH, AlarmWorkload, FiringFigures, checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb


class ClipsFact(Protocol):
    """A fact of clipspy."""

    def retract(self) -> None:
        """Remove the fact."""

    def __getitem__(self, slot: str) -> str: ...


class ClipsTemplate(Protocol):
    """A template of clipspy."""

    name: str

    def assert_fact(self, **slots: object) -> ClipsFact:
        """Add a fact."""
        ...

    def facts(self) -> Iterator[ClipsFact]:
        """All facts of the template."""
        ...


class ClipsEnvironment(Protocol):
    """An environment of clipspy."""

    def build(self, construct: str) -> None:
        """Define a construct."""

    def find_template(self, name: str) -> ClipsTemplate:
        """A template by name."""
        ...

    def run(self) -> int:
        """Fire the rules on the agenda."""
        ...


def _environment(*constructs: str) -> ClipsEnvironment:
    import clips

    environment: ClipsEnvironment = clips.Environment()
    for construct in constructs:
        environment.build(construct)
    return environment


# ---- RouteSensor on CLIPS ------------------------------------------------------------------------

ROUTE_SENSOR: Final = (
    *(f"(deftemplate {name} (slot s) (slot o))" for name in route_sensor.RELATIONS),
    "(deftemplate match (slot route) (slot sensor) (slot swP) (slot sw))",
    """
(defrule route-sensor
  (logical
    (follows (s ?route) (o ?swP))
    (target (s ?swP) (o ?sw))
    (monitoredBy (s ?sw) (o ?sensor))
    (not (requires (s ?route) (o ?sensor))))
  =>
  (assert (match (route ?route) (sensor ?sensor) (swP ?swP) (sw ?sw))))
""",
)


class ClipsEdge(NamedTuple):
    """An edge as a fact: its template and its two slots."""

    template: ClipsTemplate
    s: str
    o: str


def clips_route_sensor(
    task: route_sensor.RouteSensorTask, workload: route_sensor.EdgeWorkload
) -> route_sensor.RouteSensorResult:
    """Load by one call per edge; then the updates."""
    import clips

    environment = _environment(*ROUTE_SENSOR)
    templates = [environment.find_template(name) for name in route_sensor.RELATIONS]
    nodes = [clips.Symbol(name) for name in workload.names()]
    asserts = [template.assert_fact for template in templates]
    calls = [asserts[number] for number in workload.relation.tolist()]
    s = [nodes[number] for number in workload.s.tolist()]
    o = [nodes[number] for number in workload.o.tolist()]
    with timed() as load:
        for call, subject, object_ in zip(calls, s, o, strict=True):
            call(s=subject, o=object_)
        environment.run()
    rss_mb = peak_rss_mb()
    matches = sum(1 for _ in environment.find_template("match").facts())
    edges = [
        ClipsEdge(templates[workload.relation[i]], s[i], o[i]) for i in workload.updated.tolist()
    ]
    spent = time_each(_clips_updates(environment, edges, _facts(templates, edges)))
    return route_sensor.RouteSensorResult(
        task.engine,
        len(workload),
        rss_mb,
        matches,
        round(len(workload) / load.seconds),
        **route_sensor.update_percentiles(spent),
    )


def _facts(templates: list[ClipsTemplate], edges: list[ClipsEdge]) -> Iterator[ClipsFact]:
    """The facts of some edges; references to all facts would cost CLIPS memory and time."""
    wanted = {(template.name, s, o) for template, s, o in edges}
    found: dict[tuple[str, str, str], ClipsFact] = {}
    for template in templates:
        for fact in template.facts():
            key = template.name, fact["s"], fact["o"]
            if key in wanted:
                found[key] = fact
    for template, s, o in edges:
        yield found.pop((template.name, s, o))


def _clips_updates(
    environment: ClipsEnvironment, edges: list[ClipsEdge], facts: Iterator[ClipsFact]
) -> Iterator[Callable[[], object]]:
    for edge, fact in zip(edges, facts, strict=True):
        yield partial(_retract, environment, fact)
        yield partial(_assert, environment, edge)


def _retract(environment: ClipsEnvironment, fact: ClipsFact) -> None:
    fact.retract()
    environment.run()


def _assert(environment: ClipsEnvironment, edge: ClipsEdge) -> None:
    edge.template.assert_fact(s=edge.s, o=edge.o)
    environment.run()


# ---- RouteSensor on DuckDB -----------------------------------------------------------------------

ROUTE_SENSOR_SQL: Final = """
SELECT count(*)
FROM follows
JOIN target ON target.s = follows.o
JOIN monitoredBy ON monitoredBy.s = target.o
WHERE NOT EXISTS (
  FROM requires WHERE requires.s = follows.s AND requires.o = monitoredBy.o
)
"""

DUCKDB_UPDATES: Final = 20


def duckdb_route_sensor(
    task: route_sensor.RouteSensorTask, workload: route_sensor.EdgeWorkload
) -> route_sensor.RouteSensorResult:
    """Load tables of integers in bulk; then some updates, with the query after each."""
    import duckdb
    import pyarrow as pa

    database = duckdb.connect()
    for number, name in enumerate(route_sensor.RELATIONS):
        chosen = workload.relation == number
        edges = pa.table({"s": workload.s[chosen], "o": workload.o[chosen]})
        database.register("edges", edges)
        database.execute(f"CREATE TABLE {name} AS FROM edges")
        database.unregister("edges")
    matches = _count_matches(database)
    spent = time_each(_duckdb_updates(database, workload))
    return route_sensor.RouteSensorResult(
        task.engine, len(workload), peak_rss_mb(), matches, **route_sensor.update_percentiles(spent)
    )


def _duckdb_updates(
    database: duckdb.DuckDBPyConnection, workload: route_sensor.EdgeWorkload
) -> Iterator[Callable[[], object]]:
    for index in workload.updated[: DUCKDB_UPDATES // 2].tolist():
        name = route_sensor.RELATIONS[workload.relation[index]]
        edge = [int(workload.s[index]), int(workload.o[index])]
        for statement in (
            f"DELETE FROM {name} WHERE s = ? AND o = ?",  # noqa: S608 - one of our own four names
            f"INSERT INTO {name} VALUES (?, ?)",  # noqa: S608 - same
        ):
            yield partial(_update, database, statement, edge)


def _update(database: duckdb.DuckDBPyConnection, statement: str, edge: list[int]) -> int:
    database.execute(statement, edge)
    return _count_matches(database)


def _count_matches(database: duckdb.DuckDBPyConnection) -> int:
    row = database.execute(ROUTE_SENSOR_SQL).fetchone()
    return int(row[0]) if row else 0


# ---- AlarmConfirmation on CLIPS ------------------------------------------------------------------

ALARM_CONFIRMATION: Final = (
    "(deftemplate equipment (slot id) (slot state))",
    "(deftemplate alarm (slot id) (slot eqpt) (slot time))",
    "(deftemplate confirmation (slot id) (slot alarm) (slot time))",
    "(deftemplate confirmed (slot alarm) (slot by))",
    """
(defrule alarm-confirmation
  (equipment (id ?e) (state ACTIVE))
  (alarm (id ?a) (eqpt ?e) (time ?before))
  (confirmation (id ?c) (alarm ?a) (time ?now&:(<= 1 (- ?now ?before) 5)))
  =>
  (assert (confirmed (alarm ?a) (by ?c))))
""",
)


class AlarmTick(NamedTuple):
    """A time, its alarms with their equipments, its confirmations with their alarms."""

    time: int
    alarms: list[tuple[Any, Any]]
    confirmations: list[tuple[Any, Any]]


def clips_alarms(workload: AlarmWorkload) -> FiringFigures:
    """One call per event; expired facts are retracted at the end of each tick."""
    import clips

    environment = _environment(*ALARM_CONFIRMATION)
    states = [clips.Symbol("ONLINE"), clips.Symbol("ACTIVE")]
    equipments = [clips.Symbol(f"equipment{n}") for n in range(len(workload.active))]
    equipment = environment.find_template("equipment").assert_fact
    for name, active in zip(equipments, workload.active.tolist(), strict=True):
        equipment(id=name, state=states[active])
    many = max(workload.alarms, int(workload.subject.max()) + 1)
    subjects = [clips.Symbol(f"s{n}") for n in range(many)]
    ticks = _ticks(workload, subjects, equipments)
    with timed() as watch:
        _stream(environment, ticks)
    pairs = [
        (int(fact["alarm"][1:]), int(fact["by"][1:]))
        for fact in environment.find_template("confirmed").facts()
    ]
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return FiringFigures(watch.seconds, len(found), checksum(found[:, 0], found[:, 1]))


def _ticks(workload: AlarmWorkload, subjects: list[Any], equipments: list[Any]) -> list[AlarmTick]:
    """For each tick its alarms and confirmations, as pairs of names."""
    found: dict[int, AlarmTick] = {}
    columns = (workload.time, workload.confirms, workload.subject, workload.about)
    for time, confirms, subject, about in zip(*(c.tolist() for c in columns), strict=True):
        tick = found.setdefault(time, AlarmTick(time, [], []))
        if confirms:
            tick.confirmations.append((subjects[subject], subjects[about]))
        else:
            tick.alarms.append((subjects[subject], equipments[about]))
    return list(found.values())


def _stream(environment: ClipsEnvironment, ticks: list[AlarmTick]) -> None:
    raise_alarm = environment.find_template("alarm").assert_fact
    confirm = environment.find_template("confirmation").assert_fact
    retained: deque[tuple[int, list[ClipsFact]]] = deque()
    for time, alarms, confirmations in ticks:
        while retained and retained[0][0] + HIGH < time:
            for fact in retained.popleft()[1]:
                fact.retract()
        retained.append((time, [raise_alarm(id=a, eqpt=e, time=time) for a, e in alarms]))
        passing = [confirm(id=c, alarm=a, time=time) for c, a in confirmations]
        environment.run()
        for fact in passing:
            fact.retract()
