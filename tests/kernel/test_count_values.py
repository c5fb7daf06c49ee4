"""The counts that plans are made by, compiled, against their twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, often

from graphtide.kernel.twin import count_values as by_definition
from graphtide.kernel.values import count_values

QUADS = st.sets(st.tuples(*[st.integers(1, 6)] * 3, st.integers(0, 2)))


@needs_jit
@often
@given(QUADS)
def test_counts_agree_with_the_twin(quads):
    rows = np.array(sorted(quads), np.int32).reshape(len(quads), 4)
    for mine, other in zip(count_values(rows), by_definition(rows), strict=True):
        assert mine.tolist() == other.tolist()


def test_a_value_counts_once_for_each_of_its_predicates():
    """Predicate 7 has subjects 1, 2 and objects 3, 4; predicate 8 has subject 1, object 3."""
    rows = [(1, 7, 3, 0), (1, 7, 4, 0), (1, 8, 3, 0), (2, 7, 3, 0), (2, 7, 3, 5)]
    quads, subjects, objects = by_definition(np.array(rows, np.int32))
    assert (quads[7], subjects[7], objects[7]) == (4, 2, 2)
    assert (quads[8], subjects[8], objects[8]) == (1, 1, 1)
