"""A model that stays invalid is repaired: events, a pattern over them, repair plans, one applied.

A user sets the available CPU of a host to more than its total, three times. Each time there is an
event. The third completes a pattern: plans that repair the model are searched, one is chosen and
applied. Then an application is added that is allocated to no host, and needs more than is left: to
make room, another one has to move.

Prints:

    time 1: :server has 10 of 8 CPUs available
    time 2: :server has 11 of 8 CPUs available
    time 3: :server has 12 of 8 CPUs available
    too often: how to repair :server?
      1. LowerAvailableCpu (cost 1)
           - :server :availableCpu 12
           + :server :availableCpu 8
      2. RaiseTotalCpu (cost 2)
           - :server :totalCpu 8
           + :server :totalCpu 12
    chosen: 1
    :server is valid again
    hosts with too much CPU now: 0
    time 5: :planner, which needs 4 CPUs, is on no host
      1. Allocate :planner to :gateway, Move :bridge from :gateway to :server (cost 4)
      2. Allocate :planner to :server, Move :archive from :server to :gateway (cost 4)
    after it: 0 problems
"""

from pathlib import Path

import graphtide as gt
from graphtide.repair.plan import RepairPlan

FOLDER = Path(__file__).parent
CPS = "http://example.org/cps#"


def name(local: str) -> str:
    return f"<{CPS}{local}>"


def short(term: object) -> str:
    """A term as the program would write it."""
    text = str(getattr(term, "value", term))
    return text.replace(CPS, ":")


# --- the model, and the program that runs on it ---

program = gt.Program.read(FOLDER / "cps.tide")
graph = gt.LiveGraph()
graph.apply(str(FOLDER / "cps.ttl"))


def choose(plans: list[RepairPlan]) -> RepairPlan:
    """Somebody looks at the plans, and takes one."""
    for number, plan in enumerate(plans, start=1):
        print(f"  {number}. {plan.steps[0].fix} (cost {plan.cost:g})")
        for diff, s, p, o, _ in plan.changes:
            print(f"       {'+' if diff > 0 else '-'} {short(s)} {short(p)} {short(o)}")
    print("chosen: 1")
    return plans[0]


def suggest(host: gt.NamedNode, *, graph: gt.LiveGraph) -> None:
    """The tolerance is exceeded: search for repair plans."""
    print(f"too often: how to repair {short(host)}?")
    choose(graph.repairs(program)).apply()


def tell_valid(host: gt.NamedNode) -> None:
    print(f"{short(host)} is valid again")


running = graph.run(program, functions={"suggest": suggest, "tell_valid": tell_valid})
invalid = running.queries["AvailableGreaterThanTotalCpu"]

# --- phases 1 and 2: it is invalid, again and again ---

before = 3
for time, available in ((1, 10), (2, 11), (3, 12)):
    print(f"time {time}: :server has {available} of 8 CPUs available")
    with graph.transaction(time=time) as change:
        change.delete(name("server"), name("availableCpu"), before)
        change.insert(name("server"), name("availableCpu"), available)
    before = available

# --- phases 3 and 4 have happened meanwhile: plans were searched, and one was applied ---

print(f"hosts with too much CPU now: {invalid.count()}")

# --- an application that fits nowhere, unless another one moves ---

IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
with graph.transaction(time=5) as change:
    change.insert(name("planner"), IS_A, name("ApplicationInstance"))
    change.insert(name("planner"), name("needsCpu"), 4)
print("time 5: :planner, which needs 4 CPUs, is on no host")
words = {
    "Move": "Move {application} from {from} to {to}",
    "Allocate": "Allocate {application} to {host}",
}
plans = graph.repairs(program)
for number, plan in enumerate(plans[:2], start=1):
    steps = (
        words[step.fix].format(**{n: short(term) for n, term in step.bindings.items()})
        for step in plan.steps
    )
    print(f"  {number}. {', '.join(steps)} (cost {plan.cost:g})")
plans[0].apply()
goals = {goal.query for goal in program.goals}
print(f"after it: {sum(running.queries[query].count() for query in goals)} problems")
