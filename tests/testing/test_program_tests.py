"""Tests of programs pass when their claims hold, and fail, with a difference, when they do not."""

from pathlib import Path

import pytest

from graphtide.testing.program_tests import run_tests

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
QUERY Seen AS SELECT ?door
  FROM NAMED WINDOW :w ON :knocks [RANGE PT5S STEP PT5S]
  WHERE { WINDOW :w { ?door :by ?who } }
EVENT Knock(?door, ?who) AS { ?door :by ?who ; :at ?place }
EVENT Opened(?door) ON APPEAR OF Open
PATTERN Twice(?door) AS (Knock(?door, _) -> Knock(?door, _)) WITHIN 10s
PATTERN Alone(?door) AS Opened(?door) -> NOT Knock(?door, _) WITHIN 5s
RULE Let ON Twice(?door) THEN INSERT { ?door :is :open } ; CALL creak(?door)
"""
TWICE = "GIVEN AT 2 Knock(:d, :ann) AT 4 Knock(:d, :bob) "


def outcome(text):
    (found,) = run_tests(PROGRAM + text)
    return found


@pytest.mark.parametrize(
    "claims",
    [
        "Let",
        "AT 4 Let(?door = :d)",
        "AT 4 ONLY Let(?door = :d)",
        "1 Let",
        "AT 3 0 Let",
        "AT 3 NOT Let",
        "NOT Let(?door = :e)",
        "AT 4 Twice(:d)",
        "ONLY Twice",
        "Open(:d)",
        "Open(_)",
        "AT 3 NOT Open",
        "AT 4 1 Open",
        "FACT { :d :is ?how }",
        "FACT { :d :is :open }",
        "NOT FACT { :d :is :shut }",
        "AT 3 NOT FACT { :d :is :open }",
        "NOT Alone",
        "Let Twice Open",
    ],
)
def test_claims_that_hold(claims):
    assert outcome(f"TEST t {TWICE} EXPECT {claims}").passed
    assert outcome(f"TEST t {TWICE} EXPECT {claims}").diff() == ""


@pytest.mark.parametrize(
    ("claims", "diff"),
    [
        ("NOT Let", "- NOT Let\n+ AT 4 Let(?door = :d)"),
        ("AT 3 Let", "- AT 3 Let\n+ AT 4 Let(?door = :d)"),
        ("2 Let", "- 2 Let\n+ AT 4 Let(?door = :d)"),
        ("Let(?door = :e)", "- Let(?door = :e)\n+ AT 4 Let(?door = :d)"),
        ("AT 3 ONLY Twice", "- AT 3 ONLY Twice\n+ AT 4 Twice(?door = :d)"),
        ("NOT Open", "- NOT Open\n+ Open(?door = :d)"),
        ("AT 3 Open", "- AT 3 Open\n  nothing came"),
        ("NOT FACT { ?d ?p ?o }", (
            "- NOT FACT { ?d ?p ?o }\n+ FACT { ?d ?p ?o } with ?d = :d, ?p = :is, ?o = :open"
        )),
        ("FACT { :d :is :shut }", "- FACT { :d :is :shut }\n  nothing came"),
    ],
)  # fmt: skip
def test_claims_that_do_not_hold(claims, diff):
    found = outcome(f"TEST t {TWICE} EXPECT {claims}")
    assert not found.passed
    assert found.diff() == diff


def test_only_counts_what_other_claims_describe():
    given = "GIVEN AT 1 INSERT { :a :is :open } INSERT { :b :is :open }"
    assert outcome(f"TEST t {given} EXPECT ONLY Open(:a) Open(:b)").passed
    found = outcome(f"TEST t {given} EXPECT ONLY Open(:a) NOT Open(:c)")
    assert found.diff() == "- ONLY Open(:a)\n+ Open(?door = :b)"


def test_until_lets_time_pass():
    given = "GIVEN AT 1 INSERT { :a :is :open }"
    assert outcome(f"TEST t {given} EXPECT NOT Alone").passed
    assert outcome(f"TEST t {given} UNTIL 5 EXPECT NOT Alone").passed
    assert outcome(f"TEST t {given} UNTIL 6 EXPECT AT 6 ONLY Alone(:a)").passed


def test_changes_joined_by_a_semicolon_are_one_transaction():
    program = """PREFIX : <http://example.org/>
    EVENT Moved(?x) ON CHANGE OF ?x FROM { ?x :in :a } TO { ?x :in :b }
    RULE Tell ON Moved(?x) THEN CALL tell(?x)
    TEST Together GIVEN INSERT { :x :in :a }
      AT 1 DELETE { :x :in :a } ; INSERT { :x :in :b } EXPECT AT 1 Tell
    TEST Apart GIVEN INSERT { :x :in :a }
      AT 1 DELETE { :x :in :a } INSERT { :x :in :b } EXPECT NOT Tell
    """
    assert [each.passed for each in run_tests(program)] == [True, True]


def test_events_that_last():
    program = """PREFIX : <http://example.org/>
    EVENT Work(?x) AS { ?x a :Work }
    EVENT Alarm(?x) AS { ?x a :Alarm }
    RULE Inside WHEN EVENT w = Work(?x) EVENT a = Alarm(?y) DURING w
      THEN INSERT { ?y :began STARTOF(w) ; :ended TIMEOF(w) }
    TEST Within
      GIVEN AT 4 Alarm(:a) AT 6 Alarm(:b) FROM 3 TO 8 Work(:w)
      EXPECT AT 8 Inside(?y = :a) AT 8 Inside(?y = :b) FACT { :a :began 3 ; :ended 8 }
    TEST Too_early
      GIVEN AT 2 Alarm(:a) FROM 3 TO 8 Work(:w)
      EXPECT NOT Inside
    TEST Of_triples
      GIVEN FROM 4 TO 5 PUBLISH { :a a :Alarm } ; Alarm(:b) AT 8 Work(:v) FROM 3 TO 8 Work(:w)
      EXPECT ONLY Inside(?x = :w, ?y = :a) ONLY Inside(?x = :w, ?y = :b)
    """
    assert [each.diff() for each in run_tests(program)] == ["", "", ""]


def test_windows_over_streams():
    given = "GIVEN AT 2 EMIT :knocks { :d :by :ann } AT 6 EMIT :knocks { :e :by :ann } UNTIL 12"
    assert outcome(f"TEST t {given} EXPECT AT 5 ONLY Seen(:d) AT 10 Seen(:e)").passed


def test_values_are_compared_as_terms():
    program = """PREFIX : <http://example.org/>
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    QUERY All AS SELECT ?o { ?s :size ?o }
    TEST t GIVEN INSERT { :a :size 5 } EXPECT All("5"^^xsd:integer) NOT All("5")
    """
    assert [each.passed for each in run_tests(program)] == [True]


def test_an_error_of_the_engine_fails_the_test():
    program = """PREFIX : <http://example.org/>
    EVENT Ping(?n) AS { ?n a :Ping }
    RULE Again ON Ping(?n) THEN EMIT :s { [] a :Ping }
    TEST t GIVEN AT 1 Ping(:a) EXPECT Again
    """
    (found,) = run_tests(program)
    assert not found.passed
    assert "rules fire without end" in found.diff()


def test_tick_ms():
    text = """PREFIX : <http://example.org/>
    EVENT Knock(?door) AS { ?door :is :knocked }
    PATTERN Twice(?door) AS (Knock(?door) -> Knock(?door)) WITHIN 10s
    RULE Let ON Twice(?door) THEN CALL creak(?door)
    TEST t GIVEN AT 2 Knock(:d) AT 4 Knock(:d) EXPECT NOT Twice"""
    assert not run_tests(text)[0].passed
    assert run_tests(text, tick_ms=10_000)[0].passed


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.tide")), ids=lambda path: path.stem)
def test_the_examples(path):
    for found in run_tests(path):
        assert found.passed, found.diff()
