"""Texts of integers and means that are written by compiled loops, against `functions`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphtide.functions.arithmetic import op_divide
from graphtide.functions.values import integer_term
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.kinds import EXACT, XSD
from graphtide.rdf.term_tables import PlainTermTable
from graphtide.rdf.terms import canonical_of, typed_value

EDGES = [(0, 0), (0, 3), (-1, 10**17), (-1, 10**18), (1 << 61, 0), (-(1 << 61), 3), (10**15, 0),
         (10**15 - 1, 0), (10**15, 1), (10**16, 4), (5, 1), (-7, 2), (2, 3), (1, 8)]  # fmt: skip


def pairs(seed):
    chance = random.Random(seed)
    found = list(EDGES)
    for _ in range(3000):
        total = chance.randint(-(10**18), 10**18) // 10 ** chance.randrange(18)
        found.append((total, chance.choice((0, 0, 1, 7, 1000, chance.randint(1, 10**12)))))
    chance.shuffle(found)
    return found


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_numbers_have_the_ids_of_their_literals(chunk):
    """Also of those that the dictionary has, and when ids are used again."""
    terms, every = TermDictionary(), pairs(chunk)
    for _ in range(2):
        for at in range(0, len(every), chunk):
            some = every[at : at + chunk]
            ids = terms.intern_numbers(np.array(some, np.int64))
            for (total, count), found in zip(some, ids.tolist(), strict=True):
                whole = integer_term(total)
                text = canonical_of(op_divide(whole, integer_term(count)) if count else whole)
                assert terms.text(found) == text
                assert terms.lookup(text) == found
                assert (terms.kinds[found], terms.numbers[found]) == typed_value(text)
            if at % 500 == 0:
                terms.reclaim()  # nobody holds them


def classes_of(table, ids):
    """The classes of some ids, which are the second column of the rows."""
    classes = np.zeros(int(ids.max()) + 1, np.int32)
    table.classify(np.column_stack((np.zeros_like(ids), ids)), 1, classes)
    return classes[ids].tolist()


def test_the_plain_table_agrees():
    terms, plain, every = TermDictionary(), PlainTermTable(), pairs(7)
    ids = terms.intern_numbers(np.array(every, np.int64))
    others = plain.add_numbers(np.array(every, np.int64))
    texts = terms.decode_column(ids).to_pylist()
    assert texts == plain.texts(others).to_pylist()
    classes = classes_of(terms.table(), ids)
    assert classes == classes_of(plain, others)
    for text, found in zip(texts, classes, strict=True):
        kind, number = typed_value(text)
        whole = kind == EXACT and text.endswith(f'"^^<{XSD}integer>')
        exact = whole and int(text[1 : text.rindex('"')]) == number
        assert (found == 2) <= exact  # none that is not exact, and all small ones
        assert found == 2 or not (whole and abs(number) < 2**53)


def test_classes_of_other_terms():
    terms = TermDictionary()
    texts = ["<ex:a>", '"a"', "_:b", f'"1"^^<{XSD}int>', f'"1.0"^^<{XSD}decimal>',
             f'"1"^^<{XSD}double>', f'"x"^^<{XSD}integer>', f'"007"^^<{XSD}integer>']  # fmt: skip
    ids = terms.encode_column(texts)
    assert classes_of(terms.table(), ids) == [1, 1, 1, 3, 3, 3, 3, 2]
