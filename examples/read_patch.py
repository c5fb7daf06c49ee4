"""A change log in RDF Patch, and a standing query over it: what is hotter than 90 degrees?

An aborted transaction (the cellar at 8 o'clock) is not applied.

Prints:

    7 o'clock: too hot: boiler at 91
    9 o'clock: still too hot: boiler at 92.5
    10 o'clock: no longer too hot: boiler
    3 transactions changed the answer, of 4
"""

from pathlib import Path

import graphtide as gt

graph = gt.LiveGraph()
hot = graph.watch("""
    PREFIX ex: <http://example.org/>
    SELECT ?what ?celsius WHERE { ?what ex:celsius ?celsius FILTER (?celsius > 90) }""")
graph.apply(Path(__file__).with_name("heat.rdfp"))

deltas = list(hot.deltas())
for delta in deltas:
    rows = {row.diff: row.row for row in delta}
    what = delta[0].row["what"].value.removeprefix("http://example.org/")
    if +1 in rows:
        word = "still too hot" if -1 in rows else "too hot"
        print(f"{delta.time} o'clock: {word}: {what} at {rows[+1]['celsius'].value}")
    else:
        print(f"{delta.time} o'clock: no longer too hot: {what}")
print(f"{len(deltas)} transactions changed the answer, of {graph.stats().transactions}")
