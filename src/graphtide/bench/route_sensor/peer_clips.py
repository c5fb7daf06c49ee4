"""clipspy on the same edges: CLIPS facts of symbols, and one rule with a negation.

The rule's conclusions are facts with logical support, so CLIPS takes them back by itself. The
network is kept up to date by every assertion; the agenda runs once after the load, which spares
CLIPS the matches that come and go on the way, and after every single update.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.route_sensor import RELATIONS
from graphtide.bench.route_sensor.timing import microseconds, time_each, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.bench.route_sensor.workload import Workload

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
    asserts = [template.assert_fact for template in templates]
    nodes = [clips.Symbol(name) for name in workload.names()]
    calls = list(map(asserts.__getitem__, workload.relation.tolist()))
    s = list(map(nodes.__getitem__, workload.s.tolist()))
    o = list(map(nodes.__getitem__, workload.o.tolist()))
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
    edges = [(calls[i], s[i], o[i]) for i in workload.updated.tolist()]
    facts = _facts(templates, {(call.__self__.name, s, o) for call, s, o in edges})
    return figures | microseconds(time_each(_updates(engine, edges, facts)))


def _engine() -> Any:
    import clips

    engine = clips.Environment()
    for name in RELATIONS:
        engine.build(f"(deftemplate {name} (slot s) (slot o))")
    engine.build("(deftemplate match (slot route) (slot sensor) (slot swP) (slot sw))")
    engine.build(RULE)
    return engine


def _facts(templates: list[Any], wanted: set[tuple[str, str, str]]) -> dict[Any, Any]:
    """The facts of some edges; holding on to all of them would cost CLIPS memory and time."""
    found = {}
    for template in templates:
        for fact in template.facts():
            key = template.name, fact["s"], fact["o"]
            if key in wanted:
                found[key] = fact
    return found


def _updates(
    engine: Any, edges: list[tuple[Any, str, str]], facts: dict[Any, Any]
) -> Iterator[Callable[[], object]]:
    for call, s, o in edges:
        yield partial(_retract, engine, facts.pop((call.__self__.name, s, o)))
        yield partial(_assert, engine, call, s, o)


def _retract(engine: Any, fact: Any) -> None:
    fact.retract()
    engine.run()


def _assert(engine: Any, call: Any, s: str, o: str) -> None:
    call(s=s, o=o)
    engine.run()
