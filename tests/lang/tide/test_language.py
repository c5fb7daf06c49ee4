"""The .tide language: events, rules, includes, every mistake in one go, and its layout."""

import pytest

from graphtide.algebra.expressions import Var
from graphtide.errors import ProgramError, QueryError
from graphtide.lang.durations import WrittenDuration, parse_duration
from graphtide.lang.tide.ast import Combined, TimeTest
from graphtide.lang.tide.builder import ProgramBuilder
from graphtide.lang.tide.format import format_program
from graphtide.lang.tide.lexer import RELATIONS
from graphtide.lang.tide.program import Program
from graphtide.rules import temporal

HEAD = """PREFIX : <http://example.org/>
QUERY Hot AS SELECT ?r ?t { ?r :temperature ?t FILTER (?t > 30) }
EVENT G(?x, ?y) AS { ?x :is ?y }
"""
RULE = "RULE r WHEN EVENT a = G(?x, ?y) EVENT b = G(?x, ?z) "


def errors_of(text):
    return Program.check(text)[1]


def test_the_relations_are_those_of_the_rule_engine():
    assert {name: r.most for name, r in temporal.RELATIONS.items()} == RELATIONS


@pytest.mark.parametrize(
    ("text", "amount", "in_time"),
    [
        ("5", 5, False),
        ("-10", -10, False),
        ("500ms", 500, True),
        ("10s", 10_000, True),
        ("2h", 7_200_000, True),
        ("1w", 604_800_000, True),
        ("3 min", 180_000, True),
        ("PT1M30S", 90_000, True),
        ("-PT1S", -1000, True),
    ],
)
def test_durations(text, amount, in_time):
    assert parse_duration(text) == WrittenDuration(amount, in_time)


@pytest.mark.parametrize("text", ["", "x", "5x", "1.5", "P1Y", "5 5", "ms"])
def test_what_is_no_duration(text):
    assert parse_duration(text) is None


def conditions(text):
    return Program.parse(f"{HEAD}{RULE}{text} THEN CALL f()").rules[0].tests


def after(this, other, *numbers):
    return TimeTest("AFTER", this, other, tuple(WrittenDuration(number) for number in numbers))


def test_tests_are_combined_and_binds_and_before_or():
    inf = float("inf")
    one, two, three = after("b", "a", 1, 5), after("b", "a", -inf, 2), after("b", "a", 7, inf)
    (found,) = conditions("AFTER[1,5] a OR AFTER[*,2] a AND NOT AFTER[7,*] a")
    assert found == Combined("OR", (one, Combined("AND", (two, Combined("NOT", (three,))))))
    (found,) = conditions("(AFTER[1,5] a OR AFTER[*,2] a) AND AFTER[7,*] a")
    assert found == Combined("AND", (Combined("OR", (one, two)), three))


def test_a_test_can_stand_after_its_event_or_after_where():
    assert conditions("AFTER[1,5] a") == conditions("WHERE b AFTER[1, 5] a")


def test_events_without_a_name_are_called_by_their_type():
    rule = Program.parse(f"{HEAD}RULE r WHEN EVENT G(?x, ?y) EVENT G(?y, ?z) THEN CALL f()").rules[
        0
    ]
    assert [use.name for use in rule.events] == ["G", "G2"]


def test_arguments_that_are_left_out_are_the_parameters():
    rule = Program.parse(f"{HEAD}RULE r ON APPEAR OF Hot THEN CALL f(?r, ?t)").rules[0]
    assert rule.events[0].arguments == (Var("r"), Var("t"))
    rule = Program.parse(f"{HEAD}RULE r ON G THEN CALL f(?x)").rules[0]
    assert rule.events[0].arguments == (Var("x"), Var("y"))


def test_declarations_know_their_lines_and_may_come_in_any_order():
    program = Program.parse(
        "RULE r ON E(?r)\n  THEN CALL f(?r)\n\nEVENT E(?r) ON DISAPPEAR OF Q\nPREFIX : <ex:>\n"
        "QUERY Q AS SELECT ?r { ?r a :A }"
    )
    parts = program.rules[0], program.events[0], program.queries[0]
    assert [part.line for part in parts] == [1, 4, 6]


MISTAKES = [
    ("QUERY Hot AS SELECT * { ?s ?p ?o }", (4, 7), "there are two queries named Hot", "line 2"),
    ("EVENT G(?a) AS { ?a :b :c }", (4, 7), "there are two events named G", "line 3"),
    ("RULE a ON G THEN CALL f() RULE a ON G THEN CALL f()", (4, 32), "two rules named a", "line 4"),
    ("EVENT A(?x) AS { ?x a :A MINUS { ?x :is 3 } }", (4, 16), "only contain triples", "FACT in"),
    ("EVENT A AS { }", (4, 12), "must not be empty", None),
    ("EVENT B(?y) AS { ?x a :B }", (4, 9), "?y of the event B is not bound", "there is ?x"),
    ("EVENT C ON APPEAR OF Hot(?r, ?tt)", (4, 30), "Hot has no variable ?tt", "did you mean ?t?"),
    ("EVENT C ON APPEAR OF Hott", (4, 22), "there is no query named Hott", "did you mean Hot?"),
    ("EVENT C(?r, ?r) ON APPEAR OF Hot", (4, 9), "?r is given twice", None),
    ("EVENT C(:r) ON APPEAR OF Hot", (4, 8), "only variables are allowed here", None),
    ("EVENT C ON CHANGE OF ?r FROM { ?r a :A } TO { ?z a :B }", (4, 45), "?r does not", "use ?r"),
    ("RULE r WHEN EVENT G(?x) THEN CALL f()", (4, 20), "2 parameters, not 1", "it is G(?x, ?y)"),
    ("RULE r WHEN EVENT G(?x, _) THEN CALL f()", (4, 25), "found '_'", "write a variable"),
    ("RULE r WHEN EVENT a = GG(?x) THEN CALL f()", (4, 23), "no event named GG", "did you mean G?"),
    ("RULE r WHEN NO EVENT G THEN CALL f()", (4, 6), "has no event", "write a query"),
    ("RULE r WHEN FACT { ?x ?y } EVENT G THEN CALL f()", (4, 26), "expected a term or", None),
    (RULE + "AFTER[1,2] aa THEN CALL f()", (4, 64), "no event named aa in", "did you mean a?"),
    (RULE + "AFTER[5,2] a THEN CALL f()", (4, 58), "the lower bound is above", "lower bound first"),
    (RULE + "AFTER[1,2,3] a THEN CALL f()", (4, 58), "takes up to 2 bounds, not 3", None),
    (RULE + "DURING[1,2,3] a THEN CALL f()", (4, 59), "takes up to 4 bounds, not 3", None),
    (RULE + "AFTER[1x] a THEN CALL f()", (4, 58), "expected a duration, found '1x'", "10s"),
    (RULE + "AFTER[1,] a THEN CALL f()", (4, 58), "expected a duration, found nothing", "10s"),
    (RULE + "AFTER b THEN CALL f()", (4, 59), "the event b is compared with itself", None),
    (RULE + "WHERE AFTER a THEN CALL f()", (4, 59), "needs an event on its left", "before AFTER"),
    (RULE + "FILTER (?zz > 3) THEN CALL f()", (4, 61), "?zz has no value", "did you mean ?z?"),
    (RULE + "FILTER EXISTS { } THEN CALL f()", (4, 60), "expected '(', found 'EXISTS'", None),
    (RULE + "FILTER (EXISTS { ?x :a ?b }) THEN CALL f()", (4, 60), "EXISTS is not allowed", "FACT"),
    (RULE + "EVENT a = G THEN CALL f()", (4, 59), "two events named a in this rule", None),
    (
        "RULE r WHEN EVENT a = G NO EVENT b = G NO EVENT c = G AFTER b THEN CALL f()",
        (4, 55), "b and c are both NO EVENT", "compare each",
    ),
    (RULE + "THEN INSERT { ?x :is ?zz }", (4, 74), "?zz has no value in", "did you mean ?z?"),
    (RULE + "THEN INSERT { ?x :is }", (4, 74), "expected a term or variable", None),
    (RULE + "THEN DELETE { [] :is ?x }", (4, 65), "must not contain blank nodes", "variable"),
    (RULE + "THEN EMIT :s { GRAPH :g { ?x :is 1 } }", (4, 66), "must not contain GRAPH", "plain"),
    (RULE + "THEN EMIT foo:s { ?x :is 1 }", (4, 63), "the prefix 'foo:' is not", None),
    (RULE + "THEN CALL f(?w)", (4, 65), "?w has no value in this rule", "?x"),
    (RULE + "THEN RETRACT c", (4, 66), "no event named c in this rule", "there are a, b"),
    (RULE + "TEHN CALL f()", (4, 53), "unexpected 'TEHN'", "did you mean THEN?"),
    (RULE + "THEN CAL f()", (4, 58), "expected INSERT, DELETE, EMIT, CALL or RETRACT", "CALL?"),
    (RULE, (4, 52), "found the end of the program", None),
    ("RULE r THEN CALL f()", (4, 8), "expected ON, PRIORITY, WHEN or IN", None) ,
    ("EVENT To AS { ?x :is ?y }", (4, 7), "expected a name for", "'To' is a keyword"),
    ("EVENT", (4, 6), "expected a name for the event, found the end", None),
    ("RULE r ON G THEN INSERT { ?x :is 'a }", (4, 34), "unterminated string", "with '"),
    ("RULE r ON G THEN INSERT { ?x :is :a", (4, 25), "unclosed bracket", "add '}'"),
    ('INCLUDE "x.tide"', (4, 9), "INCLUDE works only in a program that is read", "Program.read"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "message", "hint"), MISTAKES)
def test_a_mistake_has_its_place_and_advice(text, place, message, hint):
    (error,) = errors_of(HEAD + text)
    assert message in error.message
    assert (error.line, error.column) == place
    assert (hint is None and error.hint is None) or (hint or "") in (error.hint or "")


def test_all_mistakes_are_found_in_one_go():
    broken = [text for text, *_ in MISTAKES if not text.startswith(("INCLUDE", "EVENT G"))]
    numbered = [text.replace("RULE r ", f"RULE r{n} ") for n, text in enumerate(broken)]
    found = errors_of(HEAD + "\n".join(numbered))
    # What ends too early is told of where the next declaration begins.
    lines = {4 + n + (text in (RULE, "EVENT")) for n, text in enumerate(broken)}
    assert {error.line for error in found} == lines
    with pytest.raises(ProgramError) as caught:
        Program.parse(HEAD + "\n".join(numbered))
    assert len(caught.value.errors) == len(found)
    assert str(caught.value).count("\n4:") + str(caught.value).startswith("4:") == 1


def test_what_cannot_be_read_hides_nothing_below_it():
    found = errors_of(
        "QUERY a AS SELECT * { ?s ?p\nQUERY b AS SELECT * { ?s ?p }\nEVENT c ON APPEAR OF b\n"
    )
    assert [error.line for error in found] == [2, 2]


def test_names_of_what_is_not_available_yet_are_not_reported_twice():
    found = errors_of(HEAD + "STREAM S(?x) OF { ?x a :S }\nRULE r ON S(?x) THEN CALL f()")
    assert [error.message.split("\n")[0] for error in found] == ["STREAM is not available yet"]


# --- includes ---


def test_a_file_includes_others_once(tmp_path):
    (tmp_path / "a.tide").write_text(
        'INCLUDE "parts/b.tide"\nINCLUDE "c.tide"\nRULE r ON B(?x) THEN CALL f(?x)'
    )
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "b.tide").write_text(
        'INCLUDE "../c.tide" PREFIX : <ex:> EVENT B(?x) AS { ?x a :B }'
    )
    (tmp_path / "c.tide").write_text("PREFIX : <other:> QUERY C AS SELECT ?x { ?x a :C }")
    program = Program.read(tmp_path / "a.tide")
    assert [query.name for query in program.queries] == ["C"]
    assert [event.name for event in program.events] == ["B"]


def test_mistakes_in_includes(tmp_path):
    (tmp_path / "a.tide").write_text('INCLUDE "b.tide"\nINCLUDE "none.tide"')
    (tmp_path / "b.tide").write_text('INCLUDE "b.tide"\nQUERY q AS SELECT * { ?s ?p }')
    with pytest.raises(ProgramError) as caught:
        Program.read(tmp_path / "a.tide")
    first, second, third = caught.value.errors
    assert "b.tide includes itself" in first.message
    assert (second.source, second.line) == (str(tmp_path / "b.tide"), 2)
    assert (third.line, "none.tide: there is no such file" in third.message) == (2, True)


# --- layout ---

UGLY = """# head

prefix   : <http://example.org/>


event G( ?x,?y )as {?x :is # said
   ?y}   # tail
# of the rule
rule r priority 3 when fact {?x a :A} event a=G(?x,?y)
no event b = G(?x, "a, b") after[ 1 ,5s] a and ( before a or not filter(?y>3) )
where a after b then insert {?x :is :a};delete{?x :is :b}; call f( ?x )
rule s on G then retract G
query Q as select * {
   ?s ?p ?o }
"""
PRETTY = """# head

PREFIX : <http://example.org/>

EVENT G(?x, ?y) AS {?x :is # said
   ?y}  # tail
# of the rule
RULE r PRIORITY 3
  WHEN FACT {?x a :A}
       EVENT a = G(?x, ?y)
       NO EVENT b = G(?x, "a, b") AFTER[1,5s] a AND (BEFORE a OR NOT FILTER (?y>3))
  WHERE a AFTER b
  THEN INSERT {?x :is :a} ;
       DELETE {?x :is :b} ;
       CALL f(?x)
RULE s ON G THEN RETRACT G
QUERY Q AS select * {
   ?s ?p ?o }
"""


def test_the_layout():
    assert format_program(UGLY) == PRETTY
    assert format_program(PRETTY) == PRETTY


@pytest.mark.parametrize(("text", "laid_out"), [("", ""), ("\n\n # a\n\n\n#b", "# a\n\n#b\n")])
def test_comments_alone(text, laid_out):
    assert format_program(text) == laid_out


def test_a_comment_that_cannot_be_kept_is_refused():
    with pytest.raises(QueryError, match="cannot be formatted") as caught:
        format_program("EVENT G(?x)\n  # why\n  AS { ?x a ?y }")
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_a_text_that_cannot_be_read_is_not_laid_out():
    with pytest.raises(QueryError, match="expected a name"):
        format_program("EVENT")


# --- builder ---


def test_a_program_without_text_is_the_same_program():
    built = (
        ProgramBuilder({"": "http://example.org/"})
        .query("Hot", "SELECT ?r { ?r :is :hot }")
        .event("Alarm", "?alarm ?e", "?alarm :eqpt ?e")
        .appear("Rises", "?r", "Hot")
        .disappear("Falls", "?r", "Hot")
        .change("Begins", "?e", "?e", "?e :is :off", "?e :is :on")
        .rule(
            "R",
            facts="?e :is :on",
            events=["a = Alarm(?alarm, ?e)", "b = Rises(?e)"],
            unless=["c = Falls(?e) AFTER[0,5] a"],
            where="b AFTER[1,5] a",
            then=["INSERT { ?e :is :odd }", "CALL f(?e)"],
            priority=2,
        )
    )
    program = built.build()
    assert program == Program.parse(built.text)
    assert [event.name for event in program.events] == ["Alarm", "Rises", "Falls", "Begins"]
    rule = program.rules[0]
    assert (rule.priority, [use.negated for use in rule.events]) == (2, [False, False, True])


def test_a_priority_is_a_whole_number():
    text = (
        "PREFIX : <ex:>\nEVENT A(?x) AS { ?x a :A }\nRULE r PRIORITY 1.5 ON A(?x) THEN CALL f(?x)"
    )
    with pytest.raises(QueryError, match=r"3:17: invalid priority 1\.5"):
        Program.parse(text)


UPDATES = "PREFIX : <ex:>\nQUERY Q AS SELECT ?x ?y { ?x :p ?y }\n"


def test_an_update_leaves_some_variable_to_change():
    event = "EVENT E(?x) ON UPDATE OF Q(?x)"
    (parsed,) = Program.parse(UPDATES + event).events
    builder = ProgramBuilder({"": "ex:"}).query("Q", "SELECT ?x ?y { ?x :p ?y }")
    built = builder.update("E", "?x", "Q").build()
    assert built.events[0].source == parsed.source
    assert event in format_program(UPDATES + event)
    with pytest.raises(QueryError, match=r"3:30: Q has no other columns than \(\?x, \?y\)"):
        Program.parse(UPDATES + "EVENT E(?x, ?y) ON UPDATE OF Q")


def test_update_is_no_reserved_word():
    text = UPDATES + "RULE update ON APPEAR OF Q THEN CALL f(?x)"
    assert Program.parse(text).rules[0].name == "update"
