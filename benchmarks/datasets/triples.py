"""Triples as columns: what generators produce, and how it gets into term dictionaries.

`IndexedTriples` are rows of indexes into a list of terms, `TripleColumns` are columns of N-Triples
texts, and `StreamRate` gives the triples of a stream their times and transactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.harness import BenchmarkError

if TYPE_CHECKING:
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import Strings

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]


def check_range(name: str, value: int, most: int, least: int = 1) -> None:
    """Raise unless a number is in its range."""
    if not least <= value <= most:
        raise BenchmarkError(f"invalid {name}: {value}; it goes from {least} to {most:,}")


@dataclass(frozen=True, slots=True, eq=False)
class TripleColumns:
    """Subjects, predicates and objects as N-Triples texts.

    >>> one = TripleColumns(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
    >>> len(one)
    1
    """

    s: Strings
    p: Strings
    o: Strings

    def __len__(self) -> int:
        return len(self.s)

    def lines(self) -> memoryview:
        r"""Lines of N-Triples, which are also valid N-Quads and Turtle.

        >>> one = TripleColumns(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
        >>> bytes(one.lines())
        b'<ex:a> <ex:p> "1" .\n'
        """
        join: Any = pc.binary_join_element_wise
        lines = join(self.s, self.p, self.o, ".\n", " ")
        # Arrow stores the texts of an array contiguously: they are the text of the file.
        _, offsets, data = lines.buffers()
        ends = np.frombuffer(offsets, np.int32, len(lines) + 1)
        return memoryview(data)[int(ends[0]) : int(ends[-1])]


@dataclass(frozen=True, slots=True, eq=False)
class IndexedTriples:
    """Rows of three indexes into `terms`; in a stream, also their times and transactions.

    >>> terms = pa.array(["<ex:a>", "<ex:p>", "<ex:b>"])
    >>> len(IndexedTriples(terms, np.array([[0, 1, 2], [2, 1, 0]], np.int32)))
    2
    """

    terms: Strings
    rows: Ints
    time: Longs | None = None
    tx: Longs | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> TripleColumns:
        """The triples as columns of texts.

        >>> terms = pa.array(["<ex:a>", "<ex:p>", "<ex:b>"])
        >>> IndexedTriples(terms, np.array([[2, 1, 0]], np.int32)).columns().o.to_pylist()
        ['<ex:a>']
        """
        terms: Any = self.terms
        s, p, o = (terms.take(pa.array(np.ascontiguousarray(each))) for each in self.rows.T)
        return TripleColumns(s, p, o)

    def ids(self, dictionary: TermDictionary) -> Ints:
        """The triples as rows of dictionary ids; only terms that occur are encoded.

        >>> from graphtide.rdf.dictionary import TermDictionary
        >>> terms = pa.array(["<ex:unused>", "<ex:a>", "<ex:p>"])
        >>> dictionary = TermDictionary()
        >>> ids = IndexedTriples(terms, np.array([[1, 2, 1]], np.int32)).ids(dictionary)
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
