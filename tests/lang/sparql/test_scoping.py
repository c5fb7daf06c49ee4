"""Where names may stand: every rule of the recommendation with what people read when it is broken.

Sections 4.1.4, 18.2.1, 19.6 and 19.8 (notes of the grammar), and 11 for aggregates.
"""

import pytest

from graphtide.errors import QueryError, UnsupportedError
from graphtide.lang.sparql.parse import parse_any_query, parse_update

# Each text holds one ^ in front of the place that the error must point at.
MISTAKES = {
    # variables that are already in scope
    "BIND after a path": (
        "SELECT * { ?s <a:p>+ ?o BIND(1 AS ^?o) }",
        "BIND assigns ?o, which the group already uses",
    ),
    "BIND after a sub-SELECT": (
        "SELECT * { { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } BIND(1 AS ^?n) }",
        "BIND assigns ?n, which the group already uses",
    ),
    "AS after a GROUP BY name": (
        "SELECT (COUNT(*) AS ^?k) { ?s ?p ?o } GROUP BY (STR(?o) AS ?k)",
        "?k is already used in the pattern",
    ),
    "AS in GROUP BY": (
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (STR(?o) AS ^?s)",
        "?s is already used in the pattern",
    ),
    "AS of an aggregate": (
        "SELECT (COUNT(*) AS ^?o) { ?s ?p ?o } GROUP BY ?o",
        "?o is already used in the pattern",
    ),
    "AS in a sub-SELECT": (
        "SELECT * { { SELECT (1 AS ^?o) { ?s ?p ?o } } }",
        "?o is already used in the pattern",
    ),
    "AS twice": ("SELECT (1 AS ?x) (2 AS ^?x) { }", "?x is selected twice"),
    "VALUES names a variable twice": (
        "SELECT * { VALUES (?x ^?x) { (1 2) } }",
        "?x is twice in VALUES",
    ),
    # grouping
    "a variable that is not grouped": (
        "SELECT ?s ^?o { ?s ?p ?o } GROUP BY ?s",
        "?o is neither in GROUP BY nor in an aggregate",
    ),
    "a variable beside an aggregate": (
        "SELECT ^?s (COUNT(*) AS ?n) { ?s ?p ?o }",
        "?s is neither in GROUP BY nor in an aggregate",
    ),
    "inside an expression": (
        "SELECT (?s + COUNT(?p) - ^?o AS ?n) { ?s ?p ?o } GROUP BY ?s",
        "?o is neither in GROUP BY nor in an aggregate",
    ),
    "of a grouped expression": (
        "SELECT (^?a + ?b AS ?c) { ?a ?p ?b } GROUP BY (?a + ?b)",
        "?a is neither in GROUP BY nor in an aggregate",
    ),
    "a later name": (
        "SELECT (^?m + 1 AS ?n) (COUNT(*) AS ?m) { ?s ?p ?o }",
        "?m is neither in GROUP BY nor in an aggregate",
    ),
    "everything": ("SELECT * { ?s ?p ?o } ^GROUP BY ?s", "SELECT * cannot be used with GROUP BY"),
    "in a sub-SELECT": (
        "SELECT * { { SELECT ^?o (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } }",
        "?o is neither in GROUP BY nor in an aggregate",
    ),
    # aggregates
    "aggregate in FILTER": (
        "SELECT * { ?s ?p ?o FILTER(^COUNT(?o) > 1) }",
        "the aggregate COUNT is not allowed here",
    ),
    "aggregate in BIND": (
        "SELECT * { ?s ?p ?o BIND(^MAX(?o) AS ?m) }",
        "the aggregate MAX is not allowed here",
    ),
    "aggregate in GROUP BY": (
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (^MAX(?o) AS ?m)",
        "the aggregate MAX is not allowed here",
    ),
    "aggregate in a filter inside HAVING": (
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } HAVING (EXISTS { ?a ?b ?c FILTER(^SUM(?c) > 1) })",
        "the aggregate SUM is not allowed here",
    ),
    "aggregate in an aggregate": (
        "SELECT (SUM(1 + ^COUNT(?o)) AS ?n) { ?s ?p ?o }",
        "the aggregate COUNT is nested in another one",
    ),
    "star in SUM": ("SELECT (SUM(^*) AS ?n) { ?s ?p ?o }", "expected an expression, found '*'"),
    "separator": (
        "SELECT (GROUP_CONCAT(?o; SEPARATOR=^1) AS ?n) { ?s ?p ?o }",
        "expected a string, found '1'",
    ),
    # blank nodes
    "label in a path's pattern and another": (
        "SELECT * { ?s <a:p>+ _:k OPTIONAL { ^_:k ?p ?o } }",
        "the blank node _:k is used in two basic graph patterns",
    ),
    "label inside and outside a sub-SELECT": (
        "SELECT * { _:k ?p ?o { SELECT ?s { ?s ?p ^_:k } } }",
        "the blank node _:k is used in two basic graph patterns",
    ),
    # modifiers
    "LIMIT twice": ("SELECT * { } LIMIT 1 ^LIMIT 2", "LIMIT is given twice"),
    "LIMIT of a fraction": ("SELECT * { } LIMIT ^1.5", "expected a whole number, found '1.5'"),
    "ORDER BY nothing": (
        "SELECT * { } ORDER BY ^LIMIT 1",
        "expected an expression, found 'LIMIT'",
    ),
    "GROUP BY nothing": ("SELECT * { } GROUP BY ^", "expected '(' or a function after GROUP BY"),
    "HAVING a variable": (
        "SELECT * { } HAVING ^?x",
        "expected '(' or a function after HAVING, found '?x'",
    ),
    "FILTER an IRI": ("SELECT * { FILTER ^<a:a> }", "expected '(' or a function after FILTER"),
    # paths
    "path in a template": (
        "CONSTRUCT { ?s <a:p>^/<a:q> ?o } { ?s ?p ?o }",
        "expected a term or variable, found '/'",
    ),
    "path without an end": ("SELECT * { ?s <a:p>/^?o }", "expected a predicate, found '?o'"),
    "negated sequence": ("SELECT * { ?s !(<a:p>^/<a:q>) ?o }", "expected '|', found '/'"),
    "two modifiers": ("SELECT * { ?s <a:p>+^+ ?o }", "expected a term or variable, found '+'"),
    # forms
    "CONSTRUCT WHERE with a filter": (
        "CONSTRUCT WHERE { ?s ?p ?o ^FILTER(?o > 1) }",
        "expected '}', found 'FILTER'",
    ),
    "DESCRIBE nothing": (
        "DESCRIBE ^{ ?s ?p ?o }",
        "expected '*', a variable or an IRI after DESCRIBE, found '{'",
    ),
    "FROM a variable": ("SELECT * FROM ^?g { }", "expected an IRI, found '?g'"),
    "lone brackets": ("SELECT * { [] ^}", "expected a predicate, found '}'"),
    "lone empty list": ("SELECT * { () ^}", "expected a predicate, found '}'"),
    "BOUND of a value": ("SELECT * { FILTER(^BOUND(1)) }", "BOUND takes a variable"),
    "RAND of a value": ("SELECT (^RAND(1) AS ?x) { }", "RAND takes 0 to 0 arguments, not 1"),
    "two colons in a prefix": (
        "PREFIX ^a:b: <a:> SELECT * { }",
        "expected a prefix such as 'ex:', found 'a:b:'",
    ),
}

UPDATES = {
    "unknown operation": (
        "CLEAR ALL ; ^DELET WHERE { ?s ?p ?o }",
        "expected an operation such as INSERT or CLEAR, found 'DELET'",
    ),
    "no separator": (
        "CLEAR ALL ^CLEAR ALL",
        "expected ';' or the end of the update, found 'CLEAR'",
    ),
    "variable in data": ("INSERT DATA ^{ ?s <a:p> 1 }", "data must not contain variables"),
    "variable graph in data": (
        "DELETE DATA ^{ GRAPH ?g { <a:a> <a:p> 1 } }",
        "data must not contain variables",
    ),
    "blank node in DELETE DATA": (
        "DELETE DATA ^{ _:a <a:p> 1 }",
        "DELETE must not contain blank nodes",
    ),
    "blank node in DELETE": (
        "DELETE ^{ ?s <a:p> [] } WHERE { ?s ?p ?o }",
        "DELETE must not contain blank nodes",
    ),
    "blank node in DELETE WHERE": (
        "DELETE WHERE ^{ ?s <a:p> () . _:a ?p ?o }",
        "DELETE must not contain blank nodes",
    ),
    "label in two operations": (
        "INSERT DATA { _:a <a:p> 1 } ; INSERT DATA ^{ _:a <a:p> 2 }",
        "_:a is used in the data of two operations",
    ),
    "nested GRAPH": (
        "INSERT DATA { GRAPH <a:g> { ^GRAPH <a:h> { } } }",
        "expected '}', found 'GRAPH'",
    ),
    "CLEAR what": ("CLEAR ^<a:g>", "expected GRAPH, DEFAULT, NAMED or ALL, found '<a:g>'"),
    "CREATE what": ("CREATE ^DEFAULT", "expected 'GRAPH', found 'DEFAULT'"),
    "COPY to nowhere": ("COPY <a:g> ^<a:h>", "expected 'TO', found '<a:h>'"),
    "path in what is inserted": (
        "INSERT { ?s <a:p>^+ ?o } WHERE { ?s ?p ?o }",
        "expected a term or variable, found '+'",
    ),
}


def read(marked, parse):
    # ^ is also a sign of SPARQL: the mark is the first one.
    offset = marked.index("^")
    text = marked[:offset] + marked[offset + 1 :]
    with pytest.raises(QueryError) as caught:
        parse(text)
    return offset + 1, caught.value


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_queries(name):
    marked, message = MISTAKES[name]
    column, error = read(marked, parse_any_query)
    assert not isinstance(error, UnsupportedError)
    assert error.message.startswith(message)
    assert (error.line, error.column) == (1, column)


@pytest.mark.parametrize("name", UPDATES)
def test_mistakes_in_updates(name):
    marked, message = UPDATES[name]
    column, error = read(marked, parse_update)
    assert error.message.startswith(message)
    assert (error.line, error.column) == (1, column)


@pytest.mark.parametrize(
    "text",
    [
        # Names that look taken but are not in scope there.
        "SELECT (1 AS ?o) { ?s ?p ?x MINUS { ?s ?p ?o } }",
        "SELECT (1 AS ?o) { ?s ?p ?x FILTER EXISTS { ?s ?p ?o } }",
        "SELECT (1 AS ?o) { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT * { { SELECT ?s { ?s ?p ?o } } BIND(1 AS ?o) }",
        "SELECT * { { ?s ?p ?o } UNION { BIND(1 AS ?o) } }",
        "SELECT * { ?s ?p ?x FILTER(?o = 1) BIND(1 AS ?o) }",
        # Names that a grouped query may use.
        "SELECT ?s (COUNT(*) AS ?n) (?n * 2 AS ?m) { ?s ?p ?o } GROUP BY ?s ORDER BY ?m ?o",
        "SELECT (EXISTS { ?s ?p ?x } AS ?e) { ?s ?p ?o } GROUP BY ?s",
        "SELECT (COUNT(?o) + 1 AS ?n) { ?s ?p ?o } HAVING (SUM(?o) > 1) ORDER BY AVG(?o)",
        "SELECT (COUNT(*) AS ?n) { { SELECT ?s (COUNT(*) AS ?m) { ?s ?p ?o } GROUP BY ?s } }",
        "SELECT (SUM(?m) AS ?n) {[] a ?m} HAVING (EXISTS { SELECT (MAX(?x) AS ?y) { ?a ?b ?x } })",
        # Labels that meet in one basic graph pattern.
        "SELECT * { _:a ?p ?o FILTER(?o = 1) _:a <a:q>/<a:r> ?x . _:a <a:s>* ?y }",
        "CONSTRUCT { _:a ?p ?o } { _:a ?p ?o }",
    ],
)
def test_what_is_allowed(text):
    parse_any_query(text)


def test_service_needs_a_pattern():
    parse_any_query("SELECT * { SERVICE SILENT ?where { ?s ?p ?o } }")
    with pytest.raises(QueryError, match="expected a predicate"):
        parse_any_query("SELECT * { SERVICE ?where { ?s } }")


def test_nesting_without_end_in_an_update():
    depth = 5000
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_update(f"DELETE {{ }} WHERE {{ FILTER({'(' * depth}1{')' * depth}) }}")
