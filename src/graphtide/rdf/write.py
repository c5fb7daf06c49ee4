"""Write quads in every RDF format."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING

from pyoxigraph import Quad, RdfFormat, serialize

from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats import Format, Source, find_format, open_target, source_name
from graphtide.rdf.quads import batch_quads
from graphtide.rdf.write_patch import statement_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_XML_NAME = re.compile(r"[^\W\d][\w.-]*\Z")


def write_quads(
    batches: ChangeBatch | Iterable[ChangeBatch],
    target: Source,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
) -> None:
    r"""Write inserts as quads, in the format that the target's suffix or `format` tells.

    >>> import io
    >>> file = io.BytesIO()
    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', None)])
    >>> write_quads(batch, file, format="nt")
    >>> file.getvalue()
    b'<ex:a> <ex:p> "x" .\n'
    """
    found = find_format(target, format)
    if found.rdf is None:
        raise DataError(f"{found.name} holds changes: use write_changes")
    parts = [batches] if isinstance(batches, ChangeBatch) else batches
    checked = (_checked(part, found, target) for part in parts)
    file = open_target(target)
    try:
        if found.family == "lines":
            _write_lines(checked, file)
        else:
            quads = (quad for part in checked for quad in batch_quads(part))
            _write_document(quads, file, found.rdf)
    finally:
        if file is not target:
            file.close()


def _checked(batch: ChangeBatch, found: Format, target: Source) -> ChangeBatch:
    if (batch.diff < 0).any():
        raise DataError(
            "deletes cannot be written as quads",
            source=source_name(target),
            hint="write a change log: .rdfp, .parquet or .arrow",
        )
    if not found.has_graphs and any(batch.g.unique().to_pylist()):
        raise DataError(
            f"{found.name} cannot hold named graphs",
            source=source_name(target),
            hint="write .nq, .trig or .jsonld",
        )
    return batch


def _write_lines(batches: Iterable[ChangeBatch], file: IO[bytes]) -> None:
    for batch in batches:
        file.write("".join(f"{line}\n" for line in statement_lines(batch).to_pylist()).encode())


def _write_document(quads: Iterator[Quad], file: IO[bytes], rdf: RdfFormat) -> None:
    if rdf == RdfFormat.RDF_XML:
        quads = map(_xml_quad, quads)
    items = quads if rdf.supports_datasets else (quad.triple for quad in quads)
    serialize(items, file, format=rdf)


def _xml_quad(quad: Quad) -> Quad:
    if not _XML_NAME.search(quad.predicate.value):
        raise DataError(
            f"RDF/XML cannot write the predicate {quad.predicate}: no XML name at its end"
        )
    return quad
