"""Triples as columns of texts: the form in which generators hand them to files and engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from graphtide.kernel.batch import Longs
    from graphtide.rdf.term_tables import Strings


@dataclass(frozen=True, slots=True, eq=False)
class Triples:
    """Subjects, predicates and objects as N-Triples texts; in a stream, also time and transaction.

    >>> one = Triples(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
    >>> len(one)
    1
    """

    s: Strings
    p: Strings
    o: Strings
    time: Longs | None = None
    tx: Longs | None = None

    def __len__(self) -> int:
        return len(self.s)

    def lines(self) -> memoryview:
        r"""Lines of N-Triples, which are N-Quads and Turtle as well.

        >>> one = Triples(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
        >>> bytes(one.lines())
        b'<ex:a> <ex:p> "1" .\n'
        """
        join: Any = pc.binary_join_element_wise
        lines = join(self.s, self.p, self.o, ".\n", " ")
        # The texts of an array lie one behind the other: they are the text of the file.
        _, offsets, data = lines.buffers()
        ends = np.frombuffer(offsets, np.int32, len(lines) + 1)
        return memoryview(data)[int(ends[0]) : int(ends[-1])]

    def changes(self) -> ChangeBatch:
        """Inserts; without times, in one transaction at time 0.

        >>> one = Triples(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
        >>> one.changes().time.tolist()
        [0]
        """
        count = len(self)
        zeros = np.zeros(count, np.int64)
        time = zeros if self.time is None else self.time
        tx = zeros if self.tx is None else self.tx
        graph: Strings = pa.nulls(count, pa.string())
        return ChangeBatch(time, tx, np.ones(count, np.int8), self.s, self.p, self.o, graph)
