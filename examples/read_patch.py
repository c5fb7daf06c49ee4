"""A change log in RDF Patch, and a standing query over it: what is hotter than 90 degrees?

An aborted transaction (the cellar at 8 o'clock) never happened.

Prints:

    7 o'clock: too hot: boiler at 91
    9 o'clock: still too hot: boiler at 92.5
    10 o'clock: no longer too hot: boiler
    3 transactions changed the answer, of 4
"""

from itertools import groupby
from pathlib import Path

import graphtide as gt

graph = gt.LiveGraph()
hot = graph.watch("""
    PREFIX ex: <http://example.org/>
    SELECT ?what ?celsius WHERE { ?what ex:celsius ?celsius FILTER (?celsius > 90) }""")
graph.apply(gt.read_changes(Path(__file__).with_name("heat.rdfp")))

heard = 0
for time, rows in groupby(hot.changes(), key=lambda row: row.time):
    heard += 1
    delta = {row.diff: row.row for row in rows}
    what = next(iter(delta.values()))["what"].value.removeprefix("http://example.org/")
    if +1 in delta:
        word = "still too hot" if -1 in delta else "too hot"
        print(f"{time} o'clock: {word}: {what} at {delta[+1]['celsius'].value}")
    else:
        print(f"{time} o'clock: no longer too hot: {what}")
print(f"{heard} transactions changed the answer, of {graph.stats().transactions}")
