"""The algebra of tricky queries, written by hand from section 18.2 of the recommendation."""

import pytest
from pyoxigraph import Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Exists, Var
from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Join,
    LeftJoin,
    Minus,
    Project,
    TriplePattern,
    Union,
    Values,
)
from graphtide.lang.sparql.parse import parse_query

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PROLOGUE = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "

S, P, O, X, Y, Z, G, H = (Var(name) for name in "spoxyzgh")
B0, B1, B2, B3 = (Var(f"_:b{n}") for n in range(4))
EMPTY = Bgp(())


def n(name):
    return NamedNode("http://e/" + name)


def rdf(name):
    return NamedNode(RDF + name)


def integer(text):
    return Literal(text, datatype=NamedNode(XSD + "integer"))


def t(subject, predicate, obj, *graph):
    if isinstance(predicate, str):
        predicate = n(predicate)
    return TriplePattern(subject, predicate, obj, *graph)


def bgp(*triples):
    return Bgp(tuple(t(*triple) for triple in triples))


def pattern(text):
    """The pattern of a `SELECT *` query."""
    root = parse_query(f"{PROLOGUE} SELECT * {text}").root
    assert isinstance(root, Project)
    return root.child


def expression(text):
    node = pattern(f"{{ ?s :p ?o FILTER({text}) }}")
    assert isinstance(node, Filter)
    return node.condition


def eq(left, right):
    return Call("=", (left, right))


A, B, C = ((S, "a", X), (S, "b", Y), (S, "c", Z))
ONE, TWO = Const(integer("1")), Const(integer("2"))

PATTERNS = {
    # https://www.w3.org/TR/sparql11-query/#sparqlAlgebraExamples
    "{ }": EMPTY,
    "{ { } { } }": EMPTY,
    "{ ?s :a ?x }": bgp(A),
    "{ ?s :a ?x . ?s :b ?y }": bgp(A, B),
    "{ { ?s :a ?x } UNION { ?s :b ?y } }": Union(bgp(A), bgp(B)),
    "{ { ?s :a ?x } UNION { ?s :b ?y } UNION { ?s :c ?z } }": Union(Union(bgp(A), bgp(B)), bgp(C)),
    "{ ?s :a ?x OPTIONAL { ?s :b ?y } }": LeftJoin(bgp(A), bgp(B)),
    "{ ?s :a ?x OPTIONAL { ?s :b ?y } OPTIONAL { ?s :c ?z } }": LeftJoin(
        LeftJoin(bgp(A), bgp(B)), bgp(C)
    ),
    "{ ?s :a ?x OPTIONAL { ?s :b ?y OPTIONAL { ?s :c ?z } } }": LeftJoin(
        bgp(A), LeftJoin(bgp(B), bgp(C))
    ),
    "{ ?s :a ?x OPTIONAL { ?s :b ?y FILTER(?x = ?y) } }": LeftJoin(bgp(A), bgp(B), eq(X, Y)),
    "{ ?s :a ?x OPTIONAL { FILTER(?x = 1) ?s :b ?y FILTER(?y = 2) } }": LeftJoin(
        bgp(A), bgp(B), Call("&&", (eq(X, ONE), eq(Y, TWO)))
    ),
    # Only the filters of the optional group itself become the condition.
    "{ ?s :a ?x OPTIONAL { { ?s :b ?y FILTER(?x = ?y) } } }": LeftJoin(
        bgp(A), Filter(eq(X, Y), bgp(B))
    ),
    "{ ?s :a ?x { ?s :b ?y FILTER(?x = ?y) } }": Join(bgp(A), Filter(eq(X, Y), bgp(B))),
    # A filter does not end a basic graph pattern, and applies to the whole group.
    "{ ?s :a ?x FILTER(?x = ?y) ?s :b ?y }": Filter(eq(X, Y), bgp(A, B)),
    "{ FILTER(?x = 1) ?s :a ?x OPTIONAL { ?s :b ?y } FILTER(?y = 2) }": Filter(
        Call("&&", (eq(X, ONE), eq(Y, TWO))), LeftJoin(bgp(A), bgp(B))
    ),
    "{ ?s :a ?x OPTIONAL { ?s :b ?y } ?s :c ?z }": Join(LeftJoin(bgp(A), bgp(B)), bgp(C)),
    "{ OPTIONAL { ?s :a ?x } }": LeftJoin(EMPTY, bgp(A)),
    "{ ?s :a ?x MINUS { ?s :b ?y } ?s :c ?z }": Join(Minus(bgp(A), bgp(B)), bgp(C)),
    "{ MINUS { ?s :a ?x } }": Minus(EMPTY, bgp(A)),
    # BIND ends the basic graph pattern.
    "{ ?s :a ?x BIND(?x AS ?z) ?s :b ?y }": Join(Extend(bgp(A), Z, X), bgp(B)),
    "{ BIND(1 AS ?x) ?s :a ?x }": Join(Extend(EMPTY, X, ONE), bgp(A)),
    "{ ?s :a ?x BIND(?x AS ?y) FILTER(?y = 1) }": Filter(eq(Y, ONE), Extend(bgp(A), Y, X)),
    "{ ?s :a ?x VALUES ?x { 1 } }": Join(bgp(A), Values((X,), ((integer("1"),),))),
    "{ ?s :a ?x } VALUES (?x ?y) { (1 UNDEF) (UNDEF :k) }": Join(
        bgp(A), Values((X, Y), ((integer("1"), None), (None, n("k"))))
    ),
    "{ ?s :a ?x FILTER NOT EXISTS { ?s :b ?y FILTER(?x = ?y) } }": Filter(
        Call("!", (Exists(Filter(eq(X, Y), bgp(B))),)), bgp(A)
    ),
    # property lists, blank nodes, collections
    "{ ?s :a ?x, ?y ; :b ?z ; . }": bgp((S, "a", X), (S, "a", Y), (S, "b", Z)),
    "{ ?s a :K ; FILTER(?s = 1) }": Filter(eq(S, ONE), bgp((S, rdf("type"), n("K")))),
    "{ _:k :a _:m . _:m :b _:k }": bgp((B0, "a", B1), (B1, "b", B0)),
    "{ ?s :a _:k FILTER(?s = 1) _:k :b ?y }": Filter(eq(S, ONE), bgp((S, "a", B0), (B0, "b", Y))),
    "{ ?s :a [ :b ?x ; :c [] ] }": bgp((S, "a", B0), (B0, "b", X), (B0, "c", B1)),
    "{ [ :a ?x ] :b ?y }": bgp((B0, "a", X), (B0, "b", Y)),
    "{ [ :a ?x ] . }": bgp((B0, "a", X)),
    "{ ?s :a () }": bgp((S, "a", rdf("nil"))),
    "{ ?s :a (?x 1) }": bgp(
        (S, "a", B0),
        (B0, rdf("first"), X),
        (B0, rdf("rest"), B1),
        (B1, rdf("first"), integer("1")),
        (B1, rdf("rest"), rdf("nil")),
    ),
}

GRAPH_PATTERNS = {
    "{ GRAPH :g { ?s :a ?x } }": bgp((*A, n("g"))),
    "{ GRAPH ?g { ?s :a ?x } }": bgp((*A, G)),
    "{ GRAPH ?g { } }": GraphNames(G),
    "{ GRAPH ?g { ?s :a ?x GRAPH ?h { ?s :b ?y } } }": Join(bgp((*A, G)), bgp((*B, H))),
    "{ GRAPH ?g { GRAPH :g { ?s :a ?x } } }": Join(GraphNames(G), bgp((*A, n("g")))),
    "{ GRAPH ?g { VALUES ?x { 1 } } }": Join(GraphNames(G), Values((X,), ((integer("1"),),))),
    "{ GRAPH ?g { { ?s :a ?x } UNION { } } }": Join(GraphNames(G), Union(bgp((*A, G)), EMPTY)),
    "{ GRAPH ?g { OPTIONAL { ?s :a ?x } } }": LeftJoin(GraphNames(G), bgp((*A, G))),
    "{ GRAPH ?g { ?s :a ?x OPTIONAL { ?s :b ?y } } }": LeftJoin(bgp((*A, G)), bgp((*B, G))),
    "{ GRAPH ?g { ?s :a ?x MINUS { ?s :b ?y } } }": Minus(
        bgp((*A, G)), bgp((*B, G)), frozenset({G})
    ),
    "{ GRAPH ?g { FILTER EXISTS { ?s :a ?x } } }": Filter(Exists(bgp((*A, G))), GraphNames(G)),
    "{ GRAPH ?g { ?s :a ?x OPTIONAL { GRAPH :g { ?s :b ?y } } } }": LeftJoin(
        bgp((*A, G)), bgp((*B, n("g")))
    ),
    # ?g takes part in a join only: the patterns may bind it at once.
    "{ GRAPH ?g { ?s :a ?g } }": bgp((S, "a", G, G)),
    # The inside must not see ?g: a hidden variable stands for the graph.
    "{ GRAPH ?g { FILTER(BOUND(?g)) } }": Join(
        Filter(Call("BOUND", (G,)), EMPTY), Extend(GraphNames(B0), G, B0)
    ),
    "{ GRAPH ?g { ?s :a ?x OPTIONAL { ?s :b ?g } } }": Join(
        LeftJoin(bgp((*A, B0)), bgp((S, "b", G, B0))), Extend(GraphNames(B0), G, B0)
    ),
    # A graph that does not exist has no rows, not even those that need no quad.
    "{ GRAPH :g { } }": Join(Values((B0,), ((n("g"),),)), GraphNames(B0)),
    "{ GRAPH :g { OPTIONAL { ?s :a ?x } } }": Join(
        Join(Values((B0,), ((n("g"),),)), GraphNames(B0)), LeftJoin(EMPTY, bgp((*A, n("g"))))
    ),
}

EXPRESSIONS = {
    "?x + ?y * 2 - 1": Call("+-", (X, Call("*", (Y, TWO)), ONE)),
    "?x -1": Call("-", (X, ONE)),
    "-1": Const(integer("-1")),
    "- 1": Call("UMINUS", (ONE,)),
    "-?x": Call("UMINUS", (X,)),
    "+?x": Call("UPLUS", (X,)),
    "!?x || ?y && ?z": Call("||", (Call("!", (X,)), Call("&&", (Y, Z)))),
    "(?x || ?y) && ?z": Call("&&", (Call("||", (X, Y)), Z)),
    "(?x < 1) = true": eq(
        Call("<", (X, ONE)), Const(Literal("true", datatype=NamedNode(XSD + "boolean")))
    ),
    "?x IN (1, ?y)": Call("IN", (X, ONE, Y)),
    "?x not in ()": Call("NOT IN", (X,)),
    "strlen(?x)": Call("STRLEN", (X,)),
    "isURI(?x)": Call("ISIRI", (X,)),
    "encode_for_uri(?x)": Call("ENCODE_FOR_URI", (X,)),
    "xsd:integer(?x)": Call(f"<{XSD}integer>", (X,)),
    "coalesce(?x, 1)": Call("COALESCE", (X, ONE)),
    "NOT EXISTS { ?s :a ?x }": Call("!", (Exists(bgp(A)),)),
    "!EXISTS { ?s :a ?x }": Call("!", (Exists(bgp(A)),)),
    ":k = ?x": eq(Const(n("k")), X),
}

LITERALS = {
    "01": ("01", "integer"),
    "+1": ("+1", "integer"),
    "-0.0": ("-0.0", "decimal"),
    "1.50": ("1.50", "decimal"),
    ".5": (".5", "decimal"),
    "1.0e0": ("1.0e0", "double"),
    "1.E+3": ("1.E+3", "double"),
    "-01e1": ("-01e1", "double"),
    "true": ("true", "boolean"),
    "FALSE": ("false", "boolean"),
    '"007"^^xsd:integer': ("007", "integer"),
    '"zero"^^xsd:integer': ("zero", "integer"),
    '"a\\tb\\u0041\\U0001F600\\\\u0041"': ("a\tbA\U0001f600\\u0041", "string"),
    "'''it's\n\"two\" lines'''": ('it\'s\n"two" lines', "string"),
    '"""a"b""c"""': ('a"b""c', "string"),
    "''": ("", "string"),
}


@pytest.mark.parametrize("text", PATTERNS)
def test_group_patterns(text):
    assert pattern(text) == PATTERNS[text]


@pytest.mark.parametrize("text", GRAPH_PATTERNS)
def test_graph_patterns(text):
    assert pattern(text) == GRAPH_PATTERNS[text]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    assert expression(text) == EXPRESSIONS[text]


@pytest.mark.parametrize("text", LITERALS)
def test_literals_keep_their_lexical_form(text):
    value, datatype = LITERALS[text]
    expected = Literal(value, datatype=NamedNode(XSD + datatype))
    assert pattern(f"{{ ?s :a {text} }}") == bgp((S, "a", expected))
    assert expression(f"?x = {text}") == eq(X, Const(expected))


def test_language_tags_are_lower_case_as_in_the_data():
    assert pattern('{ ?s :a "x"@EN-gb }') == bgp((S, "a", Literal("x", language="en-gb")))


@pytest.mark.parametrize(
    ("written", "iri"),
    [
        ("<http://x/y>", "http://x/y"),
        ("<z>", "http://base/dir/z"),
        ("<../z>", "http://base/z"),
        ("<#z>", "http://base/dir/doc#z"),
        ("<>", "http://base/dir/doc"),
        ("<\\u007a>", "http://base/dir/z"),
        (":z", "http://e/z"),
        (":a.b", "http://e/a.b"),
        (":a\\-b\\.", "http://e/a-b."),
        (":%41", "http://e/%41"),
        (":", "http://e/"),
        ("rel:z", "http://base/dir/r#z"),
        ("é:ü", "http://u/ü"),
    ],
)
def test_iris(written, iri):
    prologue = "BASE <http://base/dir/doc> PREFIX : <http://e/> PREFIX rel: <r#>"
    query = parse_query(f"{prologue} PREFIX é: <http://u/> SELECT * {{ ?s ?p {written} }}")
    assert query.root == Project(Bgp((TriplePattern(S, P, NamedNode(iri)),)), (S, P))


def test_the_base_can_come_from_outside():
    query = parse_query("SELECT * { ?s ?p <z> }", base="http://outer/x")
    assert query.root == Project(Bgp((TriplePattern(S, P, NamedNode("http://outer/z")),)), (S, P))


def select(text):
    return parse_query(PROLOGUE + text)


def test_select_star_is_in_order_of_the_text_and_hides_what_is_not_in_scope():
    query = select(
        "SELECT * { GRAPH ?g { ?z :a [ :b ?x ] } MINUS { ?m :a ?x } OPTIONAL { ?z :c ?y }"
        " FILTER EXISTS { ?e :a ?x } FILTER(?f = 1) BIND(1 AS ?a) } VALUES ?v { 1 }"
    )
    assert [v.name for v in query.variables] == ["g", "z", "x", "y", "a", "v"]


def test_projection_keeps_the_written_order_and_unknown_variables():
    query = select("SELECT ?z ?x { ?s :a ?x }")
    assert query.variables == (Z, X)
    assert query.root == Project(bgp(A), (Z, X))


def test_distinct_is_outside_the_projection():
    assert select("SELECT DISTINCT ?x { ?s :a ?x }").root == Distinct(Project(bgp(A), (X,)))


def test_select_expressions_extend_the_pattern_in_order_after_the_trailing_values():
    values = Values((X,), ((integer("1"),),))
    extended = Extend(Extend(Join(bgp(A), values), Y, Call("+", (X, ONE))), Z, Y)
    query = select("SELECT (?x + 1 AS ?y) ?s (?y AS ?z) { ?s :a ?x } VALUES ?x { 1 }")
    assert query.root == Project(extended, (Y, S, Z))


def test_keywords_in_any_case_comments_and_dollar_variables():
    query = select("select $x # no more\nwhere { ?s :a ?x . optional { $s :b ?y } # ? \n}")
    assert query.root == Project(LeftJoin(bgp(A), bgp(B)), (X,))


def test_the_text_is_kept_and_equal_texts_are_parsed_once():
    text = PROLOGUE + "SELECT * { ?s :a ?x }"
    assert parse_query(text).text == text
    assert parse_query(text) is parse_query(text)
    assert parse_query(text, base="http://b/") is not parse_query(text)
