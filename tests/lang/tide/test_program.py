"""Programs: named queries in one file, and errors that point into it."""

import time
from pathlib import Path

import pytest

from graphtide.errors import QueryError, UnsupportedError
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.tide.program import Program

ALL = "SELECT * { ?s ?p ?o }"


def error_of(text):
    with pytest.raises(QueryError) as caught:
        Program.parse(text)
    return caught.value


def test_queries_keep_their_order_names_and_lines():
    program = Program.parse(
        "# a program\nQUERY b AS\n  SELECT ?x { ?x <ex:p> 1 }\nquery a as select * { ?s ?p ?o }\n"
    )
    assert [(query.name, query.line) for query in program.queries] == [("b", 3), ("a", 4)]
    assert list(program.texts) == ["b", "a"]


def test_prefixes_hold_for_every_query_of_the_file():
    program = Program.parse(
        "PREFIX : <http://example.org/>\nQUERY a AS SELECT ?x { ?x :p ex:o }\n"
        "PREFIX ex: <http://example.com/>\nQUERY b AS SELECT ?x { ?x ex:q :o }"
    )
    plain = [
        "SELECT ?x { ?x <http://example.org/p> <http://example.com/o> }",
        "SELECT ?x { ?x <http://example.com/q> <http://example.org/o> }",
    ]
    for query, text in zip(program.queries, plain, strict=True):
        assert parse_query(query.text).root == parse_query(text).root


def test_words_in_strings_iris_comments_and_groups_start_no_declaration():
    program = Program.parse(
        "QUERY a AS SELECT ?QUERY { ?QUERY <http://example.org/QUERY> 'QUERY }' . # QUERY x AS {\n"
        '  ?QUERY <ex:p> """RULE\n" QUERY""" { ?QUERY <ex:q> ?rule } }\n'
        f"QUERY b AS {ALL} # the end }}"
    )
    assert [query.name for query in program.queries] == ["a", "b"]
    assert program.queries[0].text.rstrip().endswith("?rule } }")
    assert program.queries[1].text.strip() == ALL


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("QUERY", (1, 6), "expected a name for the query, found the end of the program"),
        ("QUERY a", (1, 8), "expected AS, found the end"),
        ("QUERY a AS # nothing\n", (1, 21), "expected a SELECT query, found the end"),
        (f"QUERY a AS\nQUERY b AS {ALL}", (2, 1), "expected a SELECT query, found 'QUERY'"),
        (f"QUERY a {ALL}", (1, 9), "expected AS, found 'SELECT'"),
        (f"QUERY AS {ALL}", (1, 7), "expected a name for the query, found 'AS'"),
        (f"QUERY ?x AS {ALL}", (1, 7), "expected a name for the query, found '?x'"),
        ("PREFIX x <ex:>", (1, 8), "expected a prefix such as 'ex:', found 'x'"),
        ("\n PREFIX x: y", (2, 12), "expected an IRI such as <http://example.org/>, found 'y'"),
        (f"{ALL}", (1, 1), "expected PREFIX, INCLUDE, CONTEXT, QUERY, EVENT, PATTERN, RULE, GOAL"),
        (f"QUERY a AS {ALL}\n\nQUERY a AS {ALL}", (3, 7), "there are two queries named a"),
        ("PREFIX x: <ex:a>\nPREFIX x: <ex:b>", (2, 8), "the prefix 'x:' already stands for"),
        ("QUERY a AS SELECT * { ?s ?p 'x }", (1, 29), "unterminated string"),
    ],
)
def test_an_error_has_its_place_and_what_was_expected(text, place, message):
    error = error_of(text)
    assert (error.line, error.column) == place
    assert error.message.startswith(message)
    line = text.split("\n")[place[0] - 1]
    assert f"  {place[0]} | {line}" in error.message


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("QUERY a AS SELECT * { ?s ex:p ?o }", (1, 26), "the prefix 'ex:' is not declared"),
        ("QUERY a AS\n  SELECT *\n  { ?s ex:p ?o }", (3, 8), "the prefix 'ex:' is not declared"),
        (f"QUERY a AS SELECT * {{ ?s ?p ?o\nQUERY b AS {ALL}", (2, 1), "expected a pattern or '}'"),
        (f"QUERY a AS {ALL} }}", (1, 34), "expected the end of the query, found '}'"),
        ("PREFIX : <ex:>\nQUERY a AS CLEAR ALL", (2, 12), "SPARQL Update cannot be maintained"),
    ],
)
def test_an_error_inside_a_query_is_placed_in_the_program(text, place, message):
    error = error_of(text)
    assert (error.line, error.column) == place
    assert error.message.startswith(message)
    assert f"  {place[0]} | {text.split(chr(10))[place[0] - 1]}" in error.message
    assert error.message.count(" | ") == 2


@pytest.mark.parametrize("word", ["STREAM", "stream"])
def test_what_the_language_is_going_to_have_is_refused_by_name(word):
    with pytest.raises(UnsupportedError, match=f"{word.upper()} is not available yet") as caught:
        Program.parse(f"QUERY a AS {ALL}\n  {word} X ON APPEAR OF a")
    assert (caught.value.line, caught.value.column) == (2, 3)


@pytest.mark.parametrize("text", [f"QURY a AS {ALL}", f"QUERY a AS {ALL}\nQURY b AS {ALL}"])
def test_the_nearest_known_word_is_named(text):
    assert error_of(text).hint == "did you mean QUERY?"


@pytest.mark.parametrize("text", ["", "# nothing\n", "PREFIX x: <ex:>"])
def test_a_program_without_a_query(text):
    assert "has no query" in error_of(text).message


def test_a_query_file_is_a_program_with_one_query(tmp_path):
    path = tmp_path / "hot.rq"
    path.write_text(ALL)
    assert Program.read(path).texts == {"hot": ALL}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.tide", None, "there is no such file"),
        ("binary.tide", b"\xff\xfe\x00", "is not a text file"),
        ("wrong.tide", b"QUERY", "wrong.tide:1:6: expected a name"),
        ("wrong.rq", b"SELECT", "wrong.rq:1:7: expected '*' or a variable"),
    ],
)
def test_an_error_names_the_file(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(QueryError) as caught:
        Program.read(tmp_path / name)
    assert message in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


def test_the_example_is_the_railway_of_the_demo():
    from graphtide.datasets.railway import QUERIES

    example = Program.read(Path(__file__).parents[3] / "examples" / "rail.tide")
    assert list(example.texts) == list(QUERIES)
    for name, text in QUERIES.items():
        assert parse_query(example.texts[name]).root == parse_query(text).root


def test_a_program_takes_time_in_proportion_to_its_length():
    """The line of each token was counted from the beginning: 10,000 events and rules took 18 s."""

    def seconds(many):
        declarations = [
            f"EVENT A{n}(?x) AS {{ ?x <ex:a{n}> ?y }}\n"
            f"RULE R{n} ON A{n}(?x) THEN INSERT {{ ?x <ex:is> <ex:y> }}\n"
            for n in range(many)
        ]
        begin = time.process_time()
        assert len(Program.parse("".join(declarations)).rules) == many
        return time.process_time() - begin

    seconds(10)
    assert seconds(6000) < 13 * seconds(1000)
