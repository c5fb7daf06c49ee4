"""The queries on LUBM that paper 5 measures.

Q2, Q4 and Q5 are stars, Q6 is a path, Q1, Q3 and Q7 are triangles with types at their corners.
They are plain SPARQL; a window is put around them by whoever asks them of a stream.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from graphtide.errors import GraphtideError

NAMES: Final = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7")


def query_text(name: str) -> str:
    """The text of a query that comes with the package.

    >>> "ub:FullProfessor" in query_text("Q4")
    True
    """
    if name not in NAMES:
        raise GraphtideError(f"query {name!r} is unknown", hint=f"choose from {', '.join(NAMES)}")
    return files(__package__).joinpath("queries", f"{name}.rq").read_text("utf-8")
