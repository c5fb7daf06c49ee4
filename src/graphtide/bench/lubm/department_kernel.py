"""The loop that makes departments, one after the other, as triples of codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.java_random import MASK, MULTIPLIER, next_int
from graphtide.bench.lubm.section_kernel import (
    ASSISTANT_COUNT,
    ASSOCIATE_COUNT,
    BASE,
    CHAIR,
    COURSES,
    DEPARTMENT_AT,
    DEPARTMENTS_HERE,
    DRAWN,
    DRAWN_COURSES,
    FIRST_COUNT,
    GRADUATE_COURSES,
    LECTURER_COUNT,
    LINKS,
    PAPERS,
    REPEATS,
    ROWS,
    UNIVERSITY_AT,
    draw,
    draw_places,
    put,
    put_faculty,
    put_graduate,
    put_named,
    put_papers,
    put_undergraduate,
)
from graphtide.bench.lubm.vocabulary import (
    COURSE_0,
    DEPARTMENT,
    DEPARTMENT_0,
    DEPARTMENT_NAME_0,
    GRADUATE_0,
    GRADUATE_COURSE_0,
    GROUP_0,
    LOCALS,
    NAME,
    OWN,
    OWN_UNIVERSITY,
    RESEARCH_ASSISTANT,
    RESEARCH_GROUP,
    SUB_ORGANIZATION_OF,
    TEACHING_ASSISTANT,
    TEACHING_ASSISTANT_OF,
    TYPE,
    UNIVERSITIES,
    UNIVERSITY,
    UNIVERSITY_NAME,
)
from graphtide.jit import compiled, inlined

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs

LEAST_DEPARTMENTS: Final = 15
MOST_DEPARTMENTS: Final = 25

MOST_ROWS: Final = 13_000
"""No department has more triples: 42 in the faculty, 588 and 168 students, 840 papers."""


@inlined
def start_university(states: Longs, seed: int, number: int) -> int:
    """Start the random numbers of a university; how many departments it has."""
    states[0] = ((seed + number) ^ MULTIPLIER) & MASK
    return draw(states, LEAST_DEPARTMENTS, MOST_DEPARTMENTS)


@compiled
def count_departments(states: Longs, seed: int, universities: int) -> int:
    """How many departments so many universities have."""
    total = 0
    for number in range(universities):
        total += start_university(states, seed, number)
    return total


@inlined
def put_head(out: Ints, marks: Longs, seen: Longs) -> None:
    """Write the department and, with its first one, the university."""
    base, number = int(marks[BASE]), int(marks[UNIVERSITY_AT])
    if marks[DEPARTMENT_AT] == 0:
        known = number < UNIVERSITIES and seen[number] != 0
        if marks[REPEATS] != 0 or not known:
            put(out, marks, base + OWN_UNIVERSITY, TYPE, UNIVERSITY)
        if number < UNIVERSITIES:
            seen[number] = 1
        put(out, marks, base + OWN_UNIVERSITY, NAME, base + UNIVERSITY_NAME)
    put(out, marks, base + OWN, TYPE, DEPARTMENT)
    put(out, marks, base + OWN, NAME, DEPARTMENT_NAME_0 + int(marks[DEPARTMENT_AT]))
    put(out, marks, base + OWN, SUB_ORGANIZATION_OF, base + OWN_UNIVERSITY)
    if marks[REPEATS] != 0:
        put(out, marks, base + OWN_UNIVERSITY, TYPE, UNIVERSITY)


@inlined
def put_assistants(
    out: Ints,
    marks: Longs,
    states: Longs,
    memory: Longs,
    graduates: int,
    teachers: int,
    researchers: int,
) -> None:
    """Write which graduate students help to teach, and which in research."""
    base = int(marks[BASE])
    draw_places(states, teachers + researchers, graduates, memory, DRAWN)
    draw_places(states, teachers, int(marks[COURSES]), memory, DRAWN_COURSES)
    for i in range(teachers + researchers):
        code = base + GRADUATE_0 + int(memory[DRAWN, i])
        put(out, marks, code, TYPE, TEACHING_ASSISTANT if i < teachers else RESEARCH_ASSISTANT)
        if i < teachers:
            course = base + COURSE_0 + int(memory[DRAWN_COURSES, i])
            put(out, marks, code, TEACHING_ASSISTANT_OF, course)


@inlined
def put_department(out: Ints, marks: Longs, states: Longs, seen: Longs, memory: Longs) -> None:
    """Write a department: how many there are of each kind is drawn first, then the rest."""
    marks[FIRST_COUNT] = draw(states, 7, 10)
    marks[ASSOCIATE_COUNT] = draw(states, 10, 14)
    marks[ASSISTANT_COUNT] = draw(states, 8, 11)
    marks[LECTURER_COUNT] = draw(states, 5, 7)
    faculty = 0
    for kind in range(4):
        faculty += int(marks[FIRST_COUNT + kind])
    undergraduates = draw(states, 8 * faculty, 14 * faculty)
    graduates = draw(states, 3 * faculty, 4 * faculty)
    teachers = draw(states, graduates // 5, graduates // 4)
    researchers = draw(states, graduates // 4, graduates // 3)
    groups = draw(states, 10, 20)
    marks[CHAIR] = next_int(states, 0, int(marks[FIRST_COUNT]))
    marks[COURSES] = marks[GRADUATE_COURSES] = marks[PAPERS] = marks[LINKS] = 0

    put_head(out, marks, seen)
    for kind in range(4):
        for number in range(marks[FIRST_COUNT + kind]):
            put_faculty(out, marks, states, seen, memory, kind, number)
    for number in range(undergraduates):
        put_undergraduate(out, marks, states, memory, number)
    for number in range(graduates):
        put_graduate(out, marks, states, seen, memory, number)
    base = int(marks[BASE])
    for number in range(groups):
        put(out, marks, base + GROUP_0 + number, TYPE, RESEARCH_GROUP)
        put(out, marks, base + GROUP_0 + number, SUB_ORGANIZATION_OF, base + OWN)
    put_papers(out, marks, memory)
    for number in range(marks[COURSES]):
        put_named(out, marks, COURSE_0 + number, 6)
    for number in range(marks[GRADUATE_COURSES]):
        put_named(out, marks, GRADUATE_COURSE_0 + number, 7)
    put_assistants(out, marks, states, memory, graduates, teachers, researchers)


@compiled
def make_departments(
    states: Longs,
    seed: int,
    universities: int,
    marks: Longs,
    seen: Longs,
    memory: Longs,
    out: Ints,
    places: Ints,
) -> int:
    """Write departments while there is room for one more; how many.

    `places` gets the university and the number of each.
    """
    marks[ROWS] = 0
    made = 0
    while (
        marks[UNIVERSITY_AT] < universities
        and marks[ROWS] + MOST_ROWS <= len(out)
        and made < len(places)
    ):
        if marks[DEPARTMENT_AT] == 0:
            marks[DEPARTMENTS_HERE] = start_university(states, seed, int(marks[UNIVERSITY_AT]))
        marks[BASE] = DEPARTMENT_0 + made * LOCALS
        places[made, 0] = marks[UNIVERSITY_AT]
        places[made, 1] = marks[DEPARTMENT_AT]
        put_department(out, marks, states, seen, memory)
        made += 1
        marks[DEPARTMENT_AT] += 1
        if marks[DEPARTMENT_AT] == marks[DEPARTMENTS_HERE]:
            marks[DEPARTMENT_AT] = 0
            marks[UNIVERSITY_AT] += 1
    return made
