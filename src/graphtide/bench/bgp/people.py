"""A graph of people as columns of ids: who knows whom, works for whom, and three marks on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary

MARKS: Final = {"status": 5, "region": 10, "grade": 10}
"""How many values each mark has; those of a person are drawn evenly."""

KNOWN: Final = 5
"""How many people each one knows."""

FIXED: Final = 5
"""The first people have the marks of their own number: a query without variables asks for them."""

PER_PERSON: Final = KNOWN + 1 + len(MARKS)


def people(triples: int, terms: TermDictionary, seed: int) -> Ints:
    """About so many triples as rows `s, p, o` of ids, in random order, none twice.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> people(90, TermDictionary(), 0).shape
    (90, 3)
    """
    random = np.random.default_rng(seed)
    many = max(triples // PER_PERSON, 10)
    person = _ids(terms, "person", many)
    parts = [_edges(person, _ids(terms, name, None), _ids(terms, name, values), random)
             for name, values in MARKS.items()]  # fmt: skip
    knows, works_for = _ids(terms, "knows", None), _ids(terms, "worksFor", None)
    # The k-th acquaintance is a fixed distance away, so that nobody is known twice.
    steps = random.choice(np.arange(1, many), KNOWN, replace=False).tolist()
    parts += [_rows(person, knows, np.roll(person, -step)) for step in steps]
    parts.append(_edges(person, works_for, person[: max(many // 10, 1)], random))
    rows = np.concatenate(parts)
    random.shuffle(rows)
    return rows


def _edges(person: Ints, predicate: Ints, targets: Ints, random: np.random.Generator) -> Ints:
    chosen = random.integers(len(targets), size=len(person))
    chosen[:FIXED] = np.arange(FIXED) % len(targets)
    return _rows(person, predicate, targets[chosen])


def _rows(s: Ints, p: Ints, o: Ints) -> Ints:
    return np.stack([s, np.broadcast_to(p, s.shape), o], axis=1).astype(np.int32)


def _ids(terms: TermDictionary, name: str, many: int | None) -> Ints:
    """The ids of a name, or of a name with numbers behind it."""
    names = [name] if many is None else [f"{name}{i}" for i in range(many)]
    column = pa.array([f"<http://example.org/{each}>" for each in names], pa.string())
    return np.asarray(terms.encode_column(column), np.int32)
