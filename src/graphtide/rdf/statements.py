"""Blocks of lines as columns of terms: what the readers of N-Triples and RDF Patch share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.jit import JIT
from graphtide.rdf import text_kernel
from graphtide.rdf.line_kernel import BLANK, ODD, copy_spans, split_lines
from graphtide.rdf.text_column import Strings, buffer_of, text_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BLOCK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines: the status of each, and the term columns of those that are plain.

    `rows` are the lines that hold a plain statement; `columns` are their s, p, o and g.
    """

    data: bytes
    first_line: int
    ends: NDArray[np.int64]
    status: NDArray[np.int8]
    rows: NDArray[np.int64]
    columns: tuple[Strings, Strings, Strings, Strings]

    def odd_lines(self) -> list[int]:
        """The lines that have to be looked at one by one."""
        return np.flatnonzero(self.status == ODD).tolist()

    def line(self, index: int) -> bytes:
        """Return one line, without its line feed."""
        return self.data[self.ends[index - 1] + 1 if index else 0 : self.ends[index]]


def read_blocks(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    r"""Read a file in pieces of whole lines; with each, the number of its first line.

    >>> import io
    >>> list(read_blocks(io.BytesIO(b"a\r\nb")))
    [(1, b'a\n'), (2, b'b')]
    """
    held, line = b"", 1
    while piece := file.read(BLOCK_BYTES):
        cut = piece.rfind(b"\n") + 1
        if not cut:
            held += piece
            continue
        block = unix_lines(held + piece[:cut])
        held = piece[cut:]
        yield line, block
        line += block.count(b"\n")
    if held:
        yield line, unix_lines(held)


def unix_lines(block: bytes) -> bytes:
    r"""End every line with a line feed; a carriage return stands for nothing else in these formats.

    >>> unix_lines(b"a\r\nb\rc")
    b'a\nb\nc'
    """
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block


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
    """Tell which texts are not plainly canonical terms."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    texts = text_column(column)
    rows = np.arange(len(texts)) if texts.valid is None else np.flatnonzero(texts.valid)
    codes, closes = np.empty(rows.size, np.int8), np.empty(rows.size, np.int64)
    odd = np.zeros(len(texts), np.bool_)
    if text_kernel.check_texts(texts.data, texts.offsets, rows, codes, closes):
        odd[rows[codes == text_kernel.ODD]] = True
    return odd
