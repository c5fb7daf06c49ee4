"""The queries on power measurements that paper 5 measures: one keeps all of them, the other few.

They are plain SPARQL; a window is put around them by whoever asks them of a stream.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from graphtide.errors import GraphtideError

NAMES: Final = ("Q1", "Q2")


def query_text(name: str) -> str:
    """The text of a query that comes with the package.

    >>> "?watt > 10" in query_text("Q2")
    True
    """
    if name not in NAMES:
        raise GraphtideError(f"query {name!r} is unknown", hint=f"choose from {', '.join(NAMES)}")
    return files(__package__).joinpath("queries", f"{name}.rq").read_text("utf-8")
