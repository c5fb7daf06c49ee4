"""The law of the scheduler on random programs, and that its judge finds what breaks it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide.rules.actions import Actions
from graphtide.rules.rule_set import RuleEntry
from oracles.fuzz import main, run_schedules
from oracles.schedule_model import Unforeseen, expected_sections
from oracles.schedule_programs import random_schedule
from oracles.schedules import (
    MAX_FIRINGS,
    WAYS,
    Item,
    Outcome,
    Schedule,
    ScheduledRun,
    ScheduleFailure,
    check_schedule,
    find_difference,
    run_one_by_one,
    run_otherwise,
    shrink,
)

# --- the law ---


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 40, 10))
def test_neither_batches_nor_steps_of_the_clock_show(seed):
    for number in range(seed, seed + 10):
        check_schedule(random_schedule(Random(number), items=10), seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000, 50))
def test_neither_batches_nor_steps_of_the_clock_show_at_length(seed):
    run_schedules(50, seed, lambda: None)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.randoms(use_true_random=False), st.sampled_from(WAYS))
def test_small_schedules(rng, way):
    check_schedule(random_schedule(rng, items=5), [way])


# --- the generator ---


def test_equal_seeds_give_equal_schedules():
    assert str(random_schedule(Random(5))) == str(random_schedule(Random(5)))
    assert str(random_schedule(Random(5))) != str(random_schedule(Random(6)))


def test_schedules_have_all_that_can_be_declared():
    schedules = [random_schedule(Random(seed)) for seed in range(300)]
    texts = "\n".join(line for each in schedules for p in each.programs for line in p)
    for word in (
        "INSERT", "DELETE", "EMIT", "RETRACT", "CALL", "NO EVENT", "FACT", "PRIORITY", "PATTERN",
        "NOT", "WITHIN", "HOLDS FOR", "STRICT", "IMMEDIATE", "PER ?x", "APPEAR", "DISAPPEAR",
        "UPDATE", "ISTREAM", "DSTREAM", "RSTREAM", "RANGE", "ELEMENTS", "OPTIONAL", "COUNT",
        "CHANGE OF", "WINDOW :v", "UNRESTRICTED", "SKIP PAST LAST", "GREEDY", "WHERE (?b.x",
    ):  # fmt: skip
        assert word in texts, word
    kinds = {item.kind for each in schedules for item in each.items}
    assert kinds == {"push", "change", "publish", "advance"}
    assert any(each.lateness for each in schedules)
    assert any(text.count("FROM NAMED WINDOW :w") > 1 for text in map(str, schedules))
    assert {each.firing for each in schedules} == {"events", "agenda"}
    assert {len(each.programs) for each in schedules} == {1, 2}
    assert {each.on_error for each in schedules if each.failing} == {"raise", "skip"}
    assert {each.alignment for each in schedules} == {"close", "w3c", "yabench"}


def test_programs_fire_and_cause_each_other():
    runs = [run_one_by_one(random_schedule(Random(seed), items=10)) for seed in range(40)]
    outcomes = [run.outcome().sections for run in runs]
    assert sum(len(each["firings of program 0"]) for each in outcomes) > 80
    assert sum(bool(each["first error"]) for each in outcomes) < 10
    assert sum(bool(each["graph"]) for each in outcomes) > 10


# --- the judge ---

PROGRAM = (
    "EVENT A(?x) AS { ?x :a ?y }",
    "EVENT B(?x) AS { ?x :b ?y }",
    "QUERY Q AS SELECT ?x { ?x :p :c }",
    "PATTERN P(?x) AS A(?x) -> NOT B(?x) WITHIN 3",
    "RULE R ON A(?x) THEN INSERT { ?x :p :c }",
    "RULE S ON P(?x) THEN CALL f(?x)",
)


def schedule_of(*lines, end=10, program=PROGRAM):
    return Schedule((program,), tuple(map(Item.parse, lines)), end)


def test_the_outcome_of_a_run():
    """Computed by hand: A at 1 inserts, no B comes up to 4; B at 7 changes nothing."""
    run = run_one_by_one(schedule_of("1 push s u a v", "7 push t u b v", "8 change -u p c"))
    assert run.outcome().sections == {
        "first error": [],
        "firings of program 0": [
            "0: R at 1 x=u {'A': (1, 1)}",
            "1: S at 4 x=u {'P': (4, 4)}",
        ],
        "complex events P of program 0": ["x=u from 1 to 4"],
        "skipped errors of program 0": [],
        "calls": ["f(u) at 4"],
        "heard": [],
        "deltas of Q": ["at 1: ['+1 x=u']", "at 8: ['-1 x=u']"],
        "graph": [],
        "streams": [
            "http://example.org/s: 1 received, 0 late, 0 unpublished",
            "http://example.org/t: 1 received, 0 late, 0 unpublished",
        ],
        "numbers": ["transactions: 2", "Q: [0, 1]"],
        "clock": ["10", "10"],
    }


def test_an_error_is_noted_and_the_run_goes_on():
    failing = replace(schedule_of("1 push s u a v", "9 push s w a v"), failing="u")
    run = run_one_by_one(failing)
    assert len(run.errors) == 1
    assert run.errors[0].startswith("ActionError: the rule S failed at 4 with ?x=")
    assert run.outcome().sections["graph"] == ["u p c", "w p c"]


def test_a_failed_action_leaves_no_activation_of_another_program_behind():
    """The error came out of an EMIT too early, and the activation waited for the next call."""
    first = (
        "QUERY Q AS SELECT ?x ?y { ?x :p ?y . ?y :q ?z }",
        "EVENT Seen(?x) ON APPEAR OF Q(?x)",
        "RULE R WHEN FACT { ?x :q ?y } EVENT a = Seen(?x) THEN CALL f(?x) ; EMIT :t { ?x :ed :b }",
    )
    second = (
        "QUERY Z AS SELECT ?x ?y { ?x :p ?z OPTIONAL { ?z :q ?y } }",
        "EVENT ZSeen(?x) ON APPEAR OF Z(?x)",
        "EVENT ZMoved(?x) ON UPDATE OF Z(?x)",
        "RULE ZR0 PRIORITY 1 WHEN EVENT a = ZSeen(?x) THEN DELETE { ?x :p :b }",
        "RULE ZR3 ON ZMoved(?x) THEN EMIT :u { ?x :ed :b }",
    )
    lines = ("0 change +b p a, +b q a", "1 change +a p b, +a q b")
    schedule = Schedule(
        (first, second),
        tuple(map(Item.parse, lines)),
        end=1,
        firing="agenda",
        resolver="newest",
        streams=(),
        failing="b",
    )
    outcome = run_one_by_one(schedule).outcome()
    assert outcome.sections["graph"] == ["a q b", "b p a", "b q a"]
    check_schedule(schedule)


def test_timers_of_a_time_come_before_the_absences_that_end_with_it():
    """No ED comes up to 1: P is complete at 1, and R emits ED only then."""
    program = (
        "EVENT EA(?x) AS { ?x :ea ?y }",
        "EVENT EC(?x) AS { ?x :ec ?y }",
        "EVENT ED(?x) AS { ?x :ed ?y }",
        "PATTERN P(?x) AS EA(?x) -> NOT ED(_) WITHIN 1 CONTEXT UNRESTRICTED",
        "RULE R WHEN EVENT a = EC(?x) NO EVENT b = ED(?x) BEFORE[0,1] a THEN EMIT :s { ?x :ed :a }",
    )
    lines = ("0 push s b ea a", "1 push s a ec a", "1 push t b eb b", "2 push t a ec a")
    schedule = schedule_of(*lines, end=2, program=program)
    outcome = run_one_by_one(schedule).outcome()
    assert outcome.sections["complex events P of program 0"] == ["x=b from 0 to 1"]
    check_schedule(schedule)


def test_a_complex_event_is_in_the_cascade_of_the_event_that_completes_it():
    """R4 has no end: R1, which the same event caused by its first complex event, goes with it."""
    program = (
        "EVENT EC(?x) AS { ?x :ec ?y }",
        "EVENT ED(?x) AS { ?x :ed ?y }",
        "PATTERN P(?x) AS EC(?x){2} WITHIN 3 CONTEXT UNRESTRICTED SKIP PAST LAST",
        "PATTERN Q(?x) AS EC(?x){2} WITHIN 3 CONTEXT UNRESTRICTED SKIP PAST LAST",
        "RULE R1 ON P(?x) THEN INSERT { ?x :q :a }",
        "RULE R2 ON Q(?x) THEN EMIT :u { ?x :ed :a }",
        "RULE R4 ON ED(?x) THEN EMIT :u { ?x :ed :a }",
    )
    lines = ("0 push t b ec b", "0 push s b ec b", "0 push s a ea b", "0 push t a eb b")
    schedule = schedule_of(*lines, end=0, program=program)
    outcome = run_one_by_one(schedule).outcome()
    assert (outcome.sections["firings of program 0"], outcome.sections["graph"]) == ([], [])
    check_schedule(schedule)


def test_a_cascade_that_is_rolled_back_leaves_the_facts_of_others():
    """`a q b` was there before the cascade, but no event had made the second program look."""
    first = (
        "QUERY Q AS SELECT ?x ?y { ?x :p ?y }",
        "EVENT Seen(?x) ON APPEAR OF Q(?x)",
        "EVENT ED(?x) AS { ?x :e ?y }",
        "RULE R WHEN EVENT a = Seen(?x) NO EVENT b = ED(?x) AFTER[0,1] a THEN EMIT :u { ?x :e :b }",
    )
    second = (
        "EVENT EB(?x) AS { ?x :eb ?y }",
        "EVENT ED(?x) AS { ?x :e ?y }",
        "RULE S WHEN FACT { ?x :q ?y } EVENT a = EB(?x) THEN CALL f(?y)",
        "RULE T ON ED(?x) THEN EMIT :t { ?x :e :a }",
    )
    lines = ("0 change +a p b", "0 change +a q b", "2 publish a eb a")
    schedule = Schedule((first, second), tuple(map(Item.parse, lines)), end=5)
    outcome = run_one_by_one(schedule).outcome()
    assert outcome.sections["calls"] == ["f(b) at 2"]
    check_schedule(schedule)


def test_a_difference_shows_where_it_begins():
    ours = Outcome({"calls": ["a", "b"], "graph": ["x"]})
    theirs = Outcome({"calls": ["a", "c"], "graph": ["x"]})
    assert ours.difference(ours) == ""
    assert ours.difference(theirs).splitlines() == [
        "calls, from line 1 of 2:",
        "  one by one: b",
        "  otherwise:  c",
    ]


def test_shrinking_keeps_what_is_needed():
    lines = [f"{time} push s u {p} v" for time, p in enumerate("ababab", 3)]
    start = schedule_of(*lines, "9 change +u q v, -u q w", end=40)
    small = shrink(start, lambda each: any(len(item.changes) > 1 for item in each.items))
    assert len(small.items) == 1 and small.items[0].kind == "change"
    assert (small.items[0].time, small.end, small.programs) == (0, 0, ((),))


def test_a_lost_event_is_found_and_told_as_a_script(monkeypatch):
    """An engine that drops the last event of a batch."""
    push_ids = ScheduledRun._push_ids
    monkeypatch.setattr(
        ScheduledRun, "_push_ids", lambda run, items: push_ids(run, items[:-1] or items)
    )
    lines = ["1 push t u b v", "2 push s u a v", "2 push s w a v", "5 push s z a v"]
    with pytest.raises(ScheduleFailure) as found:
        check_schedule(schedule_of(*lines), ["ids"])
    small = found.value.schedule
    assert len(small.items) == 2
    text = str(found.value)
    monkeypatch.undo()
    assert "find_difference" in text and "end=0," in text and "1 received" in text
    assert find_difference(small, "ids") == ""


def test_fuzzing_knows_schedules(monkeypatch, capsys):
    push_ids = ScheduledRun._push_ids
    monkeypatch.setattr(
        ScheduledRun, "_push_ids", lambda run, items: push_ids(run, items[:-1] or items)
    )
    assert main(["--kind", "schedules", "--cases", "20", "--jobs", "1"]) == 1
    assert "find_difference(SCHEDULE, " in capsys.readouterr().out


def test_lines_of_items_can_be_read_again():
    for seed in range(50):
        for item in random_schedule(Random(seed)).items:
            assert Item.parse(str(item)) == item


def test_what_the_end_of_a_time_causes_waits_for_no_late_event():
    """R fires at 4, and emits to a stream with a lateness: S has no end, and R goes with it."""
    first = (
        "EVENT EA(?x) AS { ?x :ea ?y }",
        "EVENT EB(?x) AS { ?x :eb ?y }",
        "RULE R WHEN EVENT a = EA(?x) NO EVENT b = EB(?x) AFTER[0,4] a THEN EMIT :s { ?x :ed :b }",
    )
    second = (
        "EVENT ED(?x) AS { ?x :ed ?y }",
        "RULE S ON ED(?x) THEN EMIT :s { ?x :ed :b } ; EMIT :t { ?x :ed :b }",
    )
    items = (Item.parse("0 push s b ea a"),)
    schedule = Schedule((first, second), items, end=5, streams=(), lateness=(("s", 2),))
    assert run_one_by_one(schedule).outcome().sections["firings of program 0"] == []
    check_schedule(schedule)


ABSENT = (
    "RULE R WHEN EVENT a = EA(?x) NO EVENT b = ED(?x) AFTER[0,1] a THEN EMIT :u {{ ?x :{p} :a }}"
)


def test_what_the_end_of_a_time_causes_is_within_a_duration_that_ends_then():
    """ED is at 1, within a tick of EA; that holds for compiled tokens and for those in Python."""
    program = (
        "EVENT EA(?x) AS { ?x :ea ?y }",
        "EVENT ED(?x) AS { ?x :ed ?y }",
        "PATTERN P(?x) AS (EA(?x) -> ED(?x)) WITHIN 1",
        "PATTERN Q(?x) AS (EA(?x) -> ED(_) AS b WHERE (COUNT(?b) = 1)) WITHIN 1",
        ABSENT.format(p="ed"),
    )
    schedule = schedule_of("0 push s b ea a", end=3, program=program)
    sections = run_one_by_one(schedule).outcome().sections
    assert sections["complex events P of program 0"] == ["x=b from 0 to 1"]
    assert sections["complex events Q of program 0"] == ["x=b from 0 to 1"]
    check_schedule(schedule)


def test_what_the_end_of_a_time_causes_can_be_matched_by_tokens_that_went_to_python():
    """An event that is EA and EC can move the tokens of P in two ways; Q has a timer at 1."""
    program = (
        "EVENT EA(?x) AS { ?x :ea ?y }",
        "EVENT EC(?x) AS { ?x :ec ?y }",
        "EVENT ED(?x) AS { ?x :ed ?y }",
        "PATTERN P(?x) AS ALL(EA(?x), EC(?x))",
        "PATTERN Q(?x) AS EA(?x) -> NOT ED(?x) WITHIN 1",
        ABSENT.format(p="ec"),
    )
    schedule = schedule_of("0 push s b ea a, b ec a", end=3, program=program)
    sections = run_one_by_one(schedule).outcome().sections
    assert sections["first error"] == []
    assert sections["complex events P of program 0"] == ["x=b from 0 to 1"]
    check_schedule(schedule)


def test_what_a_retraction_at_the_end_of_a_time_brings_back_does_not_end_with_it():
    """EB at 1 may begin P when the event at 0 is retracted, at the end of 4; so may it beside Q."""
    program = (
        "EVENT EA(?x) AS { ?x :ea ?y }",
        "EVENT EB(?x) AS { ?x :eb ?y }",
        "EVENT EC(?x) AS { ?x :ec ?y }",
        "PATTERN P(?x) AS EB(?x) -> NOT EC(?x) WITHIN 3 CONTEXT STRICT",
        "RULE R WHEN EVENT a = EA(?x) NO EVENT b = EC(?x) AFTER[0,4] a THEN RETRACT a",
    )
    beside = (*program, "PATTERN Q(?x) AS EA(?x) -> NOT EC(?x) WITHIN 4")
    for each in (program, beside):
        schedule = schedule_of("0 push s b ea a, b eb a", "1 push s b eb a", program=each)
        sections = run_one_by_one(schedule).outcome().sections
        assert sections["complex events P of program 0"] == ["x=b from 0 to 3"]
        check_schedule(schedule)


# --- the definitions ---


def test_the_definitions_cover_most_schedules():
    covered = 0
    for seed in range(100):
        try:
            expected_sections(random_schedule(Random(seed)), MAX_FIRINGS)
        except Unforeseen:
            continue
        covered += 1
    assert covered > 50


def test_the_definitions_say_what_was_computed_by_hand():
    schedule = schedule_of("1 push s u a v", "7 push t u b v", "8 change -u p c")
    found = run_one_by_one(schedule).outcome().sections
    expected = expected_sections(schedule, MAX_FIRINGS)
    assert {name: found[name] for name in expected} == expected


def test_a_conflict_set_is_not_covered():
    with pytest.raises(Unforeseen):
        expected_sections(replace(schedule_of("1 push s u a v"), firing="agenda"), MAX_FIRINGS)


def test_a_mistake_that_all_ways_share_is_found(monkeypatch):
    """An engine that calls each function twice."""
    once = Actions._call

    def twice(actions, *given):
        once(actions, *given)
        once(actions, *given)

    monkeypatch.setattr(Actions, "_call", twice)
    schedule = schedule_of("1 push s u a v")
    check_schedule(schedule, ["jumps", "batches", "ids", "log"])
    with pytest.raises(ScheduleFailure, match=r"definitions: \['f\(u\) at 3'\]"):
        check_schedule(schedule, ["definitions"])


# --- interrupts ---


def test_an_undo_that_is_left_out_is_found(monkeypatch):
    """An engine that does not restore the memories of rules after an interrupt."""
    program = (
        "EVENT A(?x) AS { ?x :a ?y }",
        "EVENT B(?x) AS { ?x :b ?y }",
        "RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER[0,5] a THEN INSERT { ?x :p :c }",
        "RULE S ON A(?x) THEN CALL f(?x)",
    )
    schedule = schedule_of("1 push s u a v", "2 push s u b v", program=program)
    runs = [run_otherwise(schedule, "interrupts", seed) for seed in range(5)]
    assert any(run.interrupted for run in runs)
    for seed in range(5):
        check_schedule(schedule, ["interrupts"], seed)
    monkeypatch.setattr(RuleEntry, "roll_back", lambda entry, to: None)
    assert any(find_difference(schedule, "interrupts", seed) for seed in range(5))


def test_an_error_before_an_interrupt_is_not_lost():
    """The interrupt has it as a note."""
    schedule = replace(schedule_of("1 push s u a v, w a v", "2 push s v a v"), failing="u")
    for seed in range(5):
        check_schedule(schedule, ["interrupts"], seed)
