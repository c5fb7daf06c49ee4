"""The kernel in plain Python: for reading, for comparing, and for running without a compiler.

No twin knows a delta rule. A twin keeps its inputs, works out the whole answer after every
transaction from its definition, and passes on how it differs from the one before.
"""

from graphtide.kernel.twin.counts import Distinct, Net
from graphtide.kernel.twin.instances import Instances
from graphtide.kernel.twin.joins import Join, SemiJoin
from graphtide.kernel.twin.quadstore import QuadStore, QuadStream
from graphtide.kernel.twin.values import calculate, compare, count_values

__all__ = [
    "Distinct",
    "Instances",
    "Join",
    "Net",
    "QuadStore",
    "QuadStream",
    "SemiJoin",
    "calculate",
    "compare",
    "count_values",
]
