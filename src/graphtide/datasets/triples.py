"""Triples as columns: what generators produce, and how it gets into files and term dictionaries.

`IndexedTriples` are rows of indexes into a list of terms, `TripleColumns` are columns of N-Triples
texts, and `StreamRate` gives the triples of a stream their times and transactions.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphtide.errors import GraphtideError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.columnar import write_columnar
from graphtide.rdf.formats.read import write_patch
from graphtide.rdf.formats.registry import find_format, open_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import Strings

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]

TICKS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Unit of time -> ticks per second."""

LINE_FORMATS: Final = ("nt", "nq", "ttl")

CHANGE_FORMATS: Final = ("rdfp", "parquet", "arrow", "arrows")
"""Formats of change logs, which record the time of each triple."""

FORMATS: Final = (*LINE_FORMATS, *CHANGE_FORMATS)

GZIP_LEVEL: Final = 3
"""Higher levels take much longer and save little."""


@dataclass(frozen=True, slots=True, eq=False)
class TripleColumns:
    """Subjects, predicates and objects as N-Triples texts; in a stream, also time and transaction.

    >>> one = TripleColumns(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
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

    def changes(self) -> ChangeBatch:
        """The triples as inserts; without times, in one transaction at time 0.

        >>> one = TripleColumns(pa.array(["<ex:a>"]), pa.array(["<ex:p>"]), pa.array(['"1"']))
        >>> one.changes().time.tolist()
        [0]
        """
        count = len(self)
        zeros = np.zeros(count, np.int64)
        time = zeros if self.time is None else self.time
        tx = zeros if self.tx is None else self.tx
        graph: Strings = pa.nulls(count, pa.string())
        return ChangeBatch(time, tx, np.ones(count, np.int8), self.s, self.p, self.o, graph)


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
        return TripleColumns(s, p, o, self.time, self.tx)

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


@dataclass(frozen=True, slots=True)
class StreamRate:
    """Triples per second, in events of `event` triples each.

    An event occurs when its first triple is due, and is one transaction. Events may share a time.

    >>> StreamRate(rate=10_000, event=20).timestamps(0, 3)
    (array([0, 0, 0]), array([0, 0, 0]))
    """

    rate: int = 10_000
    event: int = 1
    start: int = 0
    ticks: int = TICKS["ms"]

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("event size", self.event), ("unit", self.ticks)):
            if value < 1:
                raise GraphtideError(f"invalid {name} {value}", hint="the minimum is 1")

    def timestamps(self, first: int, count: int) -> tuple[Longs, Longs]:
        """The times and transactions of the triples `first` to `first + count - 1`.

        >>> time, tx = StreamRate(rate=2_000, event=2).timestamps(3, 4)
        >>> time.tolist(), tx.tolist()
        ([1, 2, 2, 3], [1, 2, 2, 3])
        """
        events = np.arange(first, first + count, dtype=np.int64) // self.event
        # Whole seconds apart, so that large numbers in small units do not overflow.
        seconds, rest = np.divmod(events * self.event, self.rate)
        return self.start + seconds * self.ticks + rest * self.ticks // self.rate, events

    def stamped(self, parts: Iterable[TripleColumns]) -> Iterator[TripleColumns]:
        """The triples with their times; an event may continue in the next part.

        >>> part = TripleColumns(*3 * [pa.array(["<ex:a>", "<ex:b>"])])
        >>> [each.time.tolist() for each in StreamRate(rate=1_000).stamped([part, part])]
        [[0, 1], [2, 3]]
        """
        first = 0
        for part in parts:
            time, tx = self.timestamps(first, len(part))
            yield replace(part, time=time, tx=tx)
            first += len(part)


def ticks_per_second(unit: str) -> int:
    """How many of a unit of time are a second.

    >>> ticks_per_second("ms")
    1000
    """
    if unit not in TICKS:
        raise GraphtideError(f"unknown unit {unit!r}", hint=f"choose from {', '.join(TICKS)}")
    return TICKS[unit]


def write_triples(
    parts: Iterable[TripleColumns], path: Path, format_name: str, rate: StreamRate | None = None
) -> int:
    """Write triples part by part, in a format that `check_target` returned; how many there were.

    With a rate they are written as a stream, with times.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_triples([TripleColumns(*3 * [pa.array(["<ex:a>"])])], Path(folder, "a.nt"), "nt")
    1
    """
    written = 0

    def counted() -> Iterable[TripleColumns]:
        nonlocal written
        for part in parts if rate is None else rate.stamped(parts):
            written += len(part)
            yield part

    if format_name in LINE_FORMATS:
        with open_compressed(path) as file:
            for part in counted():
                file.write(part.lines())
    else:
        write_batches((part.changes() for part in counted()), path, format_name)
    return written


def write_batches(batches: Iterable[ChangeBatch], path: Path, format_name: str) -> None:
    """Write batches of changes as RDF Patch or as a columnar change log."""
    with open_compressed(path) as file:
        if format_name == "rdfp":
            write_patch(batches, file)
        else:
            write_columnar(batches, file, format_name)  # type: ignore[arg-type]


def check_target(
    path: Path,
    format_name: str | None = None,
    formats: Sequence[str] = FORMATS,
    what: str = "a model",
) -> str:
    """The format to write; raises if it is not one of `formats`, or would be compressed twice.

    >>> from pathlib import Path
    >>> check_target(Path("rail.nt.gz"))
    'nt'
    """
    chosen = find_format(path, format_name).name
    if chosen not in formats:
        raise GraphtideError(
            f"{what} cannot be written as {chosen}", hint=f"choose from {', '.join(formats)}"
        )
    if path.suffix == ".gz" and chosen not in (*LINE_FORMATS, "rdfp"):
        raise GraphtideError(f"{path}: {chosen} compresses its columns itself", hint="omit .gz")
    return chosen


def check_stream_target(path: Path, format_name: str | None, rate: StreamRate | None) -> str:
    """As `check_target`; with a rate, the format must record times.

    >>> from pathlib import Path
    >>> check_stream_target(Path("stream.rdfp.gz"), None, StreamRate())
    'rdfp'
    """
    if rate is None:
        return check_target(path, format_name)
    return check_target(path, format_name, CHANGE_FORMATS, "a stream with times")


def open_compressed(path: Path) -> IO[bytes]:
    """Open a file for writing, compressed if its suffix is `.gz`.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, open_compressed(Path(folder, "a.nt.gz")) as file:
    ...     file.write(b"")
    0
    """
    if path.suffix != ".gz":
        return open_target(path)
    open_target(path).close()  # raises the same errors as for a plain file
    return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=GZIP_LEVEL))
