"""A program that takes the place of another: what is kept goes on as if nothing had happened."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide import LiveGraph, Program
from graphtide.errors import GraphtideError
from oracles.schedule_programs import random_schedule
from oracles.schedules import ScheduledRun, run_as_reference

PREFIX = "PREFIX : <http://example.org/>\n"
EX = "<http://example.org/{}>".format
DECLARATIONS = """
QUERY Open AS SELECT ?d { ?d :is :open }
EVENT Knock(?d, ?n) AS { ?d :knocked ?n }
EVENT Ring(?d, ?n) AS { ?d :rang ?n }
EVENT Opened(?d) ON APPEAR OF Open
"""
PATTERNS = {
    "Twice": "PATTERN Twice(?d) AS (Knock(?d, _) -> Knock(?d, _)) WITHIN {n}s",
    "Both": "PATTERN Both(?d) AS Knock(?d, _) -> Ring(?d, _){{2}} CONTEXT STRICT PER ?d",
    "Alone": "PATTERN Alone(?d) AS Opened(?d) -> NOT Knock(?d, _) WITHIN {n}s",
}
RULES = {
    "Late": "RULE Late WHEN EVENT k = Knock(?d, ?n) EVENT r = Ring(?d, ?m) AFTER[0,{n}] k "
    "THEN CALL tell(?d)",
    "Never": "RULE Never WHEN EVENT k = Knock(?d, ?n) NO EVENT r = Ring(?d, ?m) AFTER[0,{n}] k "
    "THEN CALL tell(?d)",
    "Inside": "RULE Inside WHEN FACT {{ ?d :is :open }} EVENT k = Knock(?d, ?n) "
    "EVENT r = Ring(?d, ?m) AFTER[0,{n}] k THEN INSERT {{ ?d :was ?n }}",
    "OnTwice": "RULE OnTwice WHEN EVENT t = Twice(?d) EVENT r = Ring(?d, ?m) AFTER[0,{n}] t "
    "THEN CALL tell(?d)",
    "OnOpen": "RULE OnOpen PRIORITY {n} WHEN EVENT o = Opened(?d) "
    "EVENT k = Knock(?d, ?n) AFTER[0,9] o THEN CALL tell(?d)",
}
RETRACTS = (
    "RULE Back WHEN EVENT r = Ring(?d, 3) EVENT k = Knock(?d, ?n) BEFORE[0,2] r THEN RETRACT k"
)


def text_of(numbers, *, retracts=False):
    """A program of the declarations that have a number."""
    chosen = {**PATTERNS, **RULES}
    lines = [chosen[name].format(n=n) for name, n in numbers.items()]
    return PREFIX + DECLARATIONS + "\n".join([*lines, *([RETRACTS] if retracts else [])])


def program_of(numbers, **options):
    return Program.parse(text_of(numbers, **options))


def happen(graph, items):
    """Events and changes, in order."""
    for kind, door, number, time in items:
        if kind == "open":
            graph.insert(door, EX("is"), EX("open"), time=time)
        elif kind == "shut":
            graph.delete(door, EX("is"), EX("open"), time=time)
        else:
            graph.publish([(door, EX(kind), number)], time=time)


def items_of(rng, many):
    time, found = 0, []
    for _ in range(many):
        time += rng.choice((0, 0, 1, 1, 2, 4))
        kind = rng.choice(("knocked", "knocked", "rang", "rang", "open", "shut"))
        found.append((kind, EX(rng.choice("ab")), rng.randint(1, 4), time))
    return found


def seen(program, names):
    """The firings and complex events of some rules and patterns."""
    patterns = [p.name for p in program.program.patterns if p.name in names]
    return firings_of(program, names), {name: program.matches(name) for name in patterns}


def firings_of(program, names, first=0):
    fired = [f for f in program.firings()[first:] if f.rule in names]
    return sorted(((f.rule, f.time, f.values, f.events) for f in fired), key=str)


FUNCTIONS = {"tell": lambda _: None}


def random_numbers(rng):
    names = [name for name in (*PATTERNS, *RULES) if rng.random() < 0.7]
    if "OnTwice" in names and "Twice" not in names:
        names.insert(0, "Twice")
    ordered = [name for name in PATTERNS if name in names]
    rules = [name for name in RULES if name in names]
    rng.shuffle(rules)
    return {name: rng.randint(2, 5) for name in (*ordered, *rules)}


def edited(rng, numbers):
    """Some declarations are changed, some removed, some added, and rules are in another order."""
    found = random_numbers(rng)
    return {
        name: numbers[name] if name in numbers and rng.random() < 0.7 else n
        for name, n in found.items()
    }


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_what_is_kept_goes_on_and_the_rest_begins(seed, retracts, again):
    """Kept: as in a run without replacement. All else: as in a program that is started then."""
    rng = Random(seed)
    numbers = random_numbers(rng)
    after = edited(rng, numbers)
    items = items_of(rng, rng.randint(4, 40))
    at = rng.randint(0, len(items))
    end = items[-1][3] + 20

    plain = LiveGraph()
    unchanged = plain.run(program_of(numbers, retracts=retracts), functions=FUNCTIONS)
    happen(plain, items)
    plain.advance(end)

    later = LiveGraph()
    happen(later, items[:at])
    started = later.run(program_of(after, retracts=retracts), functions=FUNCTIONS)
    happen(later, items[at:])
    later.advance(end)

    graph = LiveGraph()
    program = graph.run(program_of(numbers, retracts=retracts), functions=FUNCTIONS)
    happen(graph, items[:at])
    before = program.fired
    done = program.replace(text_of(after, retracts=retracts))
    if again:  # and once more, with what it is
        assert not program.replace(text_of(after, retracts=retracts)).changed
    happen(graph, items[at:])
    graph.advance(end)

    kept = {name for _, name in done.kept}
    assert seen(program, kept) == seen(unchanged, kept)
    assert before <= program.fired
    new = {name for _, name in (*done.added, *done.changed)}
    if "Twice" in kept:  # it may complete what began before
        new.discard("OnTwice")
    since = firings_of(program, {*new, "Back"}, before)
    fired, matches = seen(started, {*new, "Back"})
    # Back is kept: it may retract an event because of one that came before.
    if [f for f in since if f[0] == "Back"] == [f for f in fired if f[0] == "Back"]:
        assert since == fired
        assert {name: program.matches(name) for name in matches} == matches


class ReplacedRun(ScheduledRun):
    """A schedule whose programs are replaced now and then, by themselves and one more query."""

    def give(self, items, how):
        rng = Random(f"{items}")
        for number, program in enumerate(self.programs):
            if rng.random() < 0.4:
                text = "\n".join(program.program.sources)
                more = f"\nQUERY More{number} AS SELECT ?x {{ ?x :more ?y }}"
                text = text.replace(more, "") + (more if rng.random() < 0.5 else "")
                done = program.replace(text)
                assert not done.changed
                assert all(name.startswith("More") for _, name in (*done.added, *done.removed))
        super().give(items, how)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (10, 20, 30))]
)
def test_random_programs_go_on(first):
    """With windows, streams, absences, conflict sets, and rules whose actions cause each other."""
    for seed in range(first, first + 10):
        schedule = random_schedule(Random(seed), items=12)
        run = ReplacedRun(schedule)
        for item in schedule.items:
            run.give([item], "single")
        run.advance(schedule.end)
        assert not run_as_reference(schedule).outcome().difference(run.outcome()), seed


EVERY = {"Twice": 5, "Late": 5, "Never": 5}


def test_what_changed_is_told():
    graph = LiveGraph()
    program = graph.run(program_of(EVERY), functions=FUNCTIONS)
    done = program.replace(text_of({"Twice": 5, "Late": 4, "OnTwice": 5}))
    assert ("RULE", "Late") in done.changed
    assert done.added == (("RULE", "OnTwice"),)
    assert done.removed == (("RULE", "Never"),)
    assert {("QUERY", "Open"), ("PATTERN", "Twice")} == set(done.kept)
    assert repr(done) == (
        "<Replacement: kept QUERY Open, PATTERN Twice; changed RULE Late; added RULE OnTwice; "
        "removed RULE Never>"
    )


def test_a_rule_depends_on_what_it_names():
    program = LiveGraph().run(program_of({"Twice": 5, "OnTwice": 5}), functions=FUNCTIONS)
    done = program.replace(text_of({"Twice": 4, "OnTwice": 5}))
    assert set(done.changed) == {("PATTERN", "Twice"), ("RULE", "OnTwice")}
    changed = text_of({"Twice": 4, "OnTwice": 5}).replace(":knocked", ":hit")
    assert set(program.replace(changed).changed) == {("PATTERN", "Twice"), ("RULE", "OnTwice")}


def test_a_kept_query_is_the_same_handle():
    graph = LiveGraph()
    program = graph.run(program_of({}), functions=FUNCTIONS)
    query, deltas = program.queries["Open"], []
    query.on_delta(deltas.append)
    graph.insert(EX("a"), EX("is"), EX("open"))
    program.replace(text_of({"Late": 3}))
    graph.insert(EX("b"), EX("is"), EX("open"))
    assert program.queries["Open"] is query
    assert len(deltas) == 2
    assert query.count() == 2


def test_a_changed_query_begins_with_its_whole_answer():
    graph = LiveGraph()
    program = graph.run(Program.parse("QUERY Q AS SELECT ?s { ?s <ex:p> ?o }"))
    old = program.queries["Q"]
    graph.insert("<ex:a>", "<ex:p>", 1)
    graph.insert("<ex:b>", "<ex:q>", 1)
    program.replace("QUERY Q AS SELECT ?s { ?s <ex:q> ?o }")
    assert [str(row) for row in program.queries["Q"].rows()] == ["+ s=<ex:b>"]
    assert [query.name for query in graph.queries] == ["Q"]
    with pytest.raises(GraphtideError):
        old.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("QUERY Q AS SELECT", "expected"),
        (text_of({"Late": 3}).replace("CALL tell(", "CALL other("), "calls other"),
        (PREFIX + "QUERY Q AS SELECT ?s { SERVICE <http://a.b/> { ?s ?p ?o } }", "SERVICE"),
    ],
)
def test_an_error_leaves_the_old_program(text, message):
    graph = LiveGraph()
    program = graph.run(program_of(EVERY), functions=FUNCTIONS)
    happen(graph, [("knocked", EX("a"), 1, 1)])
    before = program.program, program.retained, [query.name for query in graph.queries]
    with pytest.raises(GraphtideError, match=message):
        program.replace(text)
    assert (program.program, program.retained, [q.name for q in graph.queries]) == before
    happen(graph, [("rang", EX("a"), 1, 2)])
    assert [firing.rule for firing in program.firings()] == ["Late"]


def test_a_query_that_would_start_wrong_is_refused():
    graph = LiveGraph(store="matched")
    program = graph.run(Program.parse("QUERY Q AS SELECT ?s { ?s <ex:p> ?o }"))
    graph.insert("<ex:a>", "<ex:r>", 1)
    with pytest.raises(GraphtideError, match="dropped"):
        program.replace("QUERY Q AS SELECT ?s { ?s <ex:q> ?o }")
    graph.insert("<ex:a>", "<ex:p>", 1)
    assert program.queries["Q"].count() == 1


def test_not_while_rules_fire():
    graph, errors = LiveGraph(), []

    def tell(_):
        try:
            program.replace(text_of({}))
        except GraphtideError as error:
            errors.append(str(error))

    program = graph.run(program_of({"Late": 5}), functions={"tell": tell})
    happen(graph, [("knocked", EX("a"), 1, 1), ("rang", EX("a"), 1, 2)])
    assert "cannot be replaced" in errors[0]
    assert [rule.name for rule in program.program.rules] == ["Late"]


def test_new_functions():
    called = []
    program = LiveGraph().run(program_of({}), functions=FUNCTIONS)
    text = text_of({"Late": 5}).replace("CALL tell(", "CALL other(")
    program.replace(text, functions={"other": called.append})
    program.assert_event([(EX("a"), EX("knocked"), 1)], time=1)
    program.assert_event([(EX("a"), EX("rang"), 1)], time=2)
    assert len(program.firings()) == len(called) == 1


@pytest.mark.parametrize("resolver", ["priority", "oldest", "newest", "random"])
def test_activations_wait_on(resolver):
    """Declared in another order, equal priorities fire in that order."""
    text = """PREFIX : <http://example.org/>
    QUERY Open AS SELECT ?d { ?d :is :open }
    RULE A ON APPEAR OF Open THEN CALL tell(?d)
    RULE B ON APPEAR OF Open THEN CALL tell(?d)
    RULE C ON APPEAR OF Open THEN CALL tell(?d)"""
    head, a, _, c = text[: text.index("RULE A")], *text[text.index("RULE A") :].splitlines()
    graph = LiveGraph()
    options = {"functions": FUNCTIONS, "firing": "manual", "resolver": resolver, "seed": 5}
    program = graph.run(Program.parse(text), **options)
    for door in "xyz":
        graph.insert(EX(door), EX("is"), EX("open"))
    program.fire()
    waiting = {(each.rule, each.number) for each in program.activations() if each.state != "fired"}
    done = program.replace(f"{head}\n{c}\n{a}")
    assert done.removed == (("RULE", "B"),)
    left = {(each.rule, each.number) for each in program.activations() if each.state != "fired"}
    assert left == {each for each in waiting if each[0] != "B"}
    graph.delete(EX("z"), EX("is"), EX("open"))
    program.fire_all()
    rules = [firing.rule for firing in program.firings()][1:]
    assert sorted(rules) == sorted(r for r, n in left if n % 9 not in (6, 7, 8))
    if resolver == "priority":
        assert rules == sorted(rules, reverse=True)


def test_other_programs_and_their_order_stay():
    graph, said = LiveGraph(), []
    text = PREFIX + DECLARATIONS + "RULE A ON Opened(?d) THEN CALL tell(?d)"
    texts = [text.replace("Y Open", f"Y Open{n}").replace("F Open", f"F Open{n}") for n in (0, 1)]
    one, two = (
        graph.run(Program.parse(each), functions={"tell": lambda _, n=n: said.append(n)})
        for n, each in enumerate(texts)
    )
    one.replace(texts[0].replace("RULE A", "RULE B"))
    graph.insert(EX("a"), EX("is"), EX("open"))
    assert said == [0, 1]
    assert graph.programs == (one, two)
    one.close()
    graph.insert(EX("b"), EX("is"), EX("open"))
    assert said == [0, 1, 1]
