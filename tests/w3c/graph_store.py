"""The graph stores of update tests: the quads before and after, and what LOAD finds."""

from __future__ import annotations

from pyoxigraph import NamedNode
from w3c.manifest import path_of, read_quads

from graphtide.errors import GraphtideError
from oracles.transactions import terms_of


def stored(files) -> list:
    """The quads of files, each in the default graph or a named one."""
    quads = []
    for file, graph in files:
        name = None if graph is None else NamedNode(graph)
        quads += [terms_of(quad) for quad in read_quads(file, name)]
    return quads


def load(source: NamedNode) -> list:
    """The triples of a file that a test may load."""
    if not path_of(source.value).is_file():
        raise GraphtideError(f"there is no file behind {source}")
    return [quad[:3] for quad in stored([(source.value, None)])]
