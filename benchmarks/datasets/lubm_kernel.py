"""Term codes and the compiled loop that generates LUBM, department by department.

A term is a code: constants, then the terms of one department after the other. All departments
share one layout, so a term of a department is its index in that layout. Triples are drawn and
written in the order of LUBM's own generator, UBA; draws without an effect are made too, because
later numbers depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from numba import njit

from benchmarks.datasets.java_random import MASK, MULTIPLIER, next_int

if TYPE_CHECKING:
    from benchmarks.datasets.triples import Ints, Longs

PROPERTIES: Final = (
    "advisor", "doctoralDegreeFrom", "emailAddress", "headOf", "mastersDegreeFrom", "memberOf",
    "name", "publicationAuthor", "researchInterest", "subOrganizationOf", "takesCourse",
    "teacherOf", "teachingAssistantOf", "telephone", "undergraduateDegreeFrom", "worksFor",
)  # fmt: skip

CLASSES: Final = (
    "FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer",
    "UndergraduateStudent", "GraduateStudent", "Course", "GraduateCourse", "ResearchGroup",
    "Publication", "University", "Department", "TeachingAssistant", "ResearchAssistant",
)  # fmt: skip
"""The first nine are also the kinds of things that a department numbers."""

# ---- upper bounds ------------------------------------------------------------------------------

UNIVERSITIES: Final = 1000
"""Degrees are from these universities, generated or not."""

DEPARTMENTS: Final = 25
INTERESTS: Final = 30
PUBLICATIONS: Final = 20
"""Of one author."""

FULLS, ASSOCIATES, ASSISTANTS, LECTURERS = 10, 14, 11, 7
FACULTY: Final = FULLS + ASSOCIATES + ASSISTANTS + LECTURERS
COUNTS: Final = (
    FULLS, ASSOCIATES, ASSISTANTS, LECTURERS,
    14 * FACULTY, 4 * FACULTY, 2 * FACULTY, 2 * FACULTY, 20,
)  # fmt: skip
"""Of each kind in a department, in the order of `CLASSES`."""

# ---- constants -----------------------------------------------------------------------------------

(
    ADVISOR, DOCTORAL_DEGREE_FROM, EMAIL_ADDRESS, HEAD_OF, MASTERS_DEGREE_FROM, MEMBER_OF,
    NAME, PUBLICATION_AUTHOR, RESEARCH_INTEREST, SUB_ORGANIZATION_OF, TAKES_COURSE,
    TEACHER_OF, TEACHING_ASSISTANT_OF, TELEPHONE, UNDERGRADUATE_DEGREE_FROM, WORKS_FOR,
) = range(len(PROPERTIES))  # fmt: skip

CLASS_0: Final = len(PROPERTIES)
"""The code of a class is this plus its index in `CLASSES`."""

(
    RESEARCH_GROUP, PUBLICATION, UNIVERSITY, DEPARTMENT, TEACHING_ASSISTANT, RESEARCH_ASSISTANT,
) = range(CLASS_0 + 8, CLASS_0 + 14)  # fmt: skip

TYPE: Final = CLASS_0 + len(CLASSES)
PHONE: Final = TYPE + 1
UNIVERSITY_0: Final = PHONE + 1
DEPARTMENT_NAME_0: Final = UNIVERSITY_0 + UNIVERSITIES
INTEREST_0: Final = DEPARTMENT_NAME_0 + DEPARTMENTS
PUBLICATION_NAME_0: Final = INTEREST_0 + INTERESTS
NAME_0: Final = PUBLICATION_NAME_0 + PUBLICATIONS
"""The name of a thing is this plus its index in its department: names are
shared by all departments."""

THINGS: Final = sum(COUNTS)

DEPARTMENT_0: Final = NAME_0 + THINGS
"""Codes from here on are of departments: `LOCALS` for the first of a block, and so on."""

# ---- the layout of a department ------------------------------------------------------------------

FULL_0: Final = 0
ASSOCIATE_0: Final = FULL_0 + FULLS
ASSISTANT_0: Final = ASSOCIATE_0 + ASSOCIATES
LECTURER_0: Final = ASSISTANT_0 + ASSISTANTS
UNDERGRADUATE_0: Final = FACULTY
GRADUATE_0: Final = UNDERGRADUATE_0 + COUNTS[4]
COURSE_0: Final = GRADUATE_0 + COUNTS[5]
GRADUATE_COURSE_0: Final = COURSE_0 + COUNTS[6]
GROUP_0: Final = GRADUATE_COURSE_0 + COUNTS[7]
PUBLICATION_0: Final = THINGS
EMAIL_0: Final = PUBLICATION_0 + FACULTY * PUBLICATIONS
PEOPLE: Final = COURSE_0
OWN: Final = EMAIL_0 + PEOPLE
"""The department itself; its university and that one's name follow."""

OWN_UNIVERSITY: Final = OWN + 1
UNIVERSITY_NAME: Final = OWN + 2
LOCALS: Final = OWN + 3

# ---- the loop ------------------------------------------------------------------------------------

COURSE_POOL: Final = 100
"""Courses that a department can offer, of either kind."""

FACULTY_0: Final = (FULL_0, ASSOCIATE_0, ASSISTANT_0, LECTURER_0)
LEAST_PUBLICATIONS: Final = (15, 10, 5, 0)
MAX_PUBLICATIONS: Final = (20, 18, 10, 5)

# State of the loop: the current department, and positions.
(
    ROWS, BASE, REPEATS, FIRST_COUNT, ASSOCIATE_COUNT, ASSISTANT_COUNT, LECTURER_COUNT,
    COURSES, GRADUATE_COURSES, PAPERS, LINKS, CHAIR, UNIVERSITY_AT, DEPARTMENT_AT, DEPARTMENTS_HERE,
) = range(15)  # fmt: skip
CURSORS: Final = 15

# Rows of the working memory: numbers drawn, the same in order, papers, and their co-authors.
DRAWN, SORTED, PAPER, FIRST_LINK, LAST_LINK, NEXT_LINK, WHO, DRAWN_COURSES = range(8)
MEMORIES: Final = 8
MEMORY: Final = 1024


@njit(cache=True)
def draw(states: Longs, least: int, most: int) -> int:
    """The next number in [least, most]."""
    return least + next_int(states, 0, most - least + 1)


@njit(cache=True)
def draw_distinct(states: Longs, count: int, size: int, memory: Longs, into: int) -> None:
    """Draw distinct indexes of a list of `size` elements, without replacement."""
    for i in range(count):
        index = next_int(states, 0, size - i)
        at = 0
        while at < i and memory[SORTED, at] <= index:
            index += 1
            at += 1
        for j in range(i, at, -1):
            memory[SORTED, j] = memory[SORTED, j - 1]
        memory[SORTED, at] = index
        memory[into, i] = index


@njit(cache=True)
def put(out: Ints, cursors: Longs, s: int, p: int, o: int) -> None:
    """Write a triple."""
    row = cursors[ROWS]
    out[row, 0] = s
    out[row, 1] = p
    out[row, 2] = o
    cursors[ROWS] = row + 1


@njit(cache=True)
def put_degree(
    out: Ints, cursors: Longs, states: Longs, seen: Longs, person: int, degree: int
) -> None:
    """Write the university of a degree; a university is declared at its first mention."""
    number = next_int(states, 0, UNIVERSITIES)
    put(out, cursors, person, degree, UNIVERSITY_0 + number)
    if cursors[REPEATS] != 0 or seen[number] == 0:
        put(out, cursors, UNIVERSITY_0 + number, TYPE, UNIVERSITY)
        seen[number] = 1


@njit(cache=True)
def put_courses(
    out: Ints, cursors: Longs, states: Longs, person: int, first: int, kind: int
) -> None:
    """Write the one or two next courses, which this person teaches."""
    for _ in range(draw(states, 1, 2)):
        given = int(cursors[kind])
        next_int(states, 0, COURSE_POOL - given)  # drawn by UBA without an effect
        put(out, cursors, person, TEACHER_OF, int(cursors[BASE]) + first + given)
        cursors[kind] = given + 1


@njit(cache=True)
def put_named(out: Ints, cursors: Longs, thing: int, kind: int) -> int:
    """Write a thing's type and name; returns its code."""
    code = int(cursors[BASE]) + thing
    put(out, cursors, code, TYPE, CLASS_0 + kind)
    put(out, cursors, code, NAME, NAME_0 + thing)
    return code


@njit(cache=True)
def put_address(out: Ints, cursors: Longs, thing: int) -> None:
    """Write a person's mail address and telephone number."""
    base = int(cursors[BASE])
    put(out, cursors, base + thing, EMAIL_ADDRESS, base + EMAIL_0 + thing)
    put(out, cursors, base + thing, TELEPHONE, PHONE)


@njit(cache=True)
def put_faculty(
    out: Ints, cursors: Longs, states: Longs, seen: Longs, memory: Longs, kind: int, number: int
) -> None:
    """Write a member of the faculty, and record the papers."""
    thing = FACULTY_0[kind] + number
    code = put_named(out, cursors, thing, kind)
    put_courses(out, cursors, states, code, COURSE_0, COURSES)
    put_courses(out, cursors, states, code, GRADUATE_COURSE_0, GRADUATE_COURSES)
    put_degree(out, cursors, states, seen, code, UNDERGRADUATE_DEGREE_FROM)
    put_degree(out, cursors, states, seen, code, MASTERS_DEGREE_FROM)
    put_degree(out, cursors, states, seen, code, DOCTORAL_DEGREE_FROM)
    put(out, cursors, code, WORKS_FOR, int(cursors[BASE]) + OWN)
    put_address(out, cursors, thing)
    if kind < 3:
        put(out, cursors, code, RESEARCH_INTEREST, INTEREST_0 + next_int(states, 0, INTERESTS))
    if kind == 0 and number == cursors[CHAIR]:
        put(out, cursors, code, HEAD_OF, int(cursors[BASE]) + OWN)
    for paper in range(draw(states, LEAST_PUBLICATIONS[kind], MAX_PUBLICATIONS[kind])):
        at = cursors[PAPERS]
        memory[PAPER, at] = thing * PUBLICATIONS + paper
        memory[FIRST_LINK, at] = -1
        cursors[PAPERS] = at + 1


@njit(cache=True)
def put_advisor(out: Ints, cursors: Longs, states: Longs, student: int) -> None:
    """Write who advises a student: a rank, then one of that rank."""
    rank = draw(states, 0, 2)
    number = next_int(states, 0, int(cursors[FIRST_COUNT + rank]))
    put(out, cursors, student, ADVISOR, int(cursors[BASE]) + FACULTY_0[rank] + number)


@njit(cache=True)
def put_student(out: Ints, cursors: Longs, thing: int, kind: int) -> int:
    """Write what all students have; returns the code."""
    code = put_named(out, cursors, thing, kind)
    put(out, cursors, code, MEMBER_OF, int(cursors[BASE]) + OWN)
    put_address(out, cursors, thing)
    return code


@njit(cache=True)
def put_undergraduate(out: Ints, cursors: Longs, states: Longs, memory: Longs, number: int) -> None:
    """Write an undergraduate student, with an advisor in one of five cases."""
    code = put_student(out, cursors, UNDERGRADUATE_0 + number, 4)
    count = draw(states, 2, 4)
    draw_distinct(states, count, int(cursors[COURSES]), memory, DRAWN)
    for i in range(count):
        course = int(cursors[BASE]) + COURSE_0 + int(memory[DRAWN, i])
        put(out, cursors, code, TAKES_COURSE, course)
    if next_int(states, 0, 5) == 0:
        put_advisor(out, cursors, states, code)


@njit(cache=True)
def put_graduate(
    out: Ints, cursors: Longs, states: Longs, seen: Longs, memory: Longs, number: int
) -> None:
    """Write a graduate student, and record the papers that the student co-authored."""
    code = put_student(out, cursors, GRADUATE_0 + number, 5)
    count = draw(states, 1, 3)
    draw_distinct(states, count, int(cursors[GRADUATE_COURSES]), memory, DRAWN)
    for i in range(count):
        course = int(cursors[BASE]) + GRADUATE_COURSE_0 + int(memory[DRAWN, i])
        put(out, cursors, code, TAKES_COURSE, course)
    put_degree(out, cursors, states, seen, code, UNDERGRADUATE_DEGREE_FROM)
    next_int(states, 0, 1)  # drawn by UBA: every graduate student has an advisor
    put_advisor(out, cursors, states, code)
    count = draw(states, 0, 5)
    draw_distinct(states, count, int(cursors[PAPERS]), memory, DRAWN)
    for i in range(count):
        link_author(cursors, memory, int(memory[DRAWN, i]), code)


@njit(cache=True)
def link_author(cursors: Longs, memory: Longs, paper: int, author: int) -> None:
    """Record one more author of a paper."""
    link = cursors[LINKS]
    cursors[LINKS] = link + 1
    memory[WHO, link] = author
    memory[NEXT_LINK, link] = -1
    if memory[FIRST_LINK, paper] < 0:
        memory[FIRST_LINK, paper] = link
    else:
        memory[NEXT_LINK, memory[LAST_LINK, paper]] = link
    memory[LAST_LINK, paper] = link


@njit(cache=True)
def put_papers(out: Ints, cursors: Longs, memory: Longs) -> None:
    """Write the publications of the department with their authors."""
    for i in range(cursors[PAPERS]):
        paper = int(memory[PAPER, i])
        code = int(cursors[BASE]) + PUBLICATION_0 + paper
        put(out, cursors, code, TYPE, PUBLICATION)
        put(out, cursors, code, NAME, PUBLICATION_NAME_0 + paper % PUBLICATIONS)
        put(out, cursors, code, PUBLICATION_AUTHOR, int(cursors[BASE]) + paper // PUBLICATIONS)
        link = int(memory[FIRST_LINK, i])
        while link >= 0:
            put(out, cursors, code, PUBLICATION_AUTHOR, int(memory[WHO, link]))
            link = int(memory[NEXT_LINK, link])


LEAST_DEPARTMENTS: Final = 15
MAX_DEPARTMENTS: Final = 25

MAX_ROWS: Final = 13_000
"""Upper bound of a department's triples: 42 in the faculty, 588 and 168 students, 840 papers."""


@njit(cache=True)
def start_university(states: Longs, seed: int, number: int) -> int:
    """Seed the generator of a university; returns how many departments it has."""
    states[0] = ((seed + number) ^ MULTIPLIER) & MASK
    return draw(states, LEAST_DEPARTMENTS, MAX_DEPARTMENTS)


@njit(cache=True)
def put_head(out: Ints, cursors: Longs, seen: Longs) -> None:
    """Write the department and, with its first one, the university."""
    base, number = int(cursors[BASE]), int(cursors[UNIVERSITY_AT])
    if cursors[DEPARTMENT_AT] == 0:
        known = number < UNIVERSITIES and seen[number] != 0
        if cursors[REPEATS] != 0 or not known:
            put(out, cursors, base + OWN_UNIVERSITY, TYPE, UNIVERSITY)
        if number < UNIVERSITIES:
            seen[number] = 1
        put(out, cursors, base + OWN_UNIVERSITY, NAME, base + UNIVERSITY_NAME)
    put(out, cursors, base + OWN, TYPE, DEPARTMENT)
    put(out, cursors, base + OWN, NAME, DEPARTMENT_NAME_0 + int(cursors[DEPARTMENT_AT]))
    put(out, cursors, base + OWN, SUB_ORGANIZATION_OF, base + OWN_UNIVERSITY)
    if cursors[REPEATS] != 0:
        put(out, cursors, base + OWN_UNIVERSITY, TYPE, UNIVERSITY)


@njit(cache=True)
def put_assistants(
    out: Ints,
    cursors: Longs,
    states: Longs,
    memory: Longs,
    graduates: int,
    teachers: int,
    researchers: int,
) -> None:
    """Write which graduate students are teaching and research assistants."""
    base = int(cursors[BASE])
    draw_distinct(states, teachers + researchers, graduates, memory, DRAWN)
    draw_distinct(states, teachers, int(cursors[COURSES]), memory, DRAWN_COURSES)
    for i in range(teachers + researchers):
        code = base + GRADUATE_0 + int(memory[DRAWN, i])
        put(out, cursors, code, TYPE, TEACHING_ASSISTANT if i < teachers else RESEARCH_ASSISTANT)
        if i < teachers:
            course = base + COURSE_0 + int(memory[DRAWN_COURSES, i])
            put(out, cursors, code, TEACHING_ASSISTANT_OF, course)


@njit(cache=True)
def put_department(out: Ints, cursors: Longs, states: Longs, seen: Longs, memory: Longs) -> None:
    """Write a department: the count of each kind is drawn first, then the rest."""
    cursors[FIRST_COUNT] = draw(states, 7, 10)
    cursors[ASSOCIATE_COUNT] = draw(states, 10, 14)
    cursors[ASSISTANT_COUNT] = draw(states, 8, 11)
    cursors[LECTURER_COUNT] = draw(states, 5, 7)
    faculty = 0
    for kind in range(4):
        faculty += int(cursors[FIRST_COUNT + kind])
    undergraduates = draw(states, 8 * faculty, 14 * faculty)
    graduates = draw(states, 3 * faculty, 4 * faculty)
    teachers = draw(states, graduates // 5, graduates // 4)
    researchers = draw(states, graduates // 4, graduates // 3)
    groups = draw(states, 10, 20)
    cursors[CHAIR] = next_int(states, 0, int(cursors[FIRST_COUNT]))
    cursors[COURSES] = cursors[GRADUATE_COURSES] = cursors[PAPERS] = cursors[LINKS] = 0

    put_head(out, cursors, seen)
    for kind in range(4):
        for number in range(cursors[FIRST_COUNT + kind]):
            put_faculty(out, cursors, states, seen, memory, kind, number)
    for number in range(undergraduates):
        put_undergraduate(out, cursors, states, memory, number)
    for number in range(graduates):
        put_graduate(out, cursors, states, seen, memory, number)
    base = int(cursors[BASE])
    for number in range(groups):
        put(out, cursors, base + GROUP_0 + number, TYPE, RESEARCH_GROUP)
        put(out, cursors, base + GROUP_0 + number, SUB_ORGANIZATION_OF, base + OWN)
    put_papers(out, cursors, memory)
    for number in range(cursors[COURSES]):
        put_named(out, cursors, COURSE_0 + number, 6)
    for number in range(cursors[GRADUATE_COURSES]):
        put_named(out, cursors, GRADUATE_COURSE_0 + number, 7)
    put_assistants(out, cursors, states, memory, graduates, teachers, researchers)


@njit(cache=True)
def make_departments(
    states: Longs,
    seed: int,
    universities: int,
    cursors: Longs,
    seen: Longs,
    memory: Longs,
    out: Ints,
    numbers: Ints,
) -> int:
    """Write departments while there is space for one more; returns how many.

    `numbers` receives the university and the department number of each.
    """
    cursors[ROWS] = 0
    made = 0
    while (
        cursors[UNIVERSITY_AT] < universities
        and cursors[ROWS] + MAX_ROWS <= len(out)
        and made < len(numbers)
    ):
        if cursors[DEPARTMENT_AT] == 0:
            cursors[DEPARTMENTS_HERE] = start_university(states, seed, int(cursors[UNIVERSITY_AT]))
        cursors[BASE] = DEPARTMENT_0 + made * LOCALS
        numbers[made, 0] = cursors[UNIVERSITY_AT]
        numbers[made, 1] = cursors[DEPARTMENT_AT]
        put_department(out, cursors, states, seen, memory)
        made += 1
        cursors[DEPARTMENT_AT] += 1
        if cursors[DEPARTMENT_AT] == cursors[DEPARTMENTS_HERE]:
            cursors[DEPARTMENT_AT] = 0
            cursors[UNIVERSITY_AT] += 1
    return made
