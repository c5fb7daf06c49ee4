"""Which sensors monitor a switch on a route that does not require them? One query, two deltas.

Prints:

    + route=<ex:route1> sensor=<ex:sensor1>
    - route=<ex:route1> sensor=<ex:sensor1>
"""

import graphtide as gt

graph = gt.LiveGraph()
query = graph.watch("""
    SELECT ?route ?sensor WHERE {
      ?route <ex:follows> ?swP . ?swP <ex:target> ?switch . ?switch <ex:monitoredBy> ?sensor
      FILTER NOT EXISTS { ?route <ex:requires> ?sensor } }""")
with graph.transaction(time=1) as tx:
    tx.insert("<ex:route1>", "<ex:follows>", "<ex:position1>")
    tx.insert("<ex:position1>", "<ex:target>", "<ex:switch1>")
    tx.insert("<ex:switch1>", "<ex:monitoredBy>", "<ex:sensor1>")
print(query.delta())
graph.insert("<ex:route1>", "<ex:requires>", "<ex:sensor1>", time=2)
print(query.delta())
