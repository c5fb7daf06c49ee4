"""Files that the commands read: queries by their text, data and changes by their format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graphtide.errors import DataError, QueryError
from graphtide.lang.sparql.parse import parse_any_query, parse_standing
from graphtide.rdf.formats.change_log import read_changes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.algebra.queries import Query
    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.rdf.changes import OnError, RejectedRow

QUERY_SUFFIXES = (".rq", ".sparql")


def read_query(path: Path) -> SelectQuery | WindowedQuery:
    """Read and parse the query of a file, over windows or not; errors name the file."""
    try:
        return parse_standing(read_text(path))
    except QueryError as error:
        error.source = str(path)
        raise


def read_any_query(path: Path) -> tuple[Query, str]:
    """Read and parse a query of any form, to be answered once; and its text."""
    text = read_text(path)
    try:
        return parse_any_query(text), text
    except QueryError as error:
        error.source = str(path)
        raise


def read_text(path: Path) -> str:
    """The text of a file with a query or an update; errors name the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise QueryError("there is no such file", source=str(path)) from None
    except IsADirectoryError:
        raise QueryError("is a directory, not a query file", source=str(path)) from None
    except UnicodeDecodeError:
        hint = "a query is a text file in UTF-8"
        raise QueryError("is not a text file", source=str(path), hint=hint) from None
    except OSError as error:
        raise QueryError(f"cannot be read: {error.strerror}", source=str(path)) from None
    if not text.strip():
        update = path.suffix == ".ru"
        example = "INSERT DATA { <ex:a> <ex:p> 1 }" if update else "SELECT * WHERE { ?s ?p ?o }"
        hint = f"write {'an update' if update else 'a query'} into it, such as {example}"
        raise QueryError("is empty", source=str(path), hint=hint)
    return text


def load_data(
    graph: LiveGraph,
    paths: Iterable[Path],
    on_error: OnError = "raise",
    rejected: list[RejectedRow] | None = None,
) -> None:
    """Load files, each as one transaction at the graph's clock."""
    for path in paths:
        refuse_query(path, "--data")
        batches = read_changes(path, on_error=on_error, rejected=rejected)
        graph.apply(batches, time=graph.clock)


def refuse_query(path: Path, option: str) -> None:
    """Tell that a query was given where data is wanted: an easy mistake with repeated options."""
    if path.suffix in QUERY_SUFFIXES:
        raise DataError(
            f"is a query, and {option} takes a file of data",
            source=str(path),
            hint="queries stand alone, without an option before them",
        )
