"""GOAL and FIX in programs: what they mean, their mistakes, their layout, the builder."""

import pytest

from graphtide.algebra.expressions import Var
from graphtide.errors import ProgramError
from graphtide.lang.tide.ast import Delete, Insert
from graphtide.lang.tide.builder import ProgramBuilder
from graphtide.lang.tide.format import format_program
from graphtide.lang.tide.program import Program
from graphtide.repair.explain import explain_fixes

HEAD = """PREFIX : <http://example.org/>
QUERY Hot AS SELECT ?room ?t { ?room :temperature ?t FILTER (?t > 30) }
QUERY Any AS ASK { ?room :temperature ?t }
QUERY Late AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 1] { WINDOW :w { ?a :p ?b } }
"""


def test_goals():
    program = Program.parse(
        HEAD + "GOAL a NONE OF Hot GOAL b AT MOST 3 OF Hot goal c minimize Hot "
        "GOAL d MINIMIZE Hot WEIGHT 2.5"
    )
    assert [(g.name, g.query, g.most, g.weight) for g in program.goals] == [
        ("a", "Hot", 0, 1),
        ("b", "Hot", 3, 1),
        ("c", "Hot", None, 1),
        ("d", "Hot", None, 2.5),
    ]
    assert [g.line for g in program.goals] == [5, 5, 5, 5]


def test_fixes():
    program = Program.parse(
        HEAD + "FIX a ON Hot THEN DELETE { ?room :temperature ?t } ; INSERT { ?room :is :cool }\n"
        "FIX b COST 0.5 ON Hot(?room) THEN DELETE { GRAPH :g { ?room :p 1 } }"
    )
    first, second = program.fixes
    assert (first.query, first.variables, first.cost) == ("Hot", (Var("room"), Var("t")), 1)
    assert [type(action) for action in first.actions] == [Delete, Insert]
    assert (second.variables, second.cost, second.line) == ((Var("room"),), 0.5, 6)


def test_goals_may_stand_before_their_queries():
    program = Program.parse("GOAL g NONE OF q\nQUERY q AS SELECT ?s { ?s ?p ?o }")
    assert program.goals[0].query == "q"


def test_their_words_are_names_elsewhere():
    text = "QUERY Cost AS SELECT ?s { ?s ?p ?o }\nEVENT Weight(?x) AS { ?x ?p 1 }"
    assert Program.parse(text + "\nGOAL g NONE OF Cost").goals[0].query == "Cost"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("GOAL g NONE OF Hott", (5, 16), "there is no query named Hott", "did you mean Hot?"),
        ("GOAL g NON OF Hot", (5, 8), "expected NONE, AT or MINIMIZE, found 'NON'",
         "did you mean NONE?"),
        ("GOAL NONE OF Hot", (5, 6), "expected a name for the goal, found 'NONE'",
         "'NONE' is a keyword: choose another name"),
        ("GOAL g AT MOST 1.5 OF Hot", (5, 16), "invalid number of rows 1.5",
         "write a whole number"),
        ("GOAL g AT MOST -1 OF Hot", (5, 16), "expected a number, found '-'", None),
        ("GOAL g MINIMIZE Hot WEIGHT 0", (5, 28), "a goal of weight 0 has no effect",
         "remove the goal, or give it a weight above 0"),
        ("GOAL g MINIMIZE Hot WEIGHT 1e999", (5, 28), "WEIGHT 1e999 is too large",
         "write a smaller number"),
        ("GOAL g NONE OF Any", (5, 16),
         "Any is an ASK query, which always has one row",
         "write it as SELECT"),
        ("GOAL g NONE OF Late", (5, 16), "Late is a windowed query, which a goal cannot use",
         "write it as a query over the graph"),
        ("GOAL g NONE OF Hot GOAL g NONE OF Hot", (5, 25), "there are two goals named g",
         "the first one is in line 5"),
        ("FIX f ON Hat THEN DELETE { ?room :p 1 }", (5, 10), "there is no query named Hat",
         "did you mean Hot?"),
        ("FIX f ON Late THEN DELETE { ?a :p 1 }", (5, 10),
         "Late is a windowed query, which a fix cannot use",
         "write it as a query over the graph"),
        ("FIX f ON Hot THEN INSERT { ?roam :p 1 }", (5, 28), "?roam has no value in this fix",
         "did you mean ?room?"),
        ("FIX f ON Hot(?room) THEN INSERT { ?room :p ?t }", (5, 44),
         "?t has no value in this fix", "there is ?room"),
        ("FIX f ON Hot(?x) THEN INSERT { ?x :p 1 }", (5, 14), "the query Hot has no variable ?x",
         "there are ?room, ?t"),
        ("FIX f ON Hot THEN CALL g(?room)", (5, 19), "expected INSERT or DELETE, found 'CALL'",
         None),
        ("FIX f ON APPEAR OF Hot THEN INSERT { ?room :p 1 }", (5, 10),
         "expected a name, found 'APPEAR'",
         "'APPEAR' is a keyword: choose another name"),
        ("FIX f ON Hot THEN INSERT { }", (5, 5), "the fix f changes nothing",
         "write triples between the brackets"),
        ("FIX f ON Hot THEN DELETE { _:b :p ?room }", None, None, None),
        ("FIX f CSOT 2 ON Hot THEN INSERT { ?room :p 1 }", (5, 7),
         "expected ON or COST, found 'CSOT'", "did you mean COST?"),
        ("FIX f ON Hot THEN INSERT { ?room :p 1 } FIX f ON Hot THEN INSERT { ?room :p 1 }",
         (5, 45), "there are two fixes named f", "the first one is in line 5"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_and_a_hint(text, place, message, hint):
    (error,) = Program.check(HEAD + text)[1]
    if message is not None:  # else SPARQL's own words
        assert error.message.split("\n")[0] == message
        assert (error.line, error.column) == place
        assert error.hint == hint
    assert error.line == 5


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ProgramError) as caught:
        Program.parse(HEAD + "GOAL g NONE OF X\nFIX f ON Hot THEN INSERT { ?x ?y 1 }")
    assert [error.line for error in caught.value.errors] == [5, 6, 6]


def test_a_broken_query_is_told_once():
    errors = Program.check(
        "QUERY q AS SELECT ?s { ?s }\nGOAL g NONE OF q\nFIX f ON q THEN DELETE { ?s ?p 1 }"
    )[1]
    assert [error.line for error in errors] == [1]


def test_layout():
    short = (
        "goal g   at most 3 of Hot\nfix f cost 2 on Hot( ?room,?t ) then insert { ?room :p 1 }\n"
    )
    laid_out = (
        "GOAL g AT MOST 3 OF Hot\nFIX f COST 2 ON Hot(?room, ?t) THEN INSERT { ?room :p 1 }\n"
    )
    assert format_program(short) == laid_out
    assert format_program(laid_out) == laid_out
    triples = "{ ?room :temperature ?t ; :and ?t ; :so_on ?t }"
    long = f"FIX f ON Hot THEN DELETE {triples} ; INSERT {triples}\n"
    assert format_program(long) == (
        f"FIX f\n  ON Hot\n  THEN DELETE {triples} ;\n       INSERT {triples}\n"
    )


def test_the_builder_makes_the_same_program():
    builder = ProgramBuilder({"": "http://example.org/"})
    builder.query("Hot", "SELECT ?room { ?room :is :hot }")
    builder.goal("Cool", "Hot").goal("Few", "Hot", at_most=2).minimize("Least", "Hot", weight=0.5)
    builder.fix("Air", "Hot(?room)", then=["DELETE { ?room :is :hot }"], cost=3)
    program = builder.build()
    assert [(g.name, g.most, g.weight) for g in program.goals] == [
        ("Cool", 0, 1),
        ("Few", 2, 1),
        ("Least", None, 0.5),
    ]
    assert [(f.name, f.cost) for f in program.fixes] == [("Air", 3)]
    assert Program.parse(builder.text) == program


def test_what_helps_which_goal():
    program = Program.parse("""PREFIX : <http://example.org/>
        QUERY Hot AS SELECT ?r { ?r :is :hot }
        QUERY Cold AS SELECT ?r { ?r a :Room FILTER NOT EXISTS { ?r :heated true } }
        GOAL a NONE OF Hot
        GOAL b AT MOST 2 OF Cold
        GOAL c MINIMIZE Hot WEIGHT 2
        FIX Air ON Hot THEN DELETE { ?r :is :hot } ; INSERT { ?r :is :cool }
        FIX Tell ON Hot THEN INSERT { ?r :told true }
        QUERY Bad AS SELECT ?r { ?r :bad true }
        GOAL d NONE OF Bad""")
    text = explain_fixes(program)
    assert "GOAL a\n  no row of Hot\n  helped by Air" in text
    assert "GOAL b\n  at most 2 rows of Cold\n  no fix can help it" in text
    assert "GOAL c\n  as few rows of Hot as possible, each costs 2\n  helped by Air" in text
    assert "GOAL d\n  no row of Bad\n  no fix can help it" in text
