"""The kernel in plain Python: for reading, for comparing, and for running without a compiler.

No twin knows a delta rule. A twin keeps its inputs, works out the whole answer after every
transaction from its definition, and passes on how it differs from the one before.
"""

from graphtide.kernel.twin.calculate import calculate
from graphtide.kernel.twin.compare import compare
from graphtide.kernel.twin.count_values import count_values
from graphtide.kernel.twin.distinct import Distinct
from graphtide.kernel.twin.instances import Instances
from graphtide.kernel.twin.join import Join
from graphtide.kernel.twin.net import Net
from graphtide.kernel.twin.quadstore import QuadStore
from graphtide.kernel.twin.quadstream import QuadStream
from graphtide.kernel.twin.semijoin import SemiJoin

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
