"""Well-known prefixes, byte order marks, and predicates that other stores compute."""

from __future__ import annotations

import pytest

import graphtide as gt
from graphtide.cli.main import main
from graphtide.errors import QueryError

QUERY = 'SELECT ?x { ?x foaf:name "Ann" ; rdf:type ?class }'
DATA = '<ex:ann> <http://xmlns.com/foaf/0.1/name> "Ann" ; a <ex:Person> .'


def test_prefixes_that_are_lacking_are_declared():
    graph = gt.LiveGraph()
    with pytest.raises(QueryError, match="foaf"):
        graph.watch(QUERY)
    assert graph.watch(gt.with_prefixes(QUERY)).count() == 0
    assert gt.with_prefixes(QUERY, "common") == gt.with_prefixes(QUERY) != QUERY
    assert gt.with_prefixes(QUERY, "none") == QUERY


def test_declarations_of_the_text_take_precedence():
    text = "PREFIX foaf: <ex:>\nSELECT * { ?x foaf:name ?y . ?x ex:p ?z }"
    found = gt.with_prefixes(text, {"foaf": "http://other/", "ex": "http://example.org/"})
    assert found == f"PREFIX ex: <http://example.org/> {text}"


def test_errors_name_the_line_of_the_text():
    with pytest.raises(QueryError) as found:
        gt.LiveGraph().watch(gt.with_prefixes("SELECT * {\n ?x foaf:name }"))
    assert found.value.line == 2


@pytest.mark.parametrize("command", ["query", "check"])
def test_the_command_line_has_them(command, tmp_path, capsys):
    query, data = tmp_path / "q.rq", tmp_path / "d.ttl"
    query.write_text(QUERY)
    data.write_text(DATA)
    rest = ["--data", str(data)] if command == "query" else []
    assert main([command, str(query), *rest]) != 0
    assert main([command, str(query), *rest, "--prefixes", "common"]) == 0
    assert command == "check" or "ex:ann" in capsys.readouterr().out


def test_programs_have_them(tmp_path, capsys):
    program = tmp_path / "p.tide"
    program.write_text("QUERY All AS SELECT ?x { ?x a foaf:Person }")
    assert main(["check", str(program)]) == 1
    assert main(["check", str(program), "--prefixes", "common"]) == 0


def test_a_byte_order_mark_is_no_part_of_a_query():
    assert gt.LiveGraph().watch("\ufeffSELECT * { ?s ?p ?o }").count() == 0


@pytest.mark.parametrize(
    "iri",
    [
        "http://jena.apache.org/text#search",
        "http://jena.apache.org/ARQ/property#splitIRI",
        "bif:contains",
    ],
)
@pytest.mark.parametrize("path", ["<{}>", "(<{}>)", "^<{}>", "<ex:p>/<{}>*"])
def test_property_functions_of_others_are_plain_predicates_and_that_is_said(iri, path):
    with pytest.warns(UserWarning, match="property function elsewhere"):
        assert gt.LiveGraph().watch(f"SELECT * {{ ?x {path.format(iri)} ?y }}").count() == 0
