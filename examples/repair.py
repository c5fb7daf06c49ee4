"""Callbacks that repair the graph: whenever a switch is left without a sensor, it gets one.

Prints:

    time 1: <ex:switch1> is not monitored; adding <ex:spare1>
    time 1: <ex:switch1> is monitored again
    time 2: <ex:switch2> is not monitored; adding <ex:spare2>
    time 2: <ex:switch2> is monitored again
    time 3: <ex:switch1> is not monitored; adding <ex:spare3>
    time 3: <ex:switch1> is monitored again
    not monitored now: 0
"""

from itertools import count

import graphtide as gt

MONITORED_BY = "<ex:monitoredBy>"

graph = gt.LiveGraph()
unmonitored = graph.watch(
    "SELECT ?sw WHERE { ?sw a <ex:Switch> FILTER NOT EXISTS { ?sw <ex:monitoredBy> ?sensor } }"
)
spares = count(1)


@unmonitored.on_appear
def add_sensor(found: gt.DeltaRow) -> None:
    spare = f"<ex:spare{next(spares)}>"
    print(f"time {found.time}: {found.row['sw']} is not monitored; adding {spare}")
    graph.insert(found.row["sw"], MONITORED_BY, spare)


@unmonitored.on_disappear
def report(found: gt.DeltaRow) -> None:
    print(f"time {found.time}: {found.row['sw']} is monitored again")


IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
graph.insert("<ex:switch1>", IS_A, "<ex:Switch>", time=1)
graph.insert("<ex:switch2>", IS_A, "<ex:Switch>", time=2)
graph.delete("<ex:switch1>", MONITORED_BY, "<ex:spare1>", time=3)
print(f"not monitored now: {unmonitored.count()}")
