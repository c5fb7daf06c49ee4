"""The kernel: loops over int32 rows, compiled by Numba, each with a plain-Python twin.

The kernel knows nothing of RDF: terms are ids, a *batch* is an int32 array whose rows are
`[transaction, diff, value, value, …]` in transaction order. One change is a batch of one.
`GRAPHTIDE_NO_JIT=1` selects the twins; tests compare the two.
"""

from __future__ import annotations

from graphtide.jit import JIT

if JIT:
    from graphtide.kernel.counts import Answer, DistinctKernel
    from graphtide.kernel.instances.operator import Instances
    from graphtide.kernel.joins import JoinKernel, SemiJoinKernel
    from graphtide.kernel.reach.step import ReachKernel
    from graphtide.kernel.search.quadstore import QuadStore
    from graphtide.kernel.search.quadstream import QuadStream
    from graphtide.kernel.values import calculate, compare, count_values
else:
    from graphtide.kernel.twin import (  # type: ignore[assignment]
        Answer,
        DistinctKernel,
        Instances,
        JoinKernel,
        QuadStore,
        QuadStream,
        ReachKernel,
        SemiJoinKernel,
        calculate,
        compare,
        count_values,
    )

__all__ = [
    "JIT",
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
