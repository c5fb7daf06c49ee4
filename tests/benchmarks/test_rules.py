"""The firings that the rules benchmark expects, counted from the words of the rule."""

import pytest

from benchmarks.rules import make_workload


def by_hand(workload):
    """AlarmConfirmation from its words: every confirmation with every alarm."""
    events = list(
        zip(
            *(
                c.tolist()
                for c in (workload.confirms, workload.subject, workload.about, workload.time)
            ),
            strict=True,
        )
    )
    alarms = [(s, e, t) for confirms, s, e, t in events if not confirms]
    return sum(
        alarm == about and 1 <= time - before <= 5 and workload.active[equipment]
        for confirms, _, about, time in events
        if confirms
        for alarm, equipment, before in alarms
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_expected_firings_are_those_of_the_rule(seed):
    workload = make_workload(20, 700, seed)
    assert workload.expected()[0] == by_hand(workload) > 50
    assert workload.first(300).expected()[0] == by_hand(workload.first(300))
