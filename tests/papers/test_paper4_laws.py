"""The laws of the event algebra: Table 2 and appendix 1 of the paper, on random streams.

A law holds if both sides are matched by the same streams (`holds`, Definition 7); and since the
engine knows patterns by their traces alone, both sides then give the same complex events in every
context. Where the paper says that a law does not hold, there is a counterexample.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patterns.random_patterns import atoms, lengths, simple, streams

from graphtide import LiveGraph
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Both,
    Either,
    EventPattern,
    Follows,
    HoldsFor,
    Not,
    Repeat,
    Within,
)
from graphtide.lang.tide.program import Program
from oracles.event_readings import OracleEvent, OracleReader, holds

A, B, C = Atom("a", ()), Atom("b", ()), Atom("c", ())


def stream_of(text: str) -> list[OracleEvent]:
    """One event for each letter, a tick apart."""
    return [OracleEvent(number, letter, (), number) for number, letter in enumerate(text)]


def events(stream: list[tuple[str, tuple[int, ...], int]]) -> list[OracleEvent]:
    return [OracleEvent(number, *each) for number, each in enumerate(stream)]


def fol(*parts: EventPattern) -> Follows:
    return Follows(parts)


def any_of(*parts: EventPattern) -> Either:
    return Either(parts)


def both(*parts: EventPattern) -> Both:
    return Both(parts)


LAWS = {
    "fol is associative": lambda p, q, r: (fol(fol(p, q), r), fol(p, fol(q, r)), fol(p, q, r)),
    "or is associative": lambda p, q, r: (
        any_of(any_of(p, q), r), any_of(p, any_of(q, r)), any_of(p, q, r)
    ),
    "and is associative": lambda p, q, r: (both(both(p, q), r), both(p, both(q, r)), both(p, q, r)),
    "or is commutative": lambda p, q, _: (any_of(p, q), any_of(q, p)),
    "and is commutative": lambda p, q, _: (both(p, q), both(q, p)),
    "and is fol either way": lambda p, q, _: (both(p, q), any_of(fol(p, q), fol(q, p))),
    "fol distributes over or from the left": lambda p, q, r: (
        fol(p, any_of(q, r)), any_of(fol(p, q), fol(p, r))
    ),
    "fol distributes over or from the right": lambda p, q, r: (
        fol(any_of(p, q), r), any_of(fol(p, r), fol(q, r))
    ),
    "and distributes over or from the left": lambda p, q, r: (
        both(p, any_of(q, r)), any_of(both(p, q), both(p, r))
    ),
    "and distributes over or from the right": lambda p, q, r: (
        both(any_of(p, q), r), any_of(both(p, r), both(q, r))
    ),
    "n times is fol": lambda p, _q, _r: (Repeat(p, 3, 3), fol(p, p, p)),
    "once or more is once, then any number": lambda p, q, _: (
        fol(Repeat(p, 1, None), q), fol(p, Repeat(p, 0, None), q)
    ),
}  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
@given(p=simple(), q=simple(), r=atoms(), stream=streams(most=6))
@settings(max_examples=30)
def test_a_law_holds(
    law: str,
    p: EventPattern,
    q: EventPattern,
    r: EventPattern,
    stream: list[tuple[str, tuple[int, ...], int]],
) -> None:
    sides = {holds(side, events(stream)) for side in LAWS[law](p, q, r)}
    assert len(sides) == 1


def test_fol_is_not_commutative() -> None:
    assert holds(fol(A, B), stream_of("ab"))
    assert not holds(fol(B, A), stream_of("ab"))


def test_fol_is_transitive_where_the_middle_is_the_same() -> None:
    assert holds(fol(A, B, C), stream_of("abc"))
    assert holds(fol(A, C), stream_of("abc"))


@given(p=atoms(), q=atoms(), r=atoms(), stream=streams(most=6))
def test_fol_through_one_middle_is_transitive(
    p: Atom, q: Atom, r: Atom, stream: list[tuple[str, tuple[int, ...], int]]
) -> None:
    if holds(fol(p, q, r), events(stream)):
        assert holds(fol(p, r), events(stream))


def test_fol_is_not_transitive_through_two_middles() -> None:
    """The paper's proof takes the same b for both; with two of them there is no order."""
    stream = stream_of("bcab")
    assert holds(fol(A, B), stream)
    assert holds(fol(B, C), stream)
    assert not holds(fol(A, C), stream)


@given(text=st.text("abc", min_size=1, max_size=7))
def test_and_is_transitive_for_single_events(text: str) -> None:
    stream = stream_of(text)
    if holds(both(A, B), stream) and holds(both(B, C), stream):
        assert holds(both(A, C), stream)


def test_and_is_not_transitive_for_parts_that_interleave() -> None:
    first, last = fol(A, B), fol(Atom("x", ()), Atom("y", ()))
    stream = stream_of("caxby")
    assert holds(both(first, C), stream)
    assert holds(both(C, last), stream)
    assert not holds(both(first, last), stream)


def test_or_is_not_transitive() -> None:
    """b alone makes both sides true, and the third false."""
    stream = stream_of("b")
    assert holds(any_of(A, B), stream)
    assert holds(any_of(B, C), stream)
    assert not holds(any_of(A, C), stream)


def test_or_does_not_distribute_over_fol() -> None:
    stream = stream_of("a")
    assert holds(any_of(A, fol(B, C)), stream)
    assert not holds(fol(any_of(A, B), any_of(A, C)), stream)


# --- absence: NOT p over a gap means that no events of the gap are a trace of p ---


def lacks(pattern: EventPattern, gap: list[OracleEvent]) -> bool:
    """Whether NOT pattern is true of a gap: between an event before it and one after it."""
    start = OracleEvent(0, "start", (), 0)
    moved = [OracleEvent(e.number + 1, e.type, e.values, e.time) for e in gap]
    end = OracleEvent(len(gap) + 1, "end", (), gap[-1].time if gap else 0)
    whole = fol(Atom("start", ()), Not(pattern), Atom("end", ()))
    reader = OracleReader([start, end], [start, *moved, end], end.time)
    return any(not reading.partial for reading in reader.readings(whole))


@given(p=simple(), stream=streams(most=6))
def test_not_is_the_opposite(
    p: EventPattern, stream: list[tuple[str, tuple[int, ...], int]]
) -> None:
    assert lacks(p, events(stream)) is not holds(p, events(stream))


@given(p=simple(), q=simple(), stream=streams(most=6))
def test_not_or_is_not_the_one_and_not_the_other(
    p: EventPattern, q: EventPattern, stream: list[tuple[str, tuple[int, ...], int]]
) -> None:
    gap = events(stream)
    assert lacks(any_of(p, q), gap) is (lacks(p, gap) and lacks(q, gap))


@given(text=st.text("abc", max_size=7))
def test_not_fol_is_not_the_first_or_the_first_and_then_not_the_second(text: str) -> None:
    """The first time that a comes is the one that counts: after a later one, b may be missing."""
    gap = stream_of(text)
    first = text.find("a")
    after = [] if first < 0 else stream_of(text[first + 1 :])
    assert lacks(fol(A, B), gap) is (lacks(A, gap) or lacks(B, after))


@given(text=st.text("ab", max_size=7), n=st.integers(1, 4))
def test_not_n_times_is_fewer_times(text: str, n: int) -> None:
    assert lacks(Repeat(A, n, n), stream_of(text)) is (text.count("a") < n)


@given(p=simple(), stream=streams(most=6))
def test_not_once_or_more_is_not_at_all(
    p: EventPattern, stream: list[tuple[str, tuple[int, ...], int]]
) -> None:
    gap = events(stream)
    assert lacks(Repeat(p, 1, None), gap) is lacks(p, gap)


@given(p=atoms(), q=atoms(), length=lengths(), stream=streams(most=6))
def test_not_within_leaves_what_holds_for_longer(
    p: Atom, q: Atom, length: WrittenDuration, stream: list[tuple[str, tuple[int, ...], int]]
) -> None:
    """NOT turns WITHIN into HOLDS FOR: what there is of it lasts at least a tick longer."""
    gap = events(stream)
    longer = HoldsFor(fol(p, q), WrittenDuration(length.amount + 1))
    if lacks(Within(fol(p, q), length), gap) and holds(fol(p, q), gap):
        assert holds(longer, gap)


@given(p=atoms(), q=atoms(), length=lengths(), stream=streams(most=6))
def test_not_holds_for_leaves_what_is_within(
    p: Atom, q: Atom, length: WrittenDuration, stream: list[tuple[str, tuple[int, ...], int]]
) -> None:
    """The other way around: what there is of it, though none lasts that long, is over sooner."""
    gap = events(stream)
    shorter = Within(fol(p, q), WrittenDuration(length.amount - 1))
    if lacks(HoldsFor(fol(p, q), length), gap) and holds(fol(p, q), gap):
        assert holds(shorter, gap)


@given(text=st.text("c", max_size=6), pause=st.integers(0, 9), length=st.integers(1, 8))
def test_with_one_trace_not_within_is_holds_for_in_both_directions(
    text: str, pause: int, length: int
) -> None:
    """One a and one b, with c's between them: either they are within, or it holds for longer."""
    between = [OracleEvent(1 + n, "c", (), 1) for n in range(len(text))]
    gap = [OracleEvent(0, "a", (), 1), *between, OracleEvent(1 + len(text), "b", (), 1 + pause)]
    within = Within(fol(A, B), WrittenDuration(length))
    longer = HoldsFor(fol(A, B), WrittenDuration(length + 1))
    assert lacks(within, gap) is holds(longer, gap)
    assert lacks(longer, gap) is holds(within, gap)


def test_with_several_traces_not_within_is_more_than_holds_for() -> None:
    """Of a a b, the first a is far from b and the second one near: both sides can be true."""
    gap = [OracleEvent(n, k, (), t) for n, (k, t) in enumerate([("a", 1), ("a", 8), ("b", 9)])]
    assert holds(HoldsFor(fol(A, B), WrittenDuration(6)), gap)
    assert not lacks(Within(fol(A, B), WrittenDuration(5)), gap)


def test_not_at_the_beginning_is_refused_with_what_to_write() -> None:
    """Figure 7c alone would match any event but a, from no known beginning on."""
    head = "PREFIX : <ex:> EVENT A(?x) AS { ?e :a ?x } EVENT B(?x) AS { ?e :b ?x }\n"
    (error,) = Program.check(f"{head}PATTERN P(?x) AS NOT A(_) -> B(?x)").errors
    assert "a pattern cannot begin with NOT" in error.message
    assert "NO EVENT" in (error.hint or "")
    instead = "RULE R WHEN EVENT b = B(?x) NO EVENT a = A(?x) BEFORE[0,10] b THEN CALL tell(?x)"
    graph, told = LiveGraph(), []
    graph.run(Program.parse(head + instead), functions={"tell": lambda x: told.append(x.value)})
    for time, (kind, x) in enumerate([("a", 1), ("b", 1), ("b", 2)]):
        graph.publish([("<ex:e>", f"<ex:{kind}>", x)], time=time)
    graph.publish([("<ex:e>", "<ex:b>", 1)], time=20)
    graph.advance(to=40)
    assert told == ["2", "1"]
