"""N-Triples and N-Quads, and the blocks of lines that they share with RDF Patch.

A kernel splits plain lines into columns of terms in bulk; every other line (*odd* here) is parsed
by pyoxigraph, or for RDF Patch by `patch_row`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse

from graphtide.errors import TermError
from graphtide.jit import JIT
from graphtide.rdf.changes import ChangeBatch, RejectedRows
from graphtide.rdf.kernels import texts as text_kernel
from graphtide.rdf.kernels.lines import BLANK, ODD, copy_spans, split_lines
from graphtide.rdf.term_tables import Strings, buffer_of, text_column
from graphtide.rdf.terms import MAX_NESTED, from_pyoxigraph, parse_term, to_pyoxigraph, too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.limits import Limits


BLOCK_BYTES = 1 << 22

LONG_LINE: Final = b"\0"
"""Stands for a line that is too long; no format has such a line."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines: the status of each, and the columns of terms of the plain ones.

    `rows` are the lines that hold a plain statement; `columns` are their s, p, o and g.
    """

    data: bytes
    first_line: int
    ends: NDArray[np.int64]
    status: NDArray[np.int8]
    rows: NDArray[np.int64]
    columns: tuple[Strings, Strings, Strings, Strings]

    def odd_lines(self) -> list[int]:
        """The lines that must be parsed one by one."""
        return np.flatnonzero(self.status == ODD).tolist()

    def line(self, index: int) -> bytes:
        """Return one line, without its line feed."""
        return self.data[self.ends[index - 1] + 1 if index else 0 : self.ends[index]]


class LineBuffer:
    r"""Cuts text that comes in pieces into blocks of whole lines, all ended by line feeds.

    A line that is too long is replaced by `LONG_LINE`, so that it is reported in its turn.

    >>> from graphtide.limits import Limits
    >>> lines = LineBuffer(Limits(literal_length=5))
    >>> lines.feed(b"a\r\nb"), lines.feed(b"bbbbb"), lines.feed(b"bbb\nc"), lines.rest()
    (b'a\n', b'', b'\x00\n', b'c')
    """

    def __init__(self, limits: Limits) -> None:
        self._most = limits.literal_length
        self._held: list[bytes] = []
        self._size = 0
        self._skips = False
        self._begins = True

    def feed(self, piece: bytes) -> bytes:
        """Take more text; the lines that it completes."""
        if self._skips:
            end = piece.find(b"\n")
            if end < 0:
                return b""
            piece, self._skips = LONG_LINE + piece[end:], False
        cut = piece.rfind(b"\n") + 1
        if not cut:
            self._held.append(piece)
            self._size += len(piece)
            return b"" if self._most is None or self._size <= self._most else self._overflow()
        block = b"".join((*self._held, piece[:cut]))
        self._hold(piece[cut:])
        return self._checked(unix_lines(block))

    def rest(self) -> bytes:
        """The last line, if it has no end."""
        if self._skips:
            self._skips = False
            return LONG_LINE
        rest = b"".join(self._held)
        self._hold(b"")
        return self._checked(unix_lines(rest))

    def _hold(self, rest: bytes) -> None:
        self._held, self._size = [rest] if rest else [], len(rest)

    def _overflow(self) -> bytes:
        """Too much text without a line feed: there may be other line endings in it."""
        held = b"".join(self._held)
        cut = held.rfind(b"\r", 0, -1) + 1
        self._hold(held[cut:])
        if self._most is not None and self._size > self._most:
            self._hold(b"")
            self._skips = True
        return self._checked(unix_lines(held[:cut]))

    def _checked(self, block: bytes) -> bytes:
        if self._begins and block:
            block, self._begins = block.removeprefix(BOM_UTF8), False
        if self._most is None or len(block) <= self._most:
            return block
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        ends = np.append(ends, len(block))
        starts = np.concatenate([[0], ends[:-1] + 1])
        parts, done = [], 0
        for line in np.flatnonzero(ends - starts > self._most).tolist():
            parts += [block[done : starts[line]], LONG_LINE]
            done = int(ends[line])
        return b"".join((*parts, block[done:])) if parts else block


def unix_lines(block: bytes) -> bytes:
    r"""Replace all line endings by line feeds.

    >>> unix_lines(b"a\r\nb\rc")
    b'a\nb\nc'
    """
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block


def read_blocks(file: IO[bytes], limits: Limits) -> Iterator[tuple[int, bytes]]:
    r"""Read a file in pieces of whole lines; with each, the number of its first line.

    >>> import io
    >>> from graphtide.limits import Limits
    >>> list(read_blocks(io.BytesIO(b"a\r\nb"), Limits()))
    [(1, b'a\n'), (2, b'b')]
    """
    lines, number = LineBuffer(limits), 1
    while piece := file.read(BLOCK_BYTES):
        if block := lines.feed(piece):
            yield number, block
            number += block.count(b"\n")
    if rest := lines.rest():
        yield number, rest


def scan_block(block: bytes, first_line: int, *, positions: int, patch: bool = False) -> LineBlock:
    """Split a block of lines into columns.

    >>> block = scan_block(b"<ex:a> <ex:p> <ex:b> .", 1, positions=3)
    >>> block.columns[2].to_pylist()
    ['<ex:b>']
    """
    count = block.count(b"\n") + 1
    data = np.frombuffer(block, np.uint8)
    ends, status = np.empty(count, np.int64), np.empty(count, np.int8)
    spans = np.zeros((count, 8), np.int64)
    if JIT and _is_utf8(block):
        lines = split_lines(data, positions, int(patch), ends, status, spans)
    else:
        lines = _plain_lines(block, ends, status)
    ends, status, spans = ends[:lines], status[:lines], spans[:lines]
    rows = np.flatnonzero(status > BLANK)
    columns = [_span_column(data, spans[rows], position) for position in range(4)]
    odd = np.zeros(rows.size, np.bool_)
    for column in columns:
        odd |= _odd_rows(column)
    if odd.any():
        status[rows[odd]] = ODD
        rows = rows[~odd]
        columns = [column.filter(pa.array(~odd)) for column in columns]
    s, p, o, g = columns
    return LineBlock(block, first_line, ends, status, rows, (s, p, o, g))


def _plain_lines(block: bytes, ends: NDArray[np.int64], status: NDArray[np.int8]) -> int:
    """The twin of `split_lines`: every line that is not blank is odd."""
    lines = block.removesuffix(b"\n").split(b"\n") if block else []
    place = -1
    for index, line in enumerate(lines):
        place += len(line) + 1
        ends[index] = place
        text = line.strip(b" \t")
        status[index] = BLANK if not text or text.startswith(b"#") else ODD
    return len(lines)


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _span_column(data: NDArray[np.uint8], spans: NDArray[np.int64], position: int) -> Strings:
    starts = np.ascontiguousarray(spans[:, 2 * position])
    ends = np.ascontiguousarray(spans[:, 2 * position + 1])
    if not ends.any():  # no row at all, or no graph
        return pa.nulls(starts.size, pa.string())
    offsets = np.empty(starts.size + 1, np.int32)
    out = np.empty(int((ends - starts).sum()), np.uint8)
    copy_spans(data, starts, ends, offsets, out)
    valid = buffer_of(np.packbits(ends != 0, bitorder="little")) if position == 3 else None
    return pa.StringArray.from_buffers(starts.size, buffer_of(offsets), buffer_of(out), valid)


def _odd_rows(column: Strings) -> NDArray[np.bool_]:
    """Return a mask of the texts that the kernel does not recognise as canonical terms."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    texts = text_column(column)
    rows = np.arange(len(texts)) if texts.valid is None else np.flatnonzero(texts.valid)
    codes, closes = np.empty(rows.size, np.int8), np.empty(rows.size, np.int64)
    odd = np.zeros(len(texts), np.bool_)
    if text_kernel.check_texts(texts.data, texts.offsets, rows, codes, closes):
        odd[rows[codes == text_kernel.ODD]] = True
    return odd


NOT_UTF8: Final = "the text is not UTF-8"


def line_text(raw: bytes) -> tuple[str, int]:
    r"""Return the text of a line, and the first column that is not UTF-8, or 0.

    >>> line_text(b"a\xc3\xa4"), line_text(b"a\xff")[1]
    (('aä', 0), 2)
    """
    try:
        return raw.decode(), 0
    except UnicodeDecodeError as error:
        return raw.decode(errors="replace"), len(raw[: error.start].decode()) + 1


QuadText: TypeAlias = tuple[str, str, str, str | None]
"""The texts of s, p, o and g; None is the default graph."""


def quad_texts(quad: Quad) -> QuadText:
    """Return the texts of a quad's terms.

    >>> quad_texts(Quad(NamedNode("ex:a"), NamedNode("ex:p"), NamedNode("ex:b")))
    ('<ex:a>', '<ex:p>', '<ex:b>', None)
    """
    graph = None if isinstance(quad.graph_name, DefaultGraph) else str(quad.graph_name)
    object_ = str(from_pyoxigraph(quad.object))
    return str(quad.subject), str(quad.predicate), object_, graph


def inserts(columns: Sequence[Strings]) -> ChangeBatch:
    """Return columns s, p, o, g as inserts of transaction (0, 0).

    >>> import pyarrow as pa
    >>> columns = [pa.array([text], pa.string()) for text in ("<ex:a>", "<ex:p>", '"x"', None)]
    >>> inserts(columns).diff.tolist()
    [1]
    """
    count = len(columns[0])
    zeros = np.zeros(count, np.int64)
    s, p, o, g = columns
    return ChangeBatch(zeros, zeros, np.ones(count, np.int8), s, p, o, g)


def batch_quads(batch: ChangeBatch) -> Iterator[Quad]:
    """Return the quads of a batch, whatever their diffs.

    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', None)])
    >>> str(next(batch_quads(batch)))
    '<ex:a> <ex:p> "x"'
    """
    columns: list[list[Any]] = [c.to_pylist() for c in (batch.s, batch.p, batch.o, batch.g)]
    for s, p, o, g in zip(*columns, strict=True):
        subject, predicate, graph = parse_term(s), parse_term(p), parse_term(g) if g else None
        if not (
            isinstance(subject, NamedNode | BlankNode)
            and isinstance(predicate, NamedNode)
            and isinstance(graph, NamedNode | BlankNode | None)
        ):
            raise TermError(f"not a quad: {s} {p} {o} {g or ''}")
        yield Quad(subject, predicate, to_pyoxigraph(parse_term(o)), graph)


def read_lines(file: IO[bytes], rdf: RdfFormat, rejected: RejectedRows) -> Iterator[ChangeBatch]:
    """Read statements line by line, as inserts of one transaction at time 0.

    >>> import io
    >>> from graphtide.rdf.changes import RejectedRows
    >>> data = io.BytesIO(b"<ex:a> <ex:p> 'x' .")
    >>> list(read_lines(data, RdfFormat.N_TRIPLES, RejectedRows("a.nt", "skip", [])))
    []
    """
    positions = 4 if rdf == RdfFormat.N_QUADS else 3
    for first_line, data in read_blocks(file, rejected.limits):
        block = scan_block(data, first_line, positions=positions)
        columns = _merge(block, _odd_statements(block, rdf, rejected))
        if len(columns[0]):
            yield inserts(columns)


def _odd_statements(
    block: LineBlock, rdf: RdfFormat, rejected: RejectedRows
) -> list[tuple[int, QuadText]]:
    """Parse the odd lines of a block; each statement comes with its line."""
    found = []
    for index in block.odd_lines():
        line = block.line(index)
        if line == LONG_LINE:
            rejected.report_long(block.first_line + index)
            continue
        if line.count(b"<<(") > MAX_NESTED and _LITERAL.sub(b"", line).count(b"<<(") > MAX_NESTED:
            text = line.decode(errors="replace")
            rejected.report(block.first_line + index, 1, text, too_deep())
            continue
        try:
            found += [(index, quad_texts(quad)) for quad in _parse(line, rdf)]
        except SyntaxError as error:
            _, column, reason = position_and_reason(error)
            text = line.decode(errors="replace")
            rejected.report(block.first_line + index, column, text, reason)
        except TermError as error:
            text = line.decode(errors="replace")
            rejected.report(block.first_line + index, 1, text, error.message)
    return found


_LITERAL = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
_POSITION = re.compile(
    r"^Parser error (?:at|between) line .*?(?:columns? [0-9]+(?: and .*?[0-9]+)?): "
)


def position_and_reason(error: SyntaxError) -> tuple[int, int, str]:
    """Return line, column and reason of a syntax error of `pyoxigraph.parse`.

    >>> position_and_reason(SyntaxError("bad", (None, 3, 7, None, 3, 9)))
    (3, 7, 'bad')
    """
    reason = _POSITION.sub("", error.msg)
    return error.lineno or 1, error.offset or 1, reason


def _parse(line: bytes, rdf: RdfFormat) -> list[Quad]:
    return list(parse(line, format=rdf))


def _merge(block: LineBlock, odd: list[tuple[int, QuadText]]) -> list[Strings]:
    """Merge the statements of odd lines with the plain ones, in the order of their lines."""
    if not odd:
        return list(block.columns)
    lines = np.concatenate([block.rows, [line for line, _ in odd]])
    order: Any = pa.array(np.argsort(lines, kind="stable"))
    extra = zip(*(quad for _, quad in odd), strict=True)
    return [
        pc.take(pa.concat_arrays([plain, pa.array(texts, pa.string())]), order)
        for plain, texts in zip(block.columns, extra, strict=True)
    ]
