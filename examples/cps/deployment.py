"""A deployment model that follows a model of hosts and applications, as long as that is valid.

A host is created and is deployed once its numbers are set. An application moves to it. While the
host is invalid, another one is moved there: its deployment stays as it is until the host is valid.
Then a host is removed.

Prints:

    time 0: :gateway runs :bridge; :server runs :archive, :monitor
    time 1: a host :edge, of which no number is set
    time 2: its numbers are set
      + :edge runs nothing
    time 3: :archive is allocated to :edge
      - :edge runs nothing
      - :server runs :archive
      + :edge runs :archive
    time 4: :edge has 9 of 4 CPUs available
    time 5: :bridge is allocated to :edge
    time 6: :edge has 1 of 4 CPUs available
      - :gateway runs :bridge
      + :edge runs :bridge
      + :gateway runs nothing
    time 7: :gateway is removed
      - :gateway runs nothing
    at the end: :edge runs :archive, :bridge; :server runs :monitor
"""

from collections import Counter
from pathlib import Path

import graphtide as gt

FOLDER = Path(__file__).parent
CPS = "http://example.org/cps#"
IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NUMBERS = {
    "totalCpu": 4,
    "availableCpu": 4,
    "totalRam": 8,
    "availableRam": 8,
    "totalHdd": 64,
    "availableHdd": 64,
}


def name(local: str) -> str:
    return f"<{CPS}{local}>"


def runs(host: object, application: object) -> str:
    """A row of the deployment, in words."""
    return f"{short(host)} runs {short(application) if application else 'nothing'}"


def short(term: object) -> str:
    """A term as the program would write it."""
    return str(getattr(term, "value", term)).strip("<>").replace(CPS, ":")


graph = gt.LiveGraph()
running = graph.run(gt.Program.read(FOLDER / "deployment.tide"))
deployment = running.queries["Deployment"]


def show() -> str:
    """The whole deployment."""
    hosts: dict[str, list[str]] = {}
    for row in deployment.table().to_pylist():
        hosts.setdefault(short(row["host"]), []).append(short(row["application"]))
    return "; ".join(f"{host} runs {', '.join(sorted(hosts[host]))}" for host in sorted(hosts))


def say(time: int, text: str) -> None:
    """What has happened to the model, and what to the deployment because of it."""
    print(f"time {time}: {text}")
    changed: Counter[str] = Counter()
    for row in deployment.rows():
        if row.time == time:
            changed[runs(*row.row.values())] += row.diff
    for line, diff in sorted(changed.items(), key=lambda each: (each[1], each[0])):
        if diff:
            print(f"  {'+' if diff > 0 else '-'} {line}")


def replace(time: int, subject: str, predicate: str, *, old: str | int, new: str | int) -> None:
    """Give a part of the model another value."""
    with graph.transaction(time=time) as change:
        change.delete(name(subject), name(predicate), old)
        change.insert(name(subject), name(predicate), new)


graph.apply(str(FOLDER / "cps.ttl"))
print(f"time 0: {show()}")

with graph.transaction(time=1) as change:
    change.insert(name("edge"), IS_A, name("HostInstance"))
    change.insert(name("edge"), name("type"), name("Box"))
say(1, "a host :edge, of which no number is set")

with graph.transaction(time=2) as change:
    for number, value in NUMBERS.items():
        change.insert(name("edge"), name(number), value)
say(2, "its numbers are set")

replace(3, "archive", "allocatedTo", old=name("server"), new=name("edge"))
say(3, ":archive is allocated to :edge")

replace(4, "edge", "availableCpu", old=4, new=9)
say(4, ":edge has 9 of 4 CPUs available")

replace(5, "bridge", "allocatedTo", old=name("gateway"), new=name("edge"))
say(5, ":bridge is allocated to :edge")

replace(6, "edge", "availableCpu", old=9, new=1)
say(6, ":edge has 1 of 4 CPUs available")

with graph.transaction(time=7) as change:
    change.delete(name("gateway"), IS_A, name("HostInstance"))
say(7, ":gateway is removed")
print(f"at the end: {show()}")
