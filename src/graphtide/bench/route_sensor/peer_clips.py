"""clipspy on the same edges: CLIPS facts of symbols, and one rule with a negation.

The rule's conclusions are facts with logical support, so CLIPS takes them back by itself. The
network is kept up to date by every assertion; the agenda runs once after the load, which spares
CLIPS the matches that come and go on the way, and after every single update.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.route_sensor import RELATIONS
from graphtide.bench.route_sensor.timing import microseconds, time_each, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.bench.route_sensor.workload import Workload


class Fact(Protocol):
    """A fact of clipspy."""

    def retract(self) -> None:
        """Take it back."""

    def __getitem__(self, slot: str) -> str: ...


class Template(Protocol):
    """A kind of fact of clipspy."""

    name: str

    def assert_fact(self, *, s: str, o: str) -> Fact:
        """Add a fact."""
        ...

    def facts(self) -> Iterator[Fact]:
        """All its facts."""
        ...


class Engine(Protocol):
    """An environment of clipspy."""

    def build(self, construct: str) -> None:
        """Define something."""

    def find_template(self, name: str) -> Template:
        """A kind of fact."""
        ...

    def run(self) -> int:
        """Let the rules on the agenda fire."""
        ...


Edge = tuple[Template, str, str]

RULE = """
(defrule route-sensor
  (logical
    (follows (s ?route) (o ?swP))
    (target (s ?swP) (o ?sw))
    (monitoredBy (s ?sw) (o ?sensor))
    (not (requires (s ?route) (o ?sensor))))
  =>
  (assert (match (route ?route) (sensor ?sensor) (swP ?swP) (sw ?sw))))
"""


def measure_clipspy(workload: Workload) -> dict[str, float]:
    """Load by one call for each edge; then the updates."""
    import clips

    engine = _engine()
    templates = [engine.find_template(name) for name in RELATIONS]
    nodes = [clips.Symbol(name) for name in workload.names()]
    asserts = [template.assert_fact for template in templates]
    calls = [asserts[number] for number in workload.relation.tolist()]
    s = [nodes[number] for number in workload.s.tolist()]
    o = [nodes[number] for number in workload.o.tolist()]
    with timed() as load:
        for call, subject, object_ in zip(calls, s, o, strict=True):
            call(s=subject, o=object_)
        engine.run()
    figures = {
        "edges": len(workload),
        "load_calls_per_s": round(len(workload) / load.seconds),
        "rss_mb": peak_rss_mb(),
        "matches": sum(1 for _ in engine.find_template("match").facts()),
    }
    edges = [(templates[workload.relation[i]], s[i], o[i]) for i in workload.updated.tolist()]
    return figures | microseconds(time_each(_updates(engine, edges, _facts(templates, edges))))


def _engine() -> Engine:
    import clips

    engine: Engine = clips.Environment()
    for name in RELATIONS:
        engine.build(f"(deftemplate {name} (slot s) (slot o))")
    engine.build("(deftemplate match (slot route) (slot sensor) (slot swP) (slot sw))")
    engine.build(RULE)
    return engine


def _facts(templates: list[Template], edges: list[Edge]) -> Iterator[Fact]:
    """The facts of some edges; holding on to all of them would cost CLIPS memory and time."""
    wanted = {(template.name, s, o) for template, s, o in edges}
    found: dict[tuple[str, str, str], Fact] = {}
    for template in templates:
        for fact in template.facts():
            key = template.name, fact["s"], fact["o"]
            if key in wanted:
                found[key] = fact
    for template, s, o in edges:
        yield found.pop((template.name, s, o))


def _updates(
    engine: Engine, edges: list[Edge], facts: Iterator[Fact]
) -> Iterator[Callable[[], object]]:
    for edge, fact in zip(edges, facts, strict=True):
        yield partial(_retract, engine, fact)
        yield partial(_assert, engine, *edge)


def _retract(engine: Engine, fact: Fact) -> None:
    fact.retract()
    engine.run()


def _assert(engine: Engine, template: Template, s: str, o: str) -> None:
    template.assert_fact(s=s, o=o)
    engine.run()
