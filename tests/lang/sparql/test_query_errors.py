"""What people read when a query is wrong, or right but out of reach: place, words and advice."""

import pytest

from graphtide.errors import QueryError, UnsupportedError
from graphtide.lang.sparql.parse import parse_query

# Each text holds one ^ in front of the place that the error must point at.
MISTAKES = {
    "unknown well-known prefix": (
        "SELECT * {\n  ?s ^foaf:name ?n }",
        "the prefix 'foaf:' is not declared",
        "add: PREFIX foaf: <http://xmlns.com/foaf/0.1/>",
    ),
    "misspelt prefix": (
        "PREFIX sensor: <http://s/>\nSELECT * { ?s ^sensr:value ?n }",
        "the prefix 'sensr:' is not declared",
        "did you mean 'sensor:'?",
    ),
    "unknown prefix among others": (
        "PREFIX a: <http://a/> PREFIX b: <http://b/> SELECT * { ?s ^zzz:p ?n }",
        "the prefix 'zzz:' is not declared",
        "declared here: a:, b:",
    ),
    "unknown prefix, none declared": (
        "SELECT * { ?s ^zzz:p ?n }",
        "the prefix 'zzz:' is not declared",
        "add: PREFIX zzz: <...> above the query",
    ),
    "misspelt keyword in a group": (
        "SELECT * {\n ?s ?p ?o .\n ^OPTINAL { ?s ?q ?r } }",
        "expected a pattern or '}', found 'OPTINAL'",
        "did you mean OPTIONAL?",
    ),
    "misspelt first keyword": (
        "\n ^SLECT * { ?s ?p ?o }",
        "expected SELECT or PREFIX, found 'SLECT'",
        "did you mean SELECT?",
    ),
    "nothing": ("^", "expected SELECT or PREFIX, found the end of the query", None),
    "group not closed": (
        "SELECT * { ?s ?p ?o\nOPTIONAL ^{ ?s ?q ?r\n",
        "unterminated group",
        "add '}'",
    ),
    "text after the query": (
        "SELECT * { ?s ?p ?o } ^}",
        "expected the end of the query, found '}'",
        None,
    ),
    "missing dot": (
        "SELECT * { ?s ?p ?o ^?s ?q ?r }",
        "expected '.', ';' or ',' before '?s'",
        None,
    ),
    "missing object": ("SELECT * { ?s ?p ^}", "expected a term or variable, found '}'", None),
    "missing predicate": ("SELECT * { ?s ^. }", "expected a predicate, found '.'", None),
    "no columns": ("SELECT ^{ ?s ?p ?o }", "expected '*' or a variable after SELECT", None),
    "string not closed": (
        'SELECT * { ?s ?p ^"abc }',
        "unterminated string",
        'close it with "',
    ),
    "relative IRI": (
        "SELECT * { ?s ?p ^<abc> }",
        "<abc> is not an absolute IRI",
        "declare BASE <...>",
    ),
    "strange character": ("SELECT * { ?s ?p ^§ }", "unexpected character '§'", None),
    "bad escape": (
        'SELECT * { ?s ?p ^"\\uD800" }',
        "invalid character escape",
        None,
    ),
    "filter without brackets": (
        "SELECT * { ?s ?p ?o FILTER ^?o = 1 }",
        "expected '(' or a function after FILTER, found '?o'",
        None,
    ),
    "comparison read as an IRI": (
        "SELECT * { ?s ?p ?o FILTER(?s^<?p&&?o>?s) }",
        "expected an operator, found the IRI '<?p&&?o>'",
        "write a space after the operator <",
    ),
    "misspelt function": (
        "SELECT * { ?s ?p ?o FILTER(^STRLENGTH(?o) = 1) }",
        "unknown function STRLENGTH",
        "did you mean STRLEN?",
    ),
    "wrong number of arguments": (
        "SELECT * { ?s ?p ?o FILTER(^STRLEN(?o, ?s) = 1) }",
        "STRLEN takes 1 argument, not 2",
        None,
    ),
    "BIND of a used variable": (
        "SELECT * { ?s ?p ?o BIND(1 AS ^?o) }",
        "BIND assigns ?o, which the group already uses",
        "use another name, and compare with FILTER",
    ),
    "SELECT expression under a used name": (
        "SELECT (1 AS ^?o) { ?s ?p ?o }",
        "?o is already used in the pattern",
        "give the expression another name",
    ),
    "column twice": ("SELECT ?s ^?s { ?s ?p ?o }", "?s is selected twice", None),
    "blank label in two patterns": (
        "SELECT * { _:a ?p ?o OPTIONAL { ^_:a ?q ?r } }",
        "the blank node _:a is used in two basic graph patterns",
        "use a variable: the scope of a blank node label is one basic graph pattern",
    ),
    "blank label inside and around EXISTS": (
        "SELECT * { _:a ?p ?o FILTER EXISTS { ^_:a ?q ?r } }",
        "the blank node _:a is used in two basic graph patterns",
        "use a variable: the scope of a blank node label is one basic graph pattern",
    ),
    "VALUES row of another width": (
        "SELECT * { VALUES (?a ?b) { (1 2) ^(1) } }",
        "a VALUES row of 1 terms for 2 variables",
        None,
    ),
    "variable in VALUES": (
        "SELECT * { VALUES ?a { ^?b } }",
        "expected a constant or UNDEF, found '?b'",
        None,
    ),
    "literal as predicate": ("SELECT * { ?s ^'p' ?o }", "expected a predicate, found ''p''", None),
}

REFUSALS = {
    "Update": ("^INSERT DATA { <http://a> <http://b> 1 }", "SPARQL Update", "LiveGraph.update"),
    "Update after a prologue": (
        "PREFIX : <http://a/>\n^DELETE WHERE { :a :b ?c }",
        "SPARQL Update",
        "LiveGraph.update",
    ),
    "LATERAL": ("SELECT * { ?x ?p ?v ^LATERAL { ?v ?q ?w } }", "LATERAL", "join the group in"),
    "RAND": ("SELECT (^RAND() AS ?r) { }", "RAND", "and insert it"),
    "NOW": ("SELECT (^NOW() AS ?now) { }", "NOW", "compare with it in a FILTER"),
    "UUID": ("SELECT * { BIND(^UUID() AS ?u) }", "UUID", "and insert it"),
    "STRUUID": ("SELECT * { BIND(^STRUUID() AS ?u) }", "STRUUID", "and insert it"),
    "BNODE": ("SELECT * { BIND(^BNODE() AS ?u) }", "BNODE", "and insert it"),
    "custom function": (
        "SELECT (^<http://x/f>(?s) AS ?y) { ?s ?p ?o }",
        "the function <http://x/f>",
        'graphtide.function("http://x/f", f)',
    ),
}


def read(marked):
    offset = marked.index("^")
    text = marked[:offset] + marked[offset + 1 :]
    before = text[:offset]
    place = before.count("\n") + 1, offset - before.rfind("\n")
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    return text, place, caught.value


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    marked, message, hint = MISTAKES[name]
    text, place, error = read(marked)
    assert not isinstance(error, UnsupportedError)
    assert (error.line, error.column) == place
    assert error.message.startswith(message)
    assert error.hint == hint
    assert text.split("\n")[place[0] - 1] in error.message


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    marked, what, hint = REFUSALS[name]
    text, place, error = read(marked)
    assert isinstance(error, UnsupportedError)
    assert (error.line, error.column) == place
    assert error.message.startswith(f"{what}")
    assert "cannot be maintained\n" in error.message
    assert error.hint is not None
    assert hint in error.hint
    assert text.split("\n")[place[0] - 1] in error.message


def test_the_whole_message():
    with pytest.raises(QueryError) as caught:
        parse_query("SELECT * {\n\t?s ?p ?o\n\tFLTER(?o > 1)\n}")
    assert str(caught.value) == (
        "3:2: expected a pattern or '}', found 'FLTER'\n"
        "  3 | \tFLTER(?o > 1)\n"
        "    | \t^\n"
        "  hint: did you mean FILTER?"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SELECT * {\n VALUES (?x ?x) { (1 1) } }", 2),
        ("SELECT *\n{ ?s ?p ?o\n FILTER(BOUND(1)) }", 3),
        ("SELECT * {\n [] }", 2),
    ],
)
def test_mistakes_that_are_found_late(text, line):
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert caught.value.line == line
    assert text.split("\n")[line - 1] in caught.value.message


def test_nesting_without_end():
    depth = 5000
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_query(f"SELECT * {{ FILTER({'(' * depth}1{')' * depth}) }}")


def test_a_failed_query_is_not_cached_as_good():
    for _ in range(2):
        with pytest.raises(QueryError):
            parse_query("SELECT * { ?s ?p }")
