"""Write a model to a file: lines of N-Triples, or a columnar log of inserts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.train.texts import block_triples
from graphtide.bench.write_triples import LINE_FORMATS, check_target, write_triples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from graphtide.bench.train.model import Block, Model
    from graphtide.bench.triples import Triples

FORMATS: Final = (*LINE_FORMATS, "parquet", "arrow", "arrows")


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

    def parts() -> Iterator[Triples]:
        for block in model.blocks():
            yield block_triples(block)
            progress(block)

    return write_triples(parts(), path, check_target(path, format, FORMATS))
