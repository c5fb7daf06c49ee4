"""The stages of a job, as data."""

from __future__ import annotations

import pytest

from graphtide.lang.tide.program import Program
from graphtide.spark.job import JobSpec
from graphtide.spark.partition.program import program_spec
from graphtide.spark.state.messages import CHANGES, MESSAGES, RULE_CHANGES, STREAM_CHANGES
from graphtide.spark.topology import stages_of

SHOWN = "SELECT ?a ?b { ?a <ex:p> ?b }"
HIDDEN = "SELECT (STR(?c) AS ?n) { ?a <ex:p> ?b . ?b <ex:q> ?c }"
WINDOW = (
    "REGISTER ISTREAM <ex:o> AS SELECT ?a FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 10 STEP 5] "
    "WHERE { WINDOW <ex:w> { ?a <ex:p> ?b } }"
)
EVENTS = "EVENT A(?x) AS { ?x <ex:a> ?y }\n"
PATTERN = "PATTERN P(?x) AS (A(?x) -> A(?x)) WITHIN 5s\n"
RULE = "RULE R WHEN EVENT A(?x) THEN CALL f(?x)\n"


def stages(query, program=""):
    spec = program_spec(Program.parse(program), 4, 1000) if program else None
    return stages_of(JobSpec((("q", query),), 4, program=spec))


@pytest.mark.parametrize(
    ("query", "program", "names"),
    [
        (SHOWN, "", ["match"]),
        (HIDDEN, "", ["match", "consolidate"]),
        (SHOWN, EVENTS + PATTERN, ["match", "patterns"]),
        (SHOWN, EVENTS + RULE, ["match", "rules"]),
        (HIDDEN, EVENTS + PATTERN + RULE, ["match", "consolidate", "patterns", "rules"]),
    ],
)
def test_the_stages_that_a_job_needs(query, program, names):
    found = stages(query, program)
    assert [stage.name for stage in found] == names
    assert all(stage.output == MESSAGES for stage in found)
    assert all(stage.input == MESSAGES for stage in found[1:])


def test_the_match_reads_the_columns_that_it_needs():
    assert stages(SHOWN)[0].input == CHANGES
    assert stages(WINDOW)[0].input == STREAM_CHANGES
    assert stages(SHOWN, EVENTS + RULE)[0].input == RULE_CHANGES


def test_only_counts_make_consolidation_stateful():
    assert not stages(HIDDEN)[1].stateful
    assert stages(HIDDEN.replace("SELECT", "SELECT DISTINCT"))[1].stateful
