"""The fingerprint of a program does not depend on what classes are called."""

from __future__ import annotations

from dataclasses import is_dataclass

import pytest

from graphtide.algebra import expressions, nodes, paths
from graphtide.lang.fingerprint import NODE_NAMES, fingerprint_text
from graphtide.lang.tide import ast as declarations
from graphtide.lang.tide import ast as event_algebra
from graphtide.lang.tide.ast import EventDeclaration, RuleDeclaration
from graphtide.lang.tide.program import Program
from graphtide.spark.partition.program import program_spec

PROGRAM = """
QUERY Hot AS SELECT ?x { ?x <ex:is> <ex:hot> }
EVENT A(?x) AS { ?x <ex:a> ?y } CHECK (?x != <ex:b>)
EVENT Up(?x) ON APPEAR OF Hot(?x)
PATTERN P(?x) AS (A(?x) -> Up(?x)) WITHIN 5s
RULE R WHEN EVENT a = A(?x) EVENT u = Up(?x) AFTER[0,5] a THEN INSERT { ?x <ex:q> 1 } ; CALL f(?x)
"""

A = (
    "event('A',(var('x')),graph-event((triple(var('x'),<ex:a>,var('y'),default-graph()))),"
    "call('!=',(var('x'),const(<ex:b>))))"
)
UP = "event('Up',(var('x')),query-change('Hot',(var('x')),True),None)"
P = (
    "pattern('P',(var('x')),within(follows((atom('A',(var('x'))),atom('Up',(var('x'))))),"
    "duration(5000,True)),'CHRONICLE',())"
)
R = (
    f"rule('R',(event-use('a',{A},(var('x')),False),event-use('u',{UP},(var('x')),False)),None,"
    "(time-test('AFTER','u','a',(duration(0,False),duration(5,False)))),"
    "(insert((triple(var('x'),<ex:q>,"
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>,default-graph()))),'
    "call-function('f',(var('x')))),0)"
)
WRITTEN_BY_HAND = f"(({A},{UP}),({P}),({R}),1000)"


def fingerprint(text=PROGRAM):
    return program_spec(Program.parse(text), 2, 1000).fingerprint


def test_the_text_is_the_one_that_old_checkpoints_have():
    assert fingerprint() == WRITTEN_BY_HAND


@pytest.mark.parametrize("renamed", [EventDeclaration, RuleDeclaration, expressions.Var])
def test_renaming_a_class_is_harmless(renamed):
    name = renamed.__name__
    renamed.__name__ = renamed.__qualname__ = "Renamed"
    try:
        assert fingerprint() == WRITTEN_BY_HAND
    finally:
        renamed.__name__ = renamed.__qualname__ = name


def test_lines_do_not_count_and_all_else_does():
    assert fingerprint("\n\n" + PROGRAM) == WRITTEN_BY_HAND
    for old, new in [("5s", "6s"), ("<ex:q>", "<ex:r>"), ("?x !=", "?x ="), ("AFTER", "BEFORE")]:
        assert fingerprint(PROGRAM.replace(old, new)) != WRITTEN_BY_HAND


def test_every_kind_of_node_has_a_name_of_its_own():
    assert len(set(NODE_NAMES.values())) == len(NODE_NAMES)
    outside = {"NamedQuery", "GoalDeclaration", "FixDeclaration"}  # no part of events and rules
    outside |= {"GivenChange", "GivenEvent", "TestStep", "Claim", "TestDeclaration"}
    for module in (expressions, nodes, paths, declarations, event_algebra):
        for name, found in vars(module).items():
            if isinstance(found, type) and is_dataclass(found) and name not in outside:
                assert found in NODE_NAMES, name


def test_what_has_no_name_is_an_error():
    with pytest.raises(TypeError):
        fingerprint_text(object())
