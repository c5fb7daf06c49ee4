"""The generator against the published sizes, and against the counts that the benchmark defines."""

import re
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from support.lubm_expected import CHAIRS, SIZES

from benchmarks.datasets.java_random import JavaRandom
from benchmarks.datasets.lubm import NAMESPACE, Lubm
from benchmarks.harness import BenchmarkError

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
DEPARTMENT = re.compile(r"http://www\.(Department\d+)\.University\d+\.edu")


def ub(local):
    return f"<{NAMESPACE}{local}>"


def triples_of(model):
    found = []
    for block in model.indexed_blocks():
        texts = block.columns()
        found += zip(texts.s.to_pylist(), texts.p.to_pylist(), texts.o.to_pylist(), strict=True)
    return found


@pytest.fixture(scope="module")
def triples():
    return triples_of(Lubm(1))


@pytest.fixture(scope="module")
def by_department(triples):
    """Department -> how often each class and property occurs in it."""
    counts = defaultdict(Counter)
    for s, p, o in triples:
        if department := DEPARTMENT.search(s):
            counts[department[1]][o if p == TYPE else p] += 1
    return counts


@pytest.mark.parametrize("universities", SIZES)
def test_sizes_are_the_published_ones(universities):
    departments, triples = SIZES[universities]
    model = Lubm(universities)
    blocks = list(model.blocks())
    assert sum(len(block.departments) for block in blocks) == departments
    assert sum(len(block.triples) for block in blocks) == triples


def test_every_triple_comes_once(triples):
    assert len(set(triples)) == len(triples) == 100_543


def test_every_triple_comes_once_in_several_universities():
    found = triples_of(Lubm(3))
    assert len(set(found)) == len(found)


def test_properties_and_classes(triples):
    assert {p for _, p, _ in triples} == {TYPE, *map(ub, (
        "name", "subOrganizationOf", "teacherOf", "undergraduateDegreeFrom", "mastersDegreeFrom",
        "doctoralDegreeFrom", "worksFor", "emailAddress", "telephone", "researchInterest", "headOf",
        "memberOf", "takesCourse", "advisor", "publicationAuthor", "teachingAssistantOf",
    ))}  # fmt: skip
    assert {o for _, p, o in triples if p == TYPE} == set(map(ub, (
        "University", "Department", "FullProfessor", "AssociateProfessor", "AssistantProfessor",
        "Lecturer", "UndergraduateStudent", "GraduateStudent", "TeachingAssistant",
        "ResearchAssistant", "Course", "GraduateCourse", "Publication", "ResearchGroup",
    )))  # fmt: skip


def test_departments_have_as_many_of_each_as_the_benchmark_says(by_department):
    assert len(by_department) == 15
    for found in by_department.values():
        full, associate, assistant, lecturer, under, graduate = (
            found[ub(name)]
            for name in (
                *("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer"),
                *("UndergraduateStudent", "GraduateStudent"),
            )
        )
        faculty = full + associate + assistant + lecturer
        assert 7 <= full <= 10 and 10 <= associate <= 14
        assert 8 <= assistant <= 11 and 5 <= lecturer <= 7
        assert 8 * faculty <= under <= 14 * faculty
        assert 3 * faculty <= graduate <= 4 * faculty
        assert graduate // 5 <= found[ub("TeachingAssistant")] <= graduate // 4
        assert graduate // 4 <= found[ub("ResearchAssistant")] <= graduate // 3
        assert found[ub("teachingAssistantOf")] == found[ub("TeachingAssistant")]
        assert 10 <= found[ub("ResearchGroup")] <= 20
        assert faculty <= found[ub("Course")] <= 2 * faculty
        assert faculty <= found[ub("GraduateCourse")] <= 2 * faculty
        assert found[ub("teacherOf")] == found[ub("Course")] + found[ub("GraduateCourse")]
        assert found[ub("researchInterest")] == faculty - lecturer
        assert found[ub("worksFor")] == found[ub("doctoralDegreeFrom")] == faculty
        assert found[ub("undergraduateDegreeFrom")] == faculty + graduate
        assert found[ub("memberOf")] == under + graduate
        assert found[ub("telephone")] == found[ub("emailAddress")] == faculty + under + graduate
        assert found[ub("headOf")] == 1
        papers = 15 * full + 10 * associate + 5 * assistant
        most = 20 * full + 18 * associate + 10 * assistant + 5 * lecturer
        assert papers <= found[ub("Publication")] <= most
        authors = found[ub("publicationAuthor")] - found[ub("Publication")]
        assert 0 < authors <= 5 * graduate


def test_a_fifth_of_the_undergraduates_and_every_graduate_have_an_advisor(triples):
    advised = Counter("Under" in s for s, p, _ in triples if p == ub("advisor"))
    kinds = Counter(o for _, p, o in triples if p == TYPE)
    assert advised[False] == kinds[ub("GraduateStudent")]
    assert 0.18 < advised[True] / kinds[ub("UndergraduateStudent")] < 0.22


def test_terms_are_written_as_the_benchmark_does(triples):
    professor = "<http://www.Department0.University0.edu/FullProfessor7>"
    known = {
        (professor, ub("name"), '"FullProfessor7"'),
        (professor, ub("emailAddress"), '"FullProfessor7@Department0.University0.edu"'),
        (professor, ub("telephone"), '"xxx-xxx-xxxx"'),
        (professor, ub("headOf"), "<http://www.Department0.University0.edu>"),
        ("<http://www.University0.edu>", ub("name"), '"University0"'),
        ("<http://www.Department14.University0.edu>", ub("name"), '"Department14"'),
    }
    assert known <= set(triples)
    paper = f"{professor[:-1]}/Publication14>"
    assert {
        (paper, ub("name"), '"Publication14"'),
        (paper, ub("publicationAuthor"), professor),
    } <= (set(triples))


def test_heads_of_departments_are_the_official_ones(triples):
    heads = {o: s for s, p, o in triples if p == ub("headOf")}
    assert heads == {
        f"<http://www.Department{number}.University0.edu>": (
            f"<http://www.Department{number}.University0.edu/FullProfessor{chair}>"
        )
        for number, chair in enumerate(CHAIRS)
    }


def test_repeats_declare_universities_wherever_they_are_mentioned(triples):
    repeated = triples_of(Lubm(1, repeats=True))
    assert set(repeated) == set(triples) and len(repeated) > len(triples)
    mentions = [o for _, p, o in repeated if "DegreeFrom" in p]
    mentions += [o for s, p, o in repeated if p == ub("subOrganizationOf") and "/" not in s[8:]]
    declared = Counter(s for s, p, o in repeated if o == ub("University"))
    assert declared == Counter(mentions) + Counter(["<http://www.University0.edu>"])
    following = pairwise(repeated)
    assert all(
        second == (first[2], TYPE, ub("University"))
        for first, second in following
        if "DegreeFrom" in first[1]
    )


def test_small_blocks_make_the_same_data():
    small, large = (
        b"".join(bytes(block.indexed().columns().lines()) for block in model.blocks(rows))
        for model, rows in ((Lubm(2, seed=3), 1), (Lubm(2, seed=3), 1 << 20))
    )
    assert small == large
    assert all(len(block.departments) == 1 for block in Lubm(2).blocks(1))


@pytest.mark.slow
def test_more_universities_than_degrees_come_from():
    """The first 1000 are declared by degrees or by themselves, later ones by themselves alone."""
    last = Lubm(1002, seed=1)
    declared = Counter()
    for block in last.blocks(1 << 20):
        if block.departments[-1, 0] >= 998:
            texts = block.indexed().columns()
            rows = zip(texts.s.to_pylist(), texts.o.to_pylist(), strict=True)
            declared.update(s for s, o in rows if o == ub("University"))
    assert declared["<http://www.University1000.edu>"] == 1
    assert declared["<http://www.University1001.edu>"] == 1
    assert declared["<http://www.University999.edu>"] == 0


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31 - 1])
def test_a_university_starts_from_the_seed_and_its_number(seed):
    """The seed is multiplied by the least int of Java, and the number added."""
    drawn = [15 + JavaRandom(seed * -(2**31) + number).next_int(11) for number in range(4)]
    places = np.concatenate([block.departments for block in Lubm(4, seed).blocks()])
    assert np.bincount(places[:, 0]).tolist() == drawn


@pytest.mark.parametrize("universities", [0, -1, 1_000_001])
def test_numbers_that_cannot_be(universities):
    with pytest.raises(BenchmarkError, match="invalid number of universities"):
        Lubm(universities)


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_seeds_that_cannot_be(seed):
    with pytest.raises(BenchmarkError, match=r"invalid seed"):
        Lubm(1, seed)
