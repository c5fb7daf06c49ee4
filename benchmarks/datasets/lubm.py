"""LUBM(n, s): n universities from seed s, with the counts and random numbers of its generator, UBA.

Data is generated block by block, so that only one block is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets import lubm_kernel as codes
from benchmarks.datasets.triples import IndexedTriples, Ints, check_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.term_tables import Strings

NAMESPACE: Final = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
TELEPHONE_NUMBER: Final = '"xxx-xxx-xxxx"'

MAX_UNIVERSITIES: Final = 1_000_000

BLOCK_ROWS: Final = 1 << 16


def ub(local: str) -> str:
    """An IRI of the vocabulary, in N-Triples syntax.

    >>> ub("Course")
    '<http://swat.cse.lehigh.edu/onto/univ-bench.owl#Course>'
    """
    return f"<{NAMESPACE}{local}>"


def thing_names() -> list[str]:
    """The names of all things that a department can have, in the order of the layout.

    >>> from benchmarks.datasets.lubm_kernel import COURSE_0, THINGS
    >>> names = thing_names()
    >>> names[0], names[COURSE_0], len(names) == THINGS
    ('FullProfessor0', 'Course0', True)
    """
    kinds = zip(codes.CLASSES, codes.COUNTS, strict=False)
    return [f"{kind}{number}" for kind, count in kinds for number in range(count)]


def constant_terms() -> list[str]:
    """The texts of all codes below those of departments.

    >>> from benchmarks.datasets.lubm_kernel import COURSE_0, DEPARTMENT_0, NAME_0, UNIVERSITY_0
    >>> terms = constant_terms()
    >>> terms[UNIVERSITY_0 + 7], terms[NAME_0 + COURSE_0], len(terms) == DEPARTMENT_0
    ('<http://www.University7.edu>', '"Course0"', True)
    """
    return [
        *map(ub, codes.PROPERTIES),
        *map(ub, codes.CLASSES),
        RDF_TYPE,
        TELEPHONE_NUMBER,
        *(f"<http://www.University{number}.edu>" for number in range(codes.UNIVERSITIES)),
        *(f'"Department{number}"' for number in range(codes.DEPARTMENTS)),
        *(f'"Research{number}"' for number in range(codes.INTERESTS)),
        *(f'"Publication{number}"' for number in range(codes.PUBLICATIONS)),
        *(f'"{name}"' for name in thing_names()),
    ]


def department_terms(host: str, university: str) -> list[str]:
    """The texts of a department's terms, given its host name and that of its university.

    >>> from benchmarks.datasets.lubm_kernel import OWN
    >>> department_terms("Department3.University7", "University7")[OWN]
    '<http://www.Department3.University7.edu>'
    """
    things = thing_names()
    return [
        *(f"<http://www.{host}.edu/{name}>" for name in things),
        *(
            f"<http://www.{host}.edu/{name}/Publication{number}>"
            for name in things[: codes.FACULTY]
            for number in range(codes.PUBLICATIONS)
        ),
        *(f'"{name}@{host}.edu"' for name in things[: codes.PEOPLE]),
        f"<http://www.{host}.edu>",
        f"<http://www.{university}.edu>",
        f'"{university}"',
    ]


_CONSTANTS: Strings = pa.array(constant_terms(), pa.string())

# Terms of departments differ in one substring only, their host name; the text before and after it
# is the same in all of them.
_HOST: Final = "\0"
_AROUND_HOST: Final = [text.split(_HOST) for text in department_terms(_HOST, _HOST)]
_PREFIXES: Strings = pa.array([prefix for prefix, _ in _AROUND_HOST], pa.string())
_SUFFIXES: Strings = pa.array([suffix for _, suffix in _AROUND_HOST], pa.string())
_OF_UNIVERSITY: Final = 2
"""The last terms of a department are those of its university."""


@dataclass(frozen=True, slots=True, eq=False)
class LubmBlock:
    """Some whole departments: triples of codes, and (university, number) of each department."""

    triples: Ints
    departments: Ints

    def terms(self) -> Strings:
        """The texts of all codes of the block.

        >>> from benchmarks.datasets.lubm_kernel import DEPARTMENT_0
        >>> next(Lubm(1).blocks()).terms()[DEPARTMENT_0].as_py()
        '<http://www.Department0.University0.edu/FullProfessor0>'
        """
        join: Any = pc.binary_join_element_wise
        parts = [_CONSTANTS]
        for number, department in self.departments.tolist():
            university = f"University{number}"
            hosts = [f"Department{department}.{university}"] * (len(_PREFIXES) - _OF_UNIVERSITY)
            hosts += [university] * _OF_UNIVERSITY
            parts.append(join(_PREFIXES, pa.array(hosts, pa.string()), _SUFFIXES, ""))
        return pa.concat_arrays(parts)

    def indexed(self) -> IndexedTriples:
        """The triples with the texts of their terms.

        >>> next(Lubm(1).blocks()).indexed().columns().s[0].as_py()
        '<http://www.University0.edu>'
        """
        return IndexedTriples(self.terms(), self.triples)


@dataclass(frozen=True, slots=True)
class Lubm:
    """A number of universities; each has about 100,000 triples.

    Every triple occurs once. With `repeats`, a university is declared again at each degree from it,
    as UBA does: in a stream with windows, the repeated declarations are the ones in the window.

    >>> sum(len(block.triples) for block in Lubm(1).blocks())
    100543
    """

    universities: int
    seed: int = 0
    repeats: bool = False

    def __post_init__(self) -> None:
        check_range("number of universities", self.universities, MAX_UNIVERSITIES)
        check_range("seed", self.seed, (1 << 31) - 1, 0)

    @property
    def _first_seed(self) -> int:
        # UBA multiplies by Integer.MAX_VALUE + 1, which overflows to the least int of Java.
        return -self.seed * (1 << 31)

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[LubmBlock]:
        """The triples, in blocks of at most `rows` rows (but at least one department)."""
        states, cursors = np.zeros(1, np.int64), np.zeros(codes.CURSORS, np.int64)
        seen = np.zeros(codes.UNIVERSITIES, np.int64)
        memory = np.empty((codes.MEMORIES, codes.MEMORY), np.int64)
        out = np.empty((max(rows, codes.MAX_ROWS), 3), np.int32)
        numbers = np.empty((len(out) // codes.MAX_ROWS * 4, 2), np.int32)
        cursors[codes.REPEATS] = self.repeats
        made = 1
        while made:
            made = codes.make_departments(
                states, self._first_seed, self.universities, cursors, seen, memory, out, numbers
            )
            if made:
                yield LubmBlock(out[: cursors[codes.ROWS]].copy(), numbers[:made].copy())

    def indexed_blocks(self) -> Iterator[IndexedTriples]:
        """All triples with their terms, block by block.

        >>> sum(map(len, Lubm(1).indexed_blocks()))
        100543
        """
        return (block.indexed() for block in self.blocks())
