"""Non-deterministic functions: allowed only where they are passed in."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode

from graphtide.algebra.expressions import Call, Const
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions.evaluate import evaluate
from graphtide.functions.terms import Volatile

KEY = Const(Literal("key"))


def value(name, *args, run):
    return evaluate(Call(name, args), {}, others=run.functions)


def test_what_they_give():
    run = Volatile()
    assert 0 <= float(value("RAND", run=run).value) < 1
    assert value("UUID", run=run).value.startswith("urn:uuid:")
    assert len(value("STRUUID", run=run).value) == 36
    assert value("NOW", run=run) == value("NOW", run=run)
    assert value("NOW", run=run).datatype.value.endswith("#dateTime")
    assert value("UUID", run=run) != value("UUID", run=run)


def test_bnode_remembers_its_labels_within_a_row():
    run = Volatile()
    first = value("BNODE", KEY, run=run)
    assert value("BNODE", KEY, run=run) == first
    assert value("BNODE", run=run) != value("BNODE", run=run)
    run.next_row()
    assert value("BNODE", KEY, run=run) != first
    with pytest.raises(ExpressionError):
        value("BNODE", Const(Literal(1)), run=run)


def test_a_standing_query_has_none_of_them():
    for name in ("RAND", "NOW", "UUID", "STRUUID", "BNODE"):
        with pytest.raises(UnsupportedError):
            evaluate(Call(name, ()), {})


def test_an_unknown_function_is_an_error_of_the_row():
    foreign = Call("<http://e/f>", (KEY,))
    with pytest.raises(ExpressionError):
        evaluate(foreign, {}, others=Volatile().functions)
    fallback = Call("COALESCE", (foreign, Const(NamedNode("a:a"))))
    assert evaluate(fallback, {}, others=Volatile().functions) == NamedNode("a:a")
    with pytest.raises(UnsupportedError):
        evaluate(foreign, {})
