"""The kernel in plain Python: a definition to read, an oracle for tests, a fallback without Numba.

A twin uses no delta rule. It keeps its inputs, recomputes the whole answer after every transaction
from its definition, and returns the difference to the one before.
"""

from graphtide.kernel.twin.counts import Answer, DistinctKernel
from graphtide.kernel.twin.instances import Instances
from graphtide.kernel.twin.joins import JoinKernel, SemiJoinKernel
from graphtide.kernel.twin.quadstore import QuadStore, QuadStream
from graphtide.kernel.twin.reach import ReachKernel
from graphtide.kernel.twin.values import calculate, compare, count_values

__all__ = [
    "Answer",
    "DistinctKernel",
    "Instances",
    "JoinKernel",
    "QuadStore",
    "QuadStream",
    "ReachKernel",
    "SemiJoinKernel",
    "calculate",
    "compare",
    "count_values",
]
