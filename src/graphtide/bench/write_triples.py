"""Write triples to a file: lines of N-Triples, RDF Patch, or a columnar log of inserts."""

from __future__ import annotations

import gzip
from typing import IO, TYPE_CHECKING, Final, cast

from graphtide.errors import GraphtideError
from graphtide.rdf.formats.columnar import write_columnar
from graphtide.rdf.formats.patch import write_patch
from graphtide.rdf.formats.registry import find_format, open_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from graphtide.bench.pace import Pace
    from graphtide.bench.triples import Triples

LINE_FORMATS: Final = ("nt", "nq", "ttl")

CHANGE_FORMATS: Final = ("rdfp", "parquet", "arrow", "arrows")
"""Those that tell when a triple comes."""

FORMATS: Final = (*LINE_FORMATS, *CHANGE_FORMATS)

PACKING: Final = 3
"""Of gzip's levels: higher ones take much longer and save little."""


def write_triples(
    parts: Iterable[Triples], path: Path, format_name: str, pace: Pace | None = None
) -> int:
    """Write triples part by part, in a format that `check_target` found; how many there were.

    With a pace they are written as a stream, with times.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> from graphtide.bench.triples import Triples
    >>> with TemporaryDirectory() as folder:
    ...     write_triples([Triples(*3 * [pa.array(["<ex:a>"])])], Path(folder, "a.nt"), "nt")
    1
    """
    written = 0

    def counted() -> Iterable[Triples]:
        nonlocal written
        for part in parts if pace is None else pace.stamped(parts):
            written += len(part)
            yield part

    with open_packed(path) as file:
        if format_name in LINE_FORMATS:
            for part in counted():
                file.write(part.lines())
        elif format_name == "rdfp":
            write_patch((part.changes() for part in counted()), file)
        else:
            batches = (part.changes() for part in counted())
            write_columnar(batches, file, format_name)  # type: ignore[arg-type]
    return written


def check_target(
    path: Path,
    format_name: str | None = None,
    formats: Sequence[str] = FORMATS,
    what: str = "a model",
) -> str:
    """The name of the format to write; raises if it is none of those, or packs twice.

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
        raise GraphtideError(f"{path}: {chosen} packs its columns itself", hint="leave out .gz")
    return chosen


def check_stream_target(path: Path, format_name: str | None, pace: Pace | None) -> str:
    """As `check_target`; with a pace, only formats that tell times will do.

    >>> from pathlib import Path
    >>> from graphtide.bench.pace import Pace
    >>> check_stream_target(Path("stream.rdfp.gz"), None, Pace())
    'rdfp'
    """
    if pace is None:
        return check_target(path, format_name)
    return check_target(path, format_name, CHANGE_FORMATS, "a stream with times")


def open_packed(path: Path) -> IO[bytes]:
    """A file to write to, packed if its name says so.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, open_packed(Path(folder, "a.nt.gz")) as file:
    ...     file.write(b"")
    0
    """
    if path.suffix != ".gz":
        return open_target(path)
    open_target(path).close()  # for its messages
    return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=PACKING))
