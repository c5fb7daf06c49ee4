"""Read and write changes in every format: change logs, and quads as inserts."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pyarrow as pa

from graphtide.arguments import check_type, each_of
from graphtide.errors import DataError
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch, OnError, RejectedRow, RejectedRows
from graphtide.rdf.formats import registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# ruff: noqa: PLC0415 - a format is imported when it is read or written: a start waits for none.


def read_changes(
    source: registry.Source | pa.Table,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
    on_error: OnError = "raise",
    rejected: list[RejectedRow] | None = None,
    limits: Limits | None = None,
) -> Iterator[ChangeBatch]:
    """Read the changes of a file (by its suffix, or `format`), a file object or a table.

    RDF Patch, update messages, Parquet and Arrow hold changes; files of quads (N-Triples, Turtle…)
    are read as inserts of one transaction at time 0. A transaction may span batches. With
    `on_error="skip"` invalid lines and rows are added to the list `rejected`, and reading goes on;
    with "raise" the first one raises `DataError` with file, line, column and reason. A statement
    or a file over `limits` counts as invalid.

    >>> import io
    >>> file = io.BytesIO(b"<ex:a> <ex:p> <ex:b> .")
    >>> [len(batch) for batch in read_changes(file, format="nt")]
    [1]
    """
    check_type(format, "format", str, None)
    check_type(limits, "limits", Limits, None)
    limits = Limits() if limits is None else limits
    if isinstance(source, pa.Table):
        from graphtide.rdf.formats.columnar import read_table

        yield from read_table(source, RejectedRows("<table>", on_error, rejected, limits))
        return
    found = registry.find_format(source, format)
    if found.rdf is not None:
        from graphtide.rdf.formats.read import read_quads

        yield from read_quads(
            source, format=found.name, on_error=on_error, rejected=rejected, limits=limits
        )
        return
    lines = RejectedRows(registry.source_name(source), on_error, rejected, limits)
    textual = found.family in ("patch", "messages")
    opened = registry.open_text_source if textual else registry.open_source
    file = opened(source, limits)
    try:
        if found.family == "patch":
            from graphtide.rdf.formats.patch import read_patch

            yield from read_patch(file, lines)
        elif found.family == "messages":
            from graphtide.rdf.formats.messages import read_messages

            yield from read_messages(file, lines)
        else:
            from graphtide.rdf.formats.columnar import read_columnar

            yield from read_columnar(file, found.family, lines)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read: {error}", source=lines.source) from None
    finally:
        if file is not source:
            file.close()


def write_changes(
    batches: ChangeBatch | Iterable[ChangeBatch],
    target: registry.Source,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
) -> None:
    """Write changes to a file (format by its suffix, or `format`) or a file object.

    Formats of quads hold inserts only, without times and transactions.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_changes(
    ...     ChangeBatch.of([(3, 0, 1, "<ex:a>", "<ex:p>", "_:b", "")]), file, format="rdfp"
    ... )
    >>> file.getvalue().decode().splitlines()
    ['TX .', 'H time 3 .', 'A <ex:a> <ex:p> _:b .', 'TC .']
    """
    from graphtide.rdf.formats import columnar, messages, read

    check_type(format, "format", str, None)
    parts: Iterable[ChangeBatch] = (batches,)  # type: ignore[assignment] # as is asked now
    if not isinstance(batches, ChangeBatch):
        parts = each_of(batches, "batches", ChangeBatch)
    found = registry.find_format(target, format)
    if found.rdf is not None:
        read.write_quads(parts, target, format=found.name)
        return
    file = registry.open_target(target)
    try:
        match found.family:
            case "patch":
                read.write_patch(parts, file)
            case "messages":
                messages.write_messages(parts, file)
            case "parquet" | "arrow" | "arrows":
                columnar.write_columnar(parts, file, found.family)
    finally:
        if file is not target:
            file.close()
