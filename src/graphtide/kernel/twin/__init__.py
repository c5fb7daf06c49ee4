"""The kernel in plain Python: for reading, for comparing, and for running without a compiler.

No twin knows a delta rule. A twin keeps its inputs, works out the whole answer after every
transaction from its definition, and passes on how it differs from the one before.
"""

from graphtide.kernel.twin.counts import Answer, DistinctKernel
from graphtide.kernel.twin.instances import Instances
from graphtide.kernel.twin.joins import JoinKernel, SemiJoinKernel
from graphtide.kernel.twin.quadstore import QuadStore, QuadStream
from graphtide.kernel.twin.values import calculate, compare, count_values

__all__ = [
    "DistinctKernel",
    "Instances",
    "JoinKernel",
    "Answer",
    "QuadStore",
    "QuadStream",
    "SemiJoinKernel",
    "calculate",
    "compare",
    "count_values",
]
