"""Write a model to a file: lines of N-Triples, or a columnar log of inserts."""

from __future__ import annotations

import gzip
from typing import IO, TYPE_CHECKING, Final, cast

from graphtide.bench.train.texts import block_changes, block_lines
from graphtide.errors import GraphtideError
from graphtide.rdf.columnar import write_columnar
from graphtide.rdf.formats import find_format, open_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from graphtide.bench.train.model import Block, Model

LINE_FORMATS: Final = ("nt", "nq", "ttl")

FORMATS: Final = (*LINE_FORMATS, "parquet", "arrow", "arrows")

PACKING: Final = 3
"""Of gzip's levels: higher ones take much longer and save little."""


def write_model(
    model: Model,
    path: Path,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
    progress: Callable[[Block], None] = lambda _: None,
) -> int:
    """Write a model, in the format that the path's suffix or `format` tells; its triples.

    `progress` hears of every block that is written. Lines may be packed (`.gz`).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from graphtide.bench.train.model import Model
    >>> with TemporaryDirectory() as folder:
    ...     write_model(Model(1, "repair"), Path(folder, "rail.nt.gz"))
    4054
    """
    chosen = check_target(path, format)
    written = 0

    def blocks() -> Iterator[Block]:
        nonlocal written
        for block in model.blocks():
            yield block
            written += len(block.triples)
            progress(block)

    with _open(path) as file:
        if chosen in LINE_FORMATS:
            for block in blocks():
                file.write(block_lines(block))
        else:
            family = {"parquet": "parquet", "arrow": "arrow"}.get(chosen, "arrows")
            write_columnar(map(block_changes, blocks()), file, family)  # type: ignore[arg-type]
    return written


def check_target(path: Path, format: str | None = None) -> str:  # noqa: A002 - as above
    """The name of the format to write; raises if there is none, or the path cannot be written.

    >>> from pathlib import Path
    >>> check_target(Path("rail.nt.gz"))
    'nt'
    """
    chosen = find_format(path, format).name
    if chosen not in FORMATS:
        raise GraphtideError(
            f"a model cannot be written as {chosen}", hint=f"choose from {', '.join(FORMATS)}"
        )
    if path.suffix == ".gz" and chosen not in LINE_FORMATS:
        raise GraphtideError(f"{path}: {chosen} packs its columns itself", hint="leave out .gz")
    return chosen


def _open(path: Path) -> IO[bytes]:
    if path.suffix != ".gz":
        return open_target(path)
    open_target(path).close()  # for its messages
    return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=PACKING))
