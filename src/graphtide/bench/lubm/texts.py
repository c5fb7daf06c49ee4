"""Blocks of LUBM as texts, whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from graphtide.bench.coded import Coded
from graphtide.bench.lubm.vocabulary import constant_terms, department_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.bench.lubm.model import Block, Lubm
    from graphtide.rdf.term_tables import Strings

_CONSTANTS: Strings = pa.array(constant_terms(), pa.string())

_HOLE: Final = "\0"

# Terms of departments differ in one run of letters only: what stands before and behind it is kept.
_PIECES: Final = [text.split(_HOLE) for text in department_terms(_HOLE, _HOLE)]
_HEADS: Strings = pa.array([head for head, _ in _PIECES], pa.string())
_TAILS: Strings = pa.array([tail for _, tail in _PIECES], pa.string())
_OF_UNIVERSITY: Final = 2
"""The last terms of a department are its university's."""


def block_terms(block: Block) -> Strings:
    """The texts of all codes of a block.

    >>> from graphtide.bench.lubm.model import Lubm
    >>> from graphtide.bench.lubm.vocabulary import DEPARTMENT_0
    >>> block_terms(next(Lubm(1).blocks()))[DEPARTMENT_0].as_py()
    '<http://www.Department0.University0.edu/FullProfessor0>'
    """
    join: Any = pc.binary_join_element_wise
    parts = [_CONSTANTS]
    for university, department in block.departments.tolist():
        of_university = f"University{university}"
        holes = [f"Department{department}.{of_university}"] * (len(_PIECES) - _OF_UNIVERSITY)
        holes += [of_university] * _OF_UNIVERSITY
        parts.append(join(_HEADS, pa.array(holes, pa.string()), _TAILS, ""))
    return pa.concat_arrays(parts)


def coded_block(block: Block) -> Coded:
    """A block as terms and codes.

    >>> from graphtide.bench.lubm.model import Lubm
    >>> coded_block(next(Lubm(1).blocks())).texts().s[0].as_py()
    '<http://www.University0.edu>'
    """
    return Coded(block_terms(block), block.triples)


def coded_blocks(model: Lubm) -> Iterator[Coded]:
    """The whole model, block by block.

    >>> from graphtide.bench.lubm.model import Lubm
    >>> sum(map(len, coded_blocks(Lubm(1))))
    100543
    """
    return map(coded_block, model.blocks())
