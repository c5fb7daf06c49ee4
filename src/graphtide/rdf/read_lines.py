"""Read N-Triples and N-Quads: plain lines in bulk, every other line through pyoxigraph."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import Quad, RdfFormat, parse

from graphtide.errors import TermError
from graphtide.rdf.quads import QuadText, inserts, quad_texts
from graphtide.rdf.statements import LineBlock, read_blocks, scan_block
from graphtide.rdf.syntax_error import place_and_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.broken import BrokenLines
    from graphtide.rdf.changes import ChangeBatch
    from graphtide.rdf.text_column import Strings


def read_lines(file: IO[bytes], rdf: RdfFormat, broken: BrokenLines) -> Iterator[ChangeBatch]:
    """Read statements line by line, as inserts of one transaction at time 0.

    >>> import io
    >>> from graphtide.rdf.broken import BrokenLines
    >>> data = io.BytesIO(b"<ex:a> <ex:p> 'x' .")
    >>> list(read_lines(data, RdfFormat.N_TRIPLES, BrokenLines("a.nt", "collect", [])))
    []
    """
    positions = 4 if rdf == RdfFormat.N_QUADS else 3
    for first_line, data in read_blocks(file):
        block = scan_block(data, first_line, positions=positions)
        columns = _merge(block, _odd_statements(block, rdf, broken))
        if len(columns[0]):
            yield inserts(columns)


def _odd_statements(
    block: LineBlock, rdf: RdfFormat, broken: BrokenLines
) -> list[tuple[int, QuadText]]:
    """Read the odd lines of a block one by one; with each statement the line it is from."""
    found = []
    for index in block.odd_lines():
        line = block.line(index)
        try:
            found += [(index, quad_texts(quad)) for quad in _parse(line, rdf)]
        except SyntaxError as error:
            _, column, reason = place_and_reason(error)
            text = line.decode(errors="replace")
            broken.report(block.first_line + index, column, text, reason)
        except TermError as error:
            text = line.decode(errors="replace")
            broken.report(block.first_line + index, 1, text, error.message)
    return found


def _parse(line: bytes, rdf: RdfFormat) -> list[Quad]:
    return list(parse(line, format=rdf))


def _merge(block: LineBlock, odd: list[tuple[int, QuadText]]) -> list[Strings]:
    """Put the statements of odd lines where they stood among the plain ones."""
    if not odd:
        return list(block.columns)
    lines = np.concatenate([block.rows, [line for line, _ in odd]])
    order: Any = pa.array(np.argsort(lines, kind="stable"))
    extra = zip(*(quad for _, quad in odd), strict=True)
    return [
        pc.take(pa.concat_arrays([plain, pa.array(texts, pa.string())]), order)
        for plain, texts in zip(block.columns, extra, strict=True)
    ]
