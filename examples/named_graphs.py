"""Named graphs: two inspectors report, each in a named graph; where do they disagree?

Prints:

    monday
    (no change)
    tuesday
    + switch=<ex:switch1> ann="straight" bob="diverging"
    wednesday
    - switch=<ex:switch1> ann="straight" bob="diverging"
    1 row from <ex:ann>, 2 rows from <ex:bob>
"""

import graphtide as gt

graph = gt.LiveGraph()
disagree = graph.watch("""
    SELECT ?switch ?ann ?bob WHERE {
      GRAPH <ex:ann> { ?switch <ex:position> ?ann }
      GRAPH <ex:bob> { ?switch <ex:position> ?bob }
      FILTER (?ann != ?bob) }""")
reports = graph.watch("SELECT ?who ?switch WHERE { GRAPH ?who { ?switch <ex:position> ?p } }")

print("monday")
graph.insert("<ex:switch1>", "<ex:position>", '"straight"', "<ex:ann>")
print(disagree.delta())

print("tuesday")
with graph.transaction() as tx:
    tx.insert("<ex:switch1>", "<ex:position>", '"diverging"', "<ex:bob>")
    tx.insert("<ex:switch2>", "<ex:position>", '"straight"', "<ex:bob>")
print(disagree.delta())

print("wednesday")
with graph.transaction() as tx:
    tx.delete("<ex:switch1>", "<ex:position>", '"diverging"', "<ex:bob>")
    tx.insert("<ex:switch1>", "<ex:position>", '"straight"', "<ex:bob>")
print(disagree.delta())

who = reports.table(terms=True).column("who").to_pylist()
print(f"{who.count('<ex:ann>')} row from <ex:ann>, {who.count('<ex:bob>')} rows from <ex:bob>")
