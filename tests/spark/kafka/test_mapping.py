"""Mappings of tables to triples: what is accepted, and what is wrong where."""

from __future__ import annotations

import json

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark.kafka.mapping import ColumnMapping, IriTemplate, read_mapping

EX = "http://example.org/"
GOOD = {"subject": EX + "{id}", "columns": {"name": EX + "name"}}


def test_a_mapping_is_an_object_or_a_file(tmp_path):
    tables = {"train": {**GOOD, "type": EX + "Train", "graph": EX + "{day}/x"}}
    path = tmp_path / "tables.json"
    path.write_text(json.dumps(tables), encoding="utf-8")
    found = read_mapping(path)
    assert found == read_mapping(tables)
    assert found["train"].subject == IriTemplate((EX, ""), ("id",))
    assert found["train"].graph == IriTemplate((EX, "/x"), ("day",))
    assert found["train"].columns == {"name": ColumnMapping(EX + "name")}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "the mapping has no tables"),
        ([], "the mapping has no tables"),
        ({"t": 7}, "t: 7 is not an object"),
        ({"t": {}}, "t: subject: None is not a template"),
        ({"t": {"subject": EX}}, "the same for all rows"),
        ({"t": {**GOOD, "subject": EX + "a b{id}"}}, "t: subject: .* is not an IRI"),
        ({"t": {**GOOD, "subject": "{id}"}}, "t: subject: .* is not an IRI"),
        ({"t": {**GOOD, "kind": EX}}, "t: no field 'kind'"),
        ({"t": {**GOOD, "type": "Train"}}, "t: type: 'Train' is not an IRI"),
        ({"t": {**GOOD, "columns": ["name"]}}, "t: columns is not an object"),
        ({"t": {**GOOD, "columns": {"a": 7}}}, "t.a: 7 is not an object"),
        ({"t": {**GOOD, "columns": {"a": "<x>"}}}, "t.a: '<x>' is not an IRI"),
        ({"t": {**GOOD, "columns": {"a": {}}}}, "t.a: predicate: None is not an IRI"),
        (
            {"t": {**GOOD, "columns": {"a": {"predicate": EX, "language": "en us"}}}},
            "t.a: 'en us' is not a language tag",
        ),
        (
            {"t": {**GOOD, "columns": {"a": {"predicate": EX, "iri": EX, "datatype": EX}}}},
            "give one of datatype, language and iri",
        ),
    ],
)
def test_what_is_no_mapping_is_said_with_its_place(tables, message):
    with pytest.raises(GraphtideError, match=message):
        read_mapping(tables)


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "tables.json").write_text("{", encoding="utf-8")
    for name in ("tables.json", "missing.json"):
        with pytest.raises(GraphtideError, match=f"{name} is not a mapping"):
            read_mapping(tmp_path / name)
