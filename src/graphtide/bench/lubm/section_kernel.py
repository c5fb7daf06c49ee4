"""The parts of a department, triple by triple, in the order in which UBA draws and writes them.

Draws that decide nothing are made all the same: the numbers that follow depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.java_random import next_int
from graphtide.bench.lubm.vocabulary import (
    ADVISOR,
    ASSISTANT_0,
    ASSOCIATE_0,
    CLASS_0,
    COURSE_0,
    DOCTORAL_DEGREE_FROM,
    EMAIL_0,
    EMAIL_ADDRESS,
    FULL_0,
    GRADUATE_0,
    GRADUATE_COURSE_0,
    HEAD_OF,
    INTEREST_0,
    INTERESTS,
    LECTURER_0,
    MASTERS_DEGREE_FROM,
    MEMBER_OF,
    NAME,
    NAME_0,
    OWN,
    PHONE,
    PUBLICATION,
    PUBLICATION_0,
    PUBLICATION_AUTHOR,
    PUBLICATION_NAME_0,
    PUBLICATIONS,
    RESEARCH_INTEREST,
    TAKES_COURSE,
    TEACHER_OF,
    TELEPHONE,
    TYPE,
    UNDERGRADUATE_0,
    UNDERGRADUATE_DEGREE_FROM,
    UNIVERSITIES,
    UNIVERSITY,
    UNIVERSITY_0,
    WORKS_FOR,
)
from graphtide.jit import inlined

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs

COURSE_POOL: Final = 100
"""Courses that a department could give, of either kind."""

FACULTY_0: Final = (FULL_0, ASSOCIATE_0, ASSISTANT_0, LECTURER_0)
LEAST_PUBLICATIONS: Final = (15, 10, 5, 0)
MOST_PUBLICATIONS: Final = (20, 18, 10, 5)

# What is known of the department at hand, and where the loop is.
(
    ROWS, BASE, REPEATS, FIRST_COUNT, ASSOCIATE_COUNT, ASSISTANT_COUNT, LECTURER_COUNT,
    COURSES, GRADUATE_COURSES, PAPERS, LINKS, CHAIR, UNIVERSITY_AT, DEPARTMENT_AT, DEPARTMENTS_HERE,
) = range(15)  # fmt: skip
MARKS: Final = 15

# Rows of the working memory: numbers drawn, the same in order, papers, and their co-authors.
DRAWN, SORTED, PAPER, FIRST_LINK, LAST_LINK, NEXT_LINK, WHO, DRAWN_COURSES = range(8)
MEMORIES: Final = 8
MEMORY: Final = 1024


@inlined
def draw(states: Longs, least: int, most: int) -> int:
    """The next number of a range."""
    return least + next_int(states, 0, most - least + 1)


@inlined
def draw_places(states: Longs, count: int, size: int, memory: Longs, into: int) -> None:
    """Draw different places of a list, as if each were taken out of it."""
    for i in range(count):
        place = next_int(states, 0, size - i)
        at = 0
        while at < i and memory[SORTED, at] <= place:
            place += 1
            at += 1
        for j in range(i, at, -1):
            memory[SORTED, j] = memory[SORTED, j - 1]
        memory[SORTED, at] = place
        memory[into, i] = place


@inlined
def put(out: Ints, marks: Longs, s: int, p: int, o: int) -> None:
    """Write a triple."""
    row = marks[ROWS]
    out[row, 0] = s
    out[row, 1] = p
    out[row, 2] = o
    marks[ROWS] = row + 1


@inlined
def put_degree(
    out: Ints, marks: Longs, states: Longs, seen: Longs, person: int, degree: int
) -> None:
    """Write where a degree comes from; a university is declared when it is first mentioned."""
    number = next_int(states, 0, UNIVERSITIES)
    put(out, marks, person, degree, UNIVERSITY_0 + number)
    if marks[REPEATS] != 0 or seen[number] == 0:
        put(out, marks, UNIVERSITY_0 + number, TYPE, UNIVERSITY)
        seen[number] = 1


@inlined
def put_courses(out: Ints, marks: Longs, states: Longs, person: int, first: int, kind: int) -> None:
    """Write the one or two next courses, which this person teaches."""
    for _ in range(draw(states, 1, 2)):
        given = int(marks[kind])
        next_int(states, 0, COURSE_POOL - given)  # decides nothing
        put(out, marks, person, TEACHER_OF, int(marks[BASE]) + first + given)
        marks[kind] = given + 1


@inlined
def put_named(out: Ints, marks: Longs, thing: int, kind: int) -> int:
    """Write a thing's type and name; the code."""
    code = int(marks[BASE]) + thing
    put(out, marks, code, TYPE, CLASS_0 + kind)
    put(out, marks, code, NAME, NAME_0 + thing)
    return code


@inlined
def put_address(out: Ints, marks: Longs, thing: int) -> None:
    """Write a person's mail address and telephone number."""
    base = int(marks[BASE])
    put(out, marks, base + thing, EMAIL_ADDRESS, base + EMAIL_0 + thing)
    put(out, marks, base + thing, TELEPHONE, PHONE)


@inlined
def put_faculty(
    out: Ints, marks: Longs, states: Longs, seen: Longs, memory: Longs, kind: int, number: int
) -> None:
    """Write a member of the faculty, and note the papers."""
    thing = FACULTY_0[kind] + number
    code = put_named(out, marks, thing, kind)
    put_courses(out, marks, states, code, COURSE_0, COURSES)
    put_courses(out, marks, states, code, GRADUATE_COURSE_0, GRADUATE_COURSES)
    put_degree(out, marks, states, seen, code, UNDERGRADUATE_DEGREE_FROM)
    put_degree(out, marks, states, seen, code, MASTERS_DEGREE_FROM)
    put_degree(out, marks, states, seen, code, DOCTORAL_DEGREE_FROM)
    put(out, marks, code, WORKS_FOR, int(marks[BASE]) + OWN)
    put_address(out, marks, thing)
    if kind < 3:
        put(out, marks, code, RESEARCH_INTEREST, INTEREST_0 + next_int(states, 0, INTERESTS))
    if kind == 0 and number == marks[CHAIR]:
        put(out, marks, code, HEAD_OF, int(marks[BASE]) + OWN)
    for paper in range(draw(states, LEAST_PUBLICATIONS[kind], MOST_PUBLICATIONS[kind])):
        at = marks[PAPERS]
        memory[PAPER, at] = thing * PUBLICATIONS + paper
        memory[FIRST_LINK, at] = -1
        marks[PAPERS] = at + 1


@inlined
def put_advisor(out: Ints, marks: Longs, states: Longs, student: int) -> None:
    """Write who advises a student: a rank, then one of that rank."""
    rank = draw(states, 0, 2)
    number = next_int(states, 0, int(marks[FIRST_COUNT + rank]))
    put(out, marks, student, ADVISOR, int(marks[BASE]) + FACULTY_0[rank] + number)


@inlined
def put_student(out: Ints, marks: Longs, thing: int, kind: int) -> int:
    """Write what all students have; the code."""
    code = put_named(out, marks, thing, kind)
    put(out, marks, code, MEMBER_OF, int(marks[BASE]) + OWN)
    put_address(out, marks, thing)
    return code


@inlined
def put_undergraduate(out: Ints, marks: Longs, states: Longs, memory: Longs, number: int) -> None:
    """Write an undergraduate student, every fifth of whom has an advisor."""
    code = put_student(out, marks, UNDERGRADUATE_0 + number, 4)
    count = draw(states, 2, 4)
    draw_places(states, count, int(marks[COURSES]), memory, DRAWN)
    for i in range(count):
        course = int(marks[BASE]) + COURSE_0 + int(memory[DRAWN, i])
        put(out, marks, code, TAKES_COURSE, course)
    if next_int(states, 0, 5) == 0:
        put_advisor(out, marks, states, code)


@inlined
def put_graduate(
    out: Ints, marks: Longs, states: Longs, seen: Longs, memory: Longs, number: int
) -> None:
    """Write a graduate student, and note the papers that the student had a part in."""
    code = put_student(out, marks, GRADUATE_0 + number, 5)
    count = draw(states, 1, 3)
    draw_places(states, count, int(marks[GRADUATE_COURSES]), memory, DRAWN)
    for i in range(count):
        course = int(marks[BASE]) + GRADUATE_COURSE_0 + int(memory[DRAWN, i])
        put(out, marks, code, TAKES_COURSE, course)
    put_degree(out, marks, states, seen, code, UNDERGRADUATE_DEGREE_FROM)
    next_int(states, 0, 1)  # every one has an advisor
    put_advisor(out, marks, states, code)
    count = draw(states, 0, 5)
    draw_places(states, count, int(marks[PAPERS]), memory, DRAWN)
    for i in range(count):
        link_author(marks, memory, int(memory[DRAWN, i]), code)


@inlined
def link_author(marks: Longs, memory: Longs, paper: int, author: int) -> None:
    """Note one more author of a paper."""
    link = marks[LINKS]
    marks[LINKS] = link + 1
    memory[WHO, link] = author
    memory[NEXT_LINK, link] = -1
    if memory[FIRST_LINK, paper] < 0:
        memory[FIRST_LINK, paper] = link
    else:
        memory[NEXT_LINK, memory[LAST_LINK, paper]] = link
    memory[LAST_LINK, paper] = link


@inlined
def put_papers(out: Ints, marks: Longs, memory: Longs) -> None:
    """Write the publications of the department with their authors."""
    for i in range(marks[PAPERS]):
        paper = int(memory[PAPER, i])
        code = int(marks[BASE]) + PUBLICATION_0 + paper
        put(out, marks, code, TYPE, PUBLICATION)
        put(out, marks, code, NAME, PUBLICATION_NAME_0 + paper % PUBLICATIONS)
        put(out, marks, code, PUBLICATION_AUTHOR, int(marks[BASE]) + paper // PUBLICATIONS)
        link = int(memory[FIRST_LINK, i])
        while link >= 0:
            put(out, marks, code, PUBLICATION_AUTHOR, int(memory[WHO, link]))
            link = int(memory[NEXT_LINK, link])
