"""Blocks of a model as texts: whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.bench.train.vocabulary import VERTEX_0, constant_texts, vertex_texts
from graphtide.bench.triples import Triples

if TYPE_CHECKING:
    from graphtide.bench.train.model import Block
    from graphtide.rdf.term_tables import Strings

_CONSTANTS: Strings = constant_texts()


def block_triples(block: Block) -> Triples:
    """The subjects, predicates and objects of a block, as N-Triples texts.

    >>> from graphtide.bench.train.model import Model
    >>> from graphtide.bench.train.vocabulary import name
    >>> block = next(Model(1, "batch").blocks())
    >>> block_triples(block).o[:2].to_pylist() == [name("Semaphore"), name("SIGNAL_GO")]
    True
    """
    codes = block.triples.astype(np.int64)
    first = VERTEX_0 + block.first_vertex
    # A block has texts for the constants, for its own vertices, and for the few older ones in it.
    older = np.unique(codes[(codes >= VERTEX_0) & (codes < first)])
    own = np.arange(block.first_vertex, block.last_vertex + 1)
    texts: Any = pa.concat_arrays([_CONSTANTS, vertex_texts(own), vertex_texts(older - VERTEX_0)])
    places = np.where(codes >= first, codes - block.first_vertex, codes)
    if len(older):
        is_older = (codes >= VERTEX_0) & (codes < first)
        found = np.searchsorted(older, codes[is_older])
        places[is_older] = VERTEX_0 + len(own) + found
    return Triples(*(texts.take(pa.array(places[:, column])) for column in range(3)))


def block_lines(block: Block) -> memoryview:
    r"""The block as lines of N-Triples, which are N-Quads and Turtle as well.

    >>> from graphtide.bench.train.model import Model
    >>> bytes(block_lines(next(Model(1, "batch").blocks()))).count(b" .\n")
    4073
    """
    return block_triples(block).lines()
