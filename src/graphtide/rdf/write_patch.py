"""Write changes as RDF Patch."""

from __future__ import annotations

from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.rdf.changes import ChangeBatch
    from graphtide.rdf.text_column import Strings


def write_patch(batches: Iterable[ChangeBatch], file: IO[bytes]) -> None:
    r"""Write every transaction between `TX` and `TC`, with its time and, where needed, its number.

    Batches that share one (time, tx) at their borders are one transaction.

    >>> import io
    >>> from graphtide.rdf.changes import ChangeBatch
    >>> file = io.BytesIO()
    >>> write_patch([ChangeBatch.of([(17, 0, -1, "<ex:a>", "<ex:p>", '"x"', None)])], file)
    >>> print(file.getvalue().decode())
    TX .
    H time 17 .
    D <ex:a> <ex:p> "x" .
    TC .
    <BLANKLINE>
    """
    time, tx = 0, -1
    opened = False
    for batch in batches:
        rows = statement_lines(batch, pc.if_else(pa.array(batch.diff > 0), "A", "D"))
        borders = [*batch.transaction_starts().tolist(), len(batch)]
        for start, stop in pairwise(borders):
            key = (int(batch.time[start]), int(batch.tx[start]))
            if not opened or key != (time, tx):
                headers = [f"H time {key[0]} ."] if key[0] != time else []
                headers += [f"H tx {key[1]} ."] if key[1] != tx + 1 else []
                lines = [*(["TC ."] if opened else []), "TX .", *headers, ""]
                file.write("\n".join(lines).encode())
                opened, (time, tx) = True, key
            file.write("".join(f"{row}\n" for row in rows[start:stop].to_pylist()).encode())
    if opened:
        file.write(b"TC .\n")


def statement_lines(batch: ChangeBatch, code: Strings | None = None) -> Strings:
    """Return the rows of a batch as statements `s p o [g] .`, after a code when there is one.

    >>> from graphtide.rdf.changes import ChangeBatch
    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', "<ex:g>")])
    >>> statement_lines(batch).to_pylist()
    ['<ex:a> <ex:p> "x" <ex:g> .']
    """
    compute: Any = pc
    graph = compute.if_else(compute.equal(batch.g, ""), None, batch.g)
    parts = [batch.s, batch.p, batch.o, graph, ".", " "]
    parts = parts if code is None else [code, *parts]
    lines: Strings = compute.binary_join_element_wise(*parts, null_handling="skip")
    return lines
