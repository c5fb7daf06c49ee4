"""Columns of canonical texts: as a dictionary of terms reads them, and routed alike."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.term_tables import wrong_rows
from graphtide.spark.partition.columns import TermColumn, canonical_texts, read_column
from graphtide.spark.partition.hashing import TermHashes, text_hashes

TEXTS = [
    "<ex:a>", "<ex:b>", "_:b", '"x"', '"x"@EN', '"caf\\u00e9"', '"café"', '"7"^^<ex:t>', "", None,
    '"a"^^<http://www.w3.org/2001/XMLSchema#string>', "<a b>", "no term", '"open', "<ex:\\u0061>",
]  # fmt: skip


def columns(number):
    """A column of random texts: with few different ones, or with many."""
    rng = Random(number)
    many = [f"<ex:{n}>" for n in range(200)] if number % 2 else []
    return pa.array([rng.choice(TEXTS + many) for _ in range(300)], pa.string())


@pytest.mark.parametrize("name", list("spog"))
@pytest.mark.parametrize("number", range(6))
def test_rows_are_read_as_a_dictionary_reads_them(name, number):
    column, terms = columns(number), TermDictionary()
    read, bad = read_column(name, column)
    ids, wrong = terms.intern_rows(column, skip_empty=name == "g")
    expected = {row for row, _ in wrong} | set(np.flatnonzero(wrong_rows(column, name)).tolist())
    assert set(bad) == expected
    assert {bad[row] for row, reason in wrong} == {
        f"column {name}: {reason}" for _, reason in wrong
    }
    good = np.array([row for row in range(len(column)) if row not in expected])
    texts = terms.decode_column(ids[good])
    assert read.coded(good).cast(pa.string()).to_pylist() == texts.to_pylist()
    valid = read.valid[good]
    assert (valid == (ids[good] != 0)).all()
    assert (read.hashes[good][valid] == TermHashes(terms).of(ids[good])[valid]).all()
    for text in ("<ex:a>", '"x"@en', '"café"'):
        assert (read.equals(text)[good] == (ids[good] == (terms.lookup(text) or -1))).all()


def test_two_columns_are_compared_by_their_texts():
    read = [read_column("g", pa.array(texts))[0] for texts in (["<ex:a>", "<ex:b>", None],) * 2]
    other = read_column("g", pa.array(["<ex:a>", "<ex:a>", None]))[0]
    assert read[0].same(read[1]).tolist() == [True, True, False]
    assert read[0].same(other).tolist() == [True, False, False]


def test_a_column_has_only_the_texts_of_its_rows():
    column, _ = read_column("o", pa.array(["<ex:a>", "<ex:b>", "<ex:a>", "<ex:c>"] * 5))
    assert column.coded(np.array([2, 3])).dictionary.to_pylist() == ["<ex:a>", "<ex:c>"]


def test_columns_of_several_tasks_can_be_put_together():
    read = [read_column("g", pa.array(t))[0] for t in (["<ex:a>", None], ["<ex:b>", "<ex:a>"])]
    whole = pa.chunked_array([column.coded(np.arange(2)) for column in read])
    taken = whole.combine_chunks().take([0, 1, 2, 3]).cast(pa.string())
    assert taken.to_pylist() == ["<ex:a>", None, "<ex:b>", "<ex:a>"]


def test_hashes_are_those_of_the_texts_also_of_none():
    assert TermColumn.nulls(3).hashes.tolist() == [0, 0, 0]
    texts, wrong = canonical_texts(pa.array(['"a"', None]))
    assert wrong == {}
    assert text_hashes(texts)[0] == read_column("o", pa.array(['"a"']))[0].hashes[0]
