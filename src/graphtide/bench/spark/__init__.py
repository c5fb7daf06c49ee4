"""The pipeline on Spark beside what it costs to move the data, and beside plain Spark SQL.

One stream, three pipelines over it, each in a process of its own:

- `identity`: the same source, packing, shuffle and state, but no engine behind it;
- `graphtide`: RouteSensor maintained by the cells' engines;
- `reevaluate`: each micro-batch is merged into a table and the whole query is asked again.
"""

from typing import Final

PIPELINES: Final = ("identity", "graphtide", "reevaluate")

CELLS: Final = 2

MASTER: Final = "local-cluster[2,1,2048]"
"""Two executors of one core each, as on a cluster: a cell's engine stays where it is."""
