"""Triples as places in a list of terms, which become texts for a file or ids for an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.bench.triples import Triples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import Strings


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Rows of three places in `terms`; in a stream, also their times and transactions.

    >>> terms = pa.array(["<ex:a>", "<ex:p>", "<ex:b>"])
    >>> len(Coded(terms, np.array([[0, 1, 2], [2, 1, 0]], np.int32)))
    2
    """

    terms: Strings
    rows: Ints
    time: Longs | None = None
    tx: Longs | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self) -> Triples:
        """The triples as columns of texts.

        >>> terms = pa.array(["<ex:a>", "<ex:p>", "<ex:b>"])
        >>> Coded(terms, np.array([[2, 1, 0]], np.int32)).texts().o.to_pylist()
        ['<ex:a>']
        """
        terms: Any = self.terms
        s, p, o = (terms.take(pa.array(np.ascontiguousarray(each))) for each in self.rows.T)
        return Triples(s, p, o, self.time, self.tx)

    def ids(self, dictionary: TermDictionary) -> Ints:
        """The triples as rows of ids; only terms that occur get one.

        >>> from graphtide.rdf.dictionary import TermDictionary
        >>> terms = pa.array(["<ex:unused>", "<ex:a>", "<ex:p>"])
        >>> dictionary = TermDictionary()
        >>> ids = Coded(terms, np.array([[1, 2, 1]], np.int32)).ids(dictionary)
        >>> [dictionary.text(id) for id in ids[0]], "<ex:unused>" in dictionary
        (['<ex:a>', '<ex:p>', '<ex:a>'], False)
        """
        terms: Any = self.terms
        occurs = np.zeros(len(terms), np.bool_)
        occurs[self.rows.ravel()] = True
        used = np.flatnonzero(occurs)
        ids = np.zeros(len(terms), np.int32)
        ids[used] = dictionary.encode_column(terms.take(pa.array(used)))
        rows: Ints = ids[self.rows]
        return rows


def load_blocks(graph: LiveGraph, blocks: Iterable[Coded]) -> int:
    """Insert blocks, each as one transaction; how many triples they had.

    >>> from graphtide.bench.lubm.model import Lubm
    >>> from graphtide.bench.lubm.texts import coded_blocks
    >>> from graphtide.engine.live_graph import LiveGraph
    >>> graph = LiveGraph()
    >>> load_blocks(graph, coded_blocks(Lubm(1))), len(graph)
    (100543, 100543)
    """
    count = 0
    for number, block in enumerate(blocks):
        s, p, o = block.ids(graph.terms).T
        graph.apply_ids(s, p, o, tx=np.full(len(s), number, np.int64))
        count += len(block)
    return count
