"""Allen's relations between events that last, written once more from the definitions."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st


def ranged(numbers, least=1):
    """No number: from `least` on; one: from there on; two: from one to the other."""
    low, high = (*numbers, inf)[:2] if numbers else (least, inf)
    return lambda distance: min(low, high) <= distance <= max(low, high)


def up_to(numbers):
    """No number: from 1 on; one: from 1 to there (0: never); two: from one to the other."""
    if len(numbers) == 1:
        return lambda distance: 1 <= distance <= numbers[0]
    return ranged(numbers)


def near(numbers, at=0):
    slack = numbers[min(at, len(numbers) - 1)] if numbers else 0
    return lambda distance: abs(distance) <= slack


def during(a, b, n):
    first, last = (n[:2], n[2:]) if len(n) == 4 else (n, n)
    return up_to(first)(a[0] - b[0]) and up_to(last)(b[1] - a[1])


DEFINED = {
    "AFTER": lambda a, b, n: ranged(n)(a[0] - b[1]),
    "COINCIDES": lambda a, b, n: near(n)(a[0] - b[0]) and near(n, 1)(a[1] - b[1]),
    "DURING": during,
    "FINISHES": lambda a, b, n: a[0] > b[0] and near(n)(a[1] - b[1]),
    "STARTS": lambda a, b, n: near(n)(a[0] - b[0]) and a[1] < b[1],
    "MEETS": lambda a, b, n: near(n)(b[0] - a[1]),
    "OVERLAPS": lambda a, b, n: a[0] < b[0] and a[1] < b[1] and up_to(n)(a[1] - b[0]),
}
CONVERSE = {
    "BEFORE": "AFTER", "INCLUDES": "DURING", "FINISHEDBY": "FINISHES", "STARTEDBY": "STARTS",
    "METBY": "MEETS", "OVERLAPPEDBY": "OVERLAPS",
}  # fmt: skip
MOST = {"AFTER": 2, "COINCIDES": 2, "DURING": 4, "OVERLAPS": 2}


def related(operator, a, b, numbers):
    if operator in CONVERSE:
        return DEFINED[CONVERSE[operator]](b, a, numbers)
    return DEFINED[operator](a, b, numbers)


@st.composite
def relations(draw):
    """A relation with bounds."""
    operator = draw(st.sampled_from([*DEFINED, *CONVERSE]))
    most = MOST.get(CONVERSE.get(operator, operator), 1)
    many = draw(st.sampled_from([n for n in (0, 1, 2, 4) if n <= most]))
    numbers = [draw(st.integers(0, 5)) for _ in range(many)]
    ordered = [n for at in range(0, many, 2) for n in sorted(numbers[at : at + 2])]
    return operator, tuple(ordered if operator != "COINCIDES" else numbers)
