"""The kernel: loops over int32 rows, compiled by Numba, each with a plain-Python twin.

The kernel knows nothing of RDF: terms are ids, a *batch* is an int32 array whose rows are
`[transaction, diff, value, value, …]` in transaction order. One change is a batch of one.
`GRAPHTIDE_NO_JIT=1` selects the twins; tests compare the two.
"""

from __future__ import annotations

from graphtide.jit import JIT

if JIT:
    from graphtide.kernel.calculate import calculate
    from graphtide.kernel.compare import compare
    from graphtide.kernel.count_values import count_values
    from graphtide.kernel.distinct import Distinct
    from graphtide.kernel.instances import Instances
    from graphtide.kernel.join import Join
    from graphtide.kernel.net import Net
    from graphtide.kernel.quadstore import QuadStore
    from graphtide.kernel.quadstream import QuadStream
    from graphtide.kernel.semijoin import SemiJoin
else:
    from graphtide.kernel.twin import (  # type: ignore[assignment]
        Distinct,
        Instances,
        Join,
        Net,
        QuadStore,
        QuadStream,
        SemiJoin,
        calculate,
        compare,
        count_values,
    )

__all__ = [
    "JIT",
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
