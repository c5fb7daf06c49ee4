"""The engine's complex events are those of the brute-force evaluator, for random patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from patterns.random_patterns import (
    TYPES,
    declarations,
    per_declarations,
    shared_declarations,
    streams,
    unrestricted_declarations,
)

from benchmarks import sequence
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import Detector, KernelDetector, make_detector
from oracles.event_oracle import EventOracle, OracleMatch

if TYPE_CHECKING:
    from graphtide.lang.tide.ast import PatternDeclaration

Stream = list[tuple[str, tuple[int, ...], int]]
NUMBERS = {name: number for number, name in enumerate(TYPES)}
END = 100


def expected(pattern: PatternDeclaration, stream: Stream) -> list[OracleMatch]:
    """What the definitions say."""
    oracle = EventOracle(pattern)
    found = [each for event in stream for each in oracle.step(*event)]
    return found + oracle.advance(END)


def detected(pattern: PatternDeclaration, stream: Stream) -> list[OracleMatch]:
    """What the engine says."""
    detector = Detector(compile_pattern(pattern, NUMBERS, lambda _: 1))
    found = []
    for name, values, time in stream:
        found += detector.step(NUMBERS[name], values, time)
    found += detector.advance(END)
    return [OracleMatch(each.values, each.time, each.used) for each in found]


@given(pattern=declarations(), stream=streams())
@settings(max_examples=120)
def test_any_pattern_finds_what_the_definitions_say(
    pattern: PatternDeclaration, stream: Stream
) -> None:
    assert detected(pattern, stream) == expected(pattern, stream)


@given(pattern=per_declarations(), stream=streams())
@settings(max_examples=80)
def test_a_pattern_per_value_finds_what_the_definitions_say(
    pattern: PatternDeclaration, stream: Stream
) -> None:
    assert detected(pattern, stream) == expected(pattern, stream)


@given(pattern=shared_declarations(), stream=streams())
@settings(max_examples=80)
def test_events_without_the_variable_of_per_are_in_every_stream(
    pattern: PatternDeclaration, stream: Stream
) -> None:
    found = detected(pattern, stream)
    assert sorted(found, key=repr) == sorted(expected(pattern, stream), key=repr)


@given(pattern=unrestricted_declarations(), stream=streams(most=7))
@settings(max_examples=100)
def test_every_combination_counts(pattern: PatternDeclaration, stream: Stream) -> None:
    found = detected(pattern, stream)
    assert sorted(found, key=repr) == sorted(expected(pattern, stream), key=repr)


def by_kernel(pattern: PatternDeclaration, stream: Stream) -> list[OracleMatch] | None:
    """What the kernel says, of the events one by one; None if it cannot run the pattern."""
    detector = make_detector(compile_pattern(pattern, NUMBERS, lambda _: 1))
    if not isinstance(detector, KernelDetector):
        return None
    found = []
    for name, values, time in stream:
        found += detector.step(NUMBERS[name], values, time)
    found += detector.advance(END)
    return [OracleMatch(each.values, each.time, each.used) for each in found]


@given(pattern=st.one_of(declarations(composite=False), per_declarations()), stream=streams())
@settings(max_examples=120)
def test_the_kernel_finds_what_the_definitions_say(
    pattern: PatternDeclaration, stream: Stream
) -> None:
    found = by_kernel(pattern, stream)
    assume(found is not None)
    assert found == expected(pattern, stream)


@given(pattern=declarations(composite=False), stream=streams(most=30))
@settings(max_examples=80)
def test_a_batch_gives_what_its_events_give_one_by_one(
    pattern: PatternDeclaration, stream: Stream
) -> None:
    one_by_one = by_kernel(pattern, stream)
    assume(one_by_one is not None)
    detector = make_detector(compile_pattern(pattern, NUMBERS, lambda _: 1))
    types = np.array([NUMBERS[name] for name, *_ in stream])
    values = np.array([(*row, 0, 0)[:2] for _, row, _ in stream])
    columns = detector.feed(types, values, np.array([time for *_, time in stream]))
    rest = [(each.values, each.time) for each in detector.advance(END)]
    found = [*zip(map(tuple, columns.values.tolist()), columns.time.tolist(), strict=True), *rest]
    assert found == [(each.values, each.time) for each in one_by_one]


@given(pattern=declarations(), stream=streams(), cut=st.integers(0, 9))
@settings(max_examples=80)
def test_a_detector_goes_on_where_another_was_saved(
    pattern: PatternDeclaration, stream: Stream, cut: int
) -> None:
    automaton = compile_pattern(pattern, NUMBERS, lambda _: 1)
    for make in (make_detector, Detector):
        first, second, whole = make(automaton), make(automaton), make(automaton)
        for name, values, time in stream[:cut]:
            first.step(NUMBERS[name], values, time)
            whole.step(NUMBERS[name], values, time)
        second.load(first.save())
        for name, values, time in stream[cut:]:
            again = second.step(NUMBERS[name], values, time)
            assert again == whole.step(NUMBERS[name], values, time)
        assert second.advance(END) == whole.advance(END)


def test_tokens_of_many_keys_expire_and_their_room_is_used_again() -> None:
    # First 30,000 keys in ten seconds, then 50: places of tokens, keys and used events are freed.
    many, few = sequence.make_events(40_000, 30_000, 1), sequence.make_events(40_000, 50, 2)
    types = np.concatenate([many.types, few.types])
    keys = np.concatenate([many.keys, few.keys])
    times = np.concatenate([many.times // 4, few.times + many.times[-1] // 4])
    events = sequence.SequenceEvents(types, keys, times)
    automaton = compile_pattern(sequence.sequence_pattern(), sequence.TYPES, lambda _: 0, 1)
    detector = make_detector(automaton)
    found: list[sequence.Match] = []
    for begin in range(0, len(events), 7_001):
        part = slice(begin, begin + 7_001)
        columns = detector.feed(types[part], keys[part].reshape(-1, 1), times[part])
        at = (columns.at + begin).tolist()
        found += zip(at, columns.values[:, 0].tolist(), columns.start.tolist(), strict=True)
        saved = detector.save()
        detector = make_detector(automaton) if begin % 2 else detector
        detector.load(saved)  # type: ignore[arg-type] # it is of the same kind
    assert found == sequence.plain_matches(events, sequence.WITHIN_MS, 30_000)
