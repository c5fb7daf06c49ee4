"""The terms of LUBM as codes: constants, then the terms of one department after the other.

Departments look alike, so a term of one is its place in a layout that all of them share. A block
of data is made of codes and turned into texts or ids, whole columns at a time.
"""

from __future__ import annotations

from typing import Final

NAMESPACE: Final = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
TELEPHONE_NUMBER: Final = '"xxx-xxx-xxxx"'

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

# ---- how many there are at most ------------------------------------------------------------------

UNIVERSITIES: Final = 1000
"""Degrees come from these, whether or not they are generated."""

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
"""The code of a class is this plus its place in `CLASSES`."""

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
"""The name of a thing is this plus its place in its department: things of all departments share
names."""

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


def ub(local: str) -> str:
    """An IRI of the vocabulary, in N-Triples syntax.

    >>> ub("Course")
    '<http://swat.cse.lehigh.edu/onto/univ-bench.owl#Course>'
    """
    return f"<{NAMESPACE}{local}>"


def thing_names() -> list[str]:
    """The names of all things that a department can have, in the order of the layout.

    >>> names = thing_names()
    >>> names[0], names[COURSE_0], len(names) == THINGS
    ('FullProfessor0', 'Course0', True)
    """
    kinds = zip(CLASSES, COUNTS, strict=False)
    return [f"{kind}{number}" for kind, count in kinds for number in range(count)]


def constant_terms() -> list[str]:
    """The texts of all codes below those of departments.

    >>> terms = constant_terms()
    >>> terms[UNIVERSITY_0 + 7], terms[NAME_0 + COURSE_0], len(terms) == DEPARTMENT_0
    ('<http://www.University7.edu>', '"Course0"', True)
    """
    return [
        *map(ub, PROPERTIES),
        *map(ub, CLASSES),
        RDF_TYPE,
        TELEPHONE_NUMBER,
        *(f"<http://www.University{number}.edu>" for number in range(UNIVERSITIES)),
        *(f'"Department{number}"' for number in range(DEPARTMENTS)),
        *(f'"Research{number}"' for number in range(INTERESTS)),
        *(f'"Publication{number}"' for number in range(PUBLICATIONS)),
        *(f'"{name}"' for name in thing_names()),
    ]


def department_terms(place: str, university: str) -> list[str]:
    """The texts of a department's terms, given how it and its university are called.

    >>> department_terms("Department3.University7", "University7")[OWN]
    '<http://www.Department3.University7.edu>'
    """
    things = thing_names()
    return [
        *(f"<http://www.{place}.edu/{name}>" for name in things),
        *(
            f"<http://www.{place}.edu/{name}/Publication{number}>"
            for name in things[:FACULTY]
            for number in range(PUBLICATIONS)
        ),
        *(f'"{name}@{place}.edu"' for name in things[:PEOPLE]),
        f"<http://www.{place}.edu>",
        f"<http://www.{university}.edu>",
        f'"{university}"',
    ]
