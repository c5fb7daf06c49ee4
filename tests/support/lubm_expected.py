"""What is known of LUBM(n, 0): sizes, official answers, and answers to the queries of paper 5."""

SIZES = {1: (15, 100_543), 5: (93, 624_532), 10: (189, 1_272_575)}
"""Universities -> departments and distinct triples."""

ANSWERS = {
    1: (0, 828, 0, 10, 10, 125, 30),
    5: (9, 5_063, 0, 10, 10, 125, 213),
    10: (28, 10_278, 0, 10, 10, 125, 422),
}
"""Universities -> rows of Q1 to Q7."""

# The classes and properties that a reasoner would take for those of the standard queries.
STUDENT = "VALUES ?student { ub:GraduateStudent ub:UndergraduateStudent } ?x a ?student ."
PROFESSOR = "ub:FullProfessor ub:AssociateProfessor ub:AssistantProfessor"
COURSE = "VALUES ?course { ub:Course ub:GraduateCourse }"
DEGREE = "ub:undergraduateDegreeFrom|ub:mastersDegreeFrom|ub:doctoralDegreeFrom"

PREFIXES = """PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>
PREFIX d0: <http://www.Department0.University0.edu/>
"""
DEPARTMENT = "<http://www.Department0.University0.edu>"
UNIVERSITY = "<http://www.University0.edu>"

STANDARD = {
    1: (4, "?x a ub:GraduateStudent ; ub:takesCourse d0:GraduateCourse0"),
    2: (
        0,
        (
            "?x a ub:GraduateStudent ; ub:memberOf ?z ; ub:undergraduateDegreeFrom ?y ."
            "?y a ub:University . ?z a ub:Department ; ub:subOrganizationOf ?y"
        ),
    ),
    3: (6, "?x a ub:Publication ; ub:publicationAuthor d0:AssistantProfessor0"),
    4: (
        34,
        (
            f"VALUES ?t {{ {PROFESSOR} }} ?x a ?t ; ub:worksFor {DEPARTMENT} ;"
            "ub:name ?y1 ; ub:emailAddress ?y2 ; ub:telephone ?y3"
        ),
    ),
    5: (719, f"?x ub:memberOf|ub:worksFor|ub:headOf {DEPARTMENT}"),
    6: (7790, STUDENT),
    7: (
        67,
        (
            f"{STUDENT} {COURSE} ?x ub:takesCourse ?y . ?y a ?course ."
            "d0:AssociateProfessor0 ub:teacherOf ?y"
        ),
    ),
    8: (
        7790,
        (
            f"{STUDENT} ?x ub:memberOf ?y ; ub:emailAddress ?z ."
            f"?y a ub:Department ; ub:subOrganizationOf {UNIVERSITY}"
        ),
    ),
    9: (
        208,
        (
            f"{STUDENT} {COURSE} VALUES ?faculty {{ {PROFESSOR} ub:Lecturer }}"
            "?x ub:advisor ?y ; ub:takesCourse ?z . ?y a ?faculty ; ub:teacherOf ?z . ?z a ?course"
        ),
    ),
    10: (4, f"{STUDENT} ?x ub:takesCourse d0:GraduateCourse0"),
    11: (224, f"?x a ub:ResearchGroup ; ub:subOrganizationOf+ {UNIVERSITY}"),
    12: (15, f"?x ub:headOf ?y . ?y a ub:Department ; ub:subOrganizationOf {UNIVERSITY}"),
    13: (1, f"?x {DEGREE} {UNIVERSITY}"),
    14: (5916, "?x a ub:UndergraduateStudent"),
}
"""Standard query -> rows of its official answer, and its pattern with the inference written out."""

STANDARD_VARIABLES = {2: "?x ?y ?z", 4: "?x ?y1 ?y2 ?y3", 7: "?x ?y", 8: "?x ?y ?z", 9: "?x ?y ?z"}

CHAIRS = (7, 4, 4, 4, 3, 4, 1, 1, 3, 0, 5, 1, 2, 7, 6)
"""The official answer of standard query 12: which full professor heads which department."""

TAUGHT_GRADUATES = {17: [29, 106], 18: [30, 33, 34, 92, 111, 134]}
TAUGHT_UNDERGRADUATES = {
    15: [
        13, 24, 44, 55, 58, 124, 146, 163, 176, 181, 198, 230, 246, 253, 257, 287, 292, 302, 306,
        316, 325, 330, 337, 388, 413, 440, 449, 463, 465, 471, 490,
    ],
    16: [
        2, 35, 57, 73, 79, 88, 107, 110, 138, 193, 202, 205, 233, 268, 270, 281, 301, 356, 385,
        388, 400, 435, 484, 496, 499, 505, 519, 530,
    ],
}  # fmt: skip
"""The official answer of standard query 7: course -> the students who take it."""


def standard_query(number):
    """The text of a standard query."""
    variables = STANDARD_VARIABLES.get(number, "?x")
    return f"{PREFIXES}SELECT DISTINCT {variables} WHERE {{ {STANDARD[number][1]} }}"
