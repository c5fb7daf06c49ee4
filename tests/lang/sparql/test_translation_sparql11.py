"""The algebra of groups, sub-SELECTs, paths, slices and query forms, written by hand.

From sections 18.2.2, 18.2.4 and 16 of the recommendation.
"""

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Exists, Var
from graphtide.algebra.nodes import (
    Aggregate,
    Bgp,
    Dataset,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderKey,
    Path,
    Project,
    SelectQuery,
    Slice,
    TriplePattern,
    Union,
    Values,
)
from graphtide.algebra.paths import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery
from graphtide.lang.sparql.parse import parse_any_query

XSD = "http://www.w3.org/2001/XMLSchema#"
PROLOGUE = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "
S, P, O, X, Y, Z, G, K, N, M = (Var(name) for name in "spoxyzgknm")
B0, B1 = Var("_:b0"), Var("_:b1")
COUNT1 = Var("_:count1")


def n(name):
    return NamedNode("http://e/" + name)


def integer(text):
    return Literal(text, datatype=NamedNode(XSD + "integer"))


def t(subject, predicate, obj, *graph):
    return TriplePattern(
        subject, n(predicate) if isinstance(predicate, str) else predicate, obj, *graph
    )


def bgp(*triples):
    return Bgp(tuple(t(*triple) for triple in triples))


def select(text):
    query = parse_any_query(PROLOGUE + text)
    assert isinstance(query, SelectQuery)
    return query.root


def pattern(text):
    root = select(f"SELECT * {text}")
    assert isinstance(root, Project)
    return root.child


ALL, SP = bgp((S, P, O)), bgp((S, "p", O))
ONE, TWO = Const(integer("1")), Const(integer("2"))
A, B, C = (Link(n(name)) for name in "abc")

GROUPS = {
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }": Project(
        Extend(Group(ALL, (), (Aggregate(COUNT1, "COUNT", None),)), N, COUNT1), (N,)
    ),
    "SELECT ?s { ?s ?p ?o } GROUP BY ?s": Project(Group(ALL, (S,), ()), (S,)),
    "SELECT ?s (MAX(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s ?p": Project(
        Extend(Group(ALL, (S, P), (Aggregate(Var("_:max1"), "MAX", O),)), N, Var("_:max1")),
        (S, N),
    ),
    # An argument that is no variable is a column first; the same aggregate is computed once.
    "SELECT (SUM(?o + 1) + SUM(?o + 1) AS ?n) { ?s ?p ?o }": Project(
        Extend(
            Group(
                Extend(ALL, B0, Call("+", (O, ONE))),
                (),
                (Aggregate(Var("_:sum1"), "SUM", B0),),
            ),
            N,
            Call("+", (Var("_:sum1"), Var("_:sum1"))),
        ),
        (N,),
    ),
    # DISTINCT and SEPARATOR belong to the aggregate.
    "SELECT (GROUP_CONCAT(DISTINCT ?o; SEPARATOR=',') AS ?n) { ?s ?p ?o }": Project(
        Extend(
            Group(ALL, (), (Aggregate(Var("_:group_concat1"), "GROUP_CONCAT", O, True, ","),)),
            N,
            Var("_:group_concat1"),
        ),
        (N,),
    ),
    # COUNT(DISTINCT *) does not see what a blank node stands for.
    "SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p [] }": Project(
        Extend(
            Group(Project(bgp((S, "p", B0)), (S,)), (), (Aggregate(COUNT1, "COUNT", None, True),)),
            N,
            COUNT1,
        ),
        (N,),
    ),
    # Keys that are expressions, with and without a name.
    "SELECT ?k { ?s ?p ?o } GROUP BY (?o + 1 AS ?k) STR(?s)": Project(
        Group(Extend(Extend(ALL, K, Call("+", (O, ONE))), B0, Call("STR", (S,))), (K, B0), ()),
        (K,),
    ),
    "SELECT ?s { ?s ?p ?o } GROUP BY (?s)": Project(Group(ALL, (S,), ()), (S,)),
    # HAVING filters groups, before VALUES and the expressions of SELECT.
    "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 1) VALUES ?s { 1 }": (
        Project(
            Extend(
                Join(
                    Filter(
                        Call(">", (COUNT1, ONE)),
                        Group(ALL, (S,), (Aggregate(COUNT1, "COUNT", None),)),
                    ),
                    Values((S,), ((integer("1"),),)),
                ),
                N,
                COUNT1,
            ),
            (S, N),
        )
    ),
    # A name of SELECT in HAVING means its expression.
    "SELECT ?s (COUNT(*) AS ?n) (?n + 1 AS ?m) { ?s ?p ?o } GROUP BY ?s HAVING (?m > 1)": Project(
        Extend(
            Extend(
                Filter(
                    Call(">", (Call("+", (COUNT1, ONE)), ONE)),
                    Group(ALL, (S,), (Aggregate(COUNT1, "COUNT", None),)),
                ),
                N,
                COUNT1,
            ),
            M,
            Call("+", (N, ONE)),
        ),
        (S, N, M),
    ),
    # A variable that is not grouped is sampled in HAVING and ORDER BY.
    "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (?o > 1) (?s > 1)": Project(
        Filter(
            Call(
                "&&",
                (Call(">", (Var("_:sample1"), ONE)), Call(">", (S, ONE))),
            ),
            Group(ALL, (S,), (Aggregate(Var("_:sample1"), "SAMPLE", O),)),
        ),
        (S,),
    ),
    # HAVING without groups is a filter.
    "SELECT ?s { ?s ?p ?o } HAVING (?o > 1)": Project(Filter(Call(">", (O, ONE)), ALL), (S,)),
}

SLICES = {
    "SELECT ?s { ?s ?p ?o } ORDER BY ?o DESC(?p) ASC(?s)": Slice(
        ALL, (S,), (OrderKey(O), OrderKey(P, descending=True), OrderKey(S))
    ),
    "SELECT ?s { ?s ?p ?o } OFFSET 2 LIMIT 3": Slice(ALL, (S,), (), offset=2, limit=3),
    "SELECT REDUCED ?s { ?s ?p ?o } LIMIT 3": Slice(ALL, (S,), (), limit=3),
    "SELECT REDUCED ?s { ?s ?p ?o }": Project(ALL, (S,)),
    "SELECT ?s { ?s ?p ?o } ORDER BY STR(?o) LIMIT 1": Slice(
        Extend(ALL, B0, Call("STR", (O,))), (S,), (OrderKey(B0),), limit=1
    ),
    # DISTINCT comes first where the order can be told from what is shown; else it is the slice's.
    "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY STR(?s) LIMIT 1": Slice(
        Extend(Distinct(Project(ALL, (S,))), B0, Call("STR", (S,))), (S,), (OrderKey(B0),), limit=1
    ),
    "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?o LIMIT 1": Slice(
        ALL, (S,), (OrderKey(O),), distinct=True, limit=1
    ),
    "SELECT DISTINCT ?s { ?s ?p ?o } LIMIT 1": Slice(Distinct(Project(ALL, (S,))), (S,), limit=1),
    # A key that no row has says nothing.
    "SELECT ?s { ?s ?p ?o } ORDER BY ?nowhere LIMIT 1": Slice(ALL, (S,), (), limit=1),
    # A name of SELECT, and an aggregate, can be sorted by.
    "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s ORDER BY ?n DESC(COUNT(*)) LIMIT 1": Slice(
        Extend(Group(ALL, (S,), (Aggregate(COUNT1, "COUNT", None),)), N, COUNT1),
        (S, N),
        (OrderKey(N), OrderKey(COUNT1, descending=True)),
        limit=1,
    ),
}

SUBSELECTS = {
    "{ { SELECT ?s { ?s :p ?o } } }": Project(bgp((S, "p", Var("_:o.1"))), (S,)),
    # What a sub-SELECT does not show has nothing to do with the same name outside.
    "{ ?s :p ?o { SELECT ?s { ?s :q ?o } } }": Join(SP, Project(bgp((S, "q", Var("_:o.1"))), (S,))),
    "{ ?s :p ?o FILTER EXISTS { SELECT ?s { ?s :q ?o } } }": Filter(
        Exists(Project(bgp((S, "q", Var("_:o.1"))), (S,))), SP
    ),
    "{ ?s :p ?o OPTIONAL { SELECT DISTINCT ?s { ?s :q ?o } } }": LeftJoin(
        SP, Distinct(Project(bgp((S, "q", Var("_:o.1"))), (S,)))
    ),
    "{ { SELECT ?s { ?s :p ?x FILTER EXISTS { ?s :q ?y } } } }": Project(
        Filter(Exists(bgp((S, "q", Var("_:y.2")))), bgp((S, "p", Var("_:x.1")))), (S,)
    ),
    # The order of a sub-SELECT matters to its LIMIT alone.
    "{ { SELECT ?s { ?s :p ?o } ORDER BY ?o } }": Project(bgp((S, "p", Var("_:o.1"))), (S,)),
    "{ { SELECT ?s { ?s :p ?o } ORDER BY ?o LIMIT 1 } }": Slice(
        bgp((S, "p", Var("_:o.1"))), (S,), (OrderKey(Var("_:o.1")),), limit=1
    ),
    "{ { SELECT * { ?s :p ?o } VALUES ?o { 1 } } }": Project(
        Join(SP, Values((O,), ((integer("1"),),))), (S, O)
    ),
    "{ { SELECT (MAX(?o) AS ?n) { ?s :p ?o } } }": Project(
        Extend(
            Group(
                bgp((Var("_:s.3"), "p", Var("_:o.2"))),
                (),
                (Aggregate(Var("_:max1"), "MAX", Var("_:o.2")),),
            ),
            N,
            Var("_:max1"),
        ),
        (N,),
    ),
    # In each named graph by itself.
    "{ GRAPH ?g { SELECT ?s { ?s :p ?o } } }": Project(bgp((S, "p", Var("_:o.1"), G)), (S, G)),
    "{ GRAPH ?g { SELECT ?s { ?s :p ?o } LIMIT 1 } }": Slice(
        bgp((S, "p", Var("_:o.1"), G)), (S, G), (), limit=1, per=(G,)
    ),
    "{ GRAPH ?g { SELECT ?s { ?s :p ?o } GROUP BY ?s } }": Project(
        Group(bgp((S, "p", Var("_:o.1"), G)), (S, G), ()), (S, G)
    ),
    "{ GRAPH :g { SELECT ?s { ?s :p ?o } GROUP BY ?s } }": Project(
        Group(bgp((S, "p", Var("_:o.1"), n("g"))), (S,), ()), (S,)
    ),
}

PATHS = {
    "?s :a/:b ?o": bgp((S, "a", B0), (B0, "b", O)),
    "?s ^:a ?o": bgp((O, "a", S)),
    "?s ^(:a/:b) ?o": bgp((O, "a", B0), (B0, "b", S)),
    "?s (:a) ?o": bgp((S, "a", O)),
    "?s :a|^:b ?o": Union(bgp((S, "a", O)), bgp((O, "b", S))),
    "?s :a/(:b|:c) ?o": Join(bgp((S, "a", B0)), Union(bgp((B0, "b", O)), bgp((B0, "c", O)))),
    "?s :a* ?o": Path(S, ZeroOrMore(A), O),
    "?s :a+ ?o": Path(S, OneOrMore(A), O),
    "?s :a? ?o": Path(S, ZeroOrOne(A), O),
    "?s ^:a+ ?o": Path(O, OneOrMore(A), S),
    "?s (^:a)+ ?o": Path(S, OneOrMore(Inverse(A)), O),
    "?s (:a/:b|:c)* ?o": Path(S, ZeroOrMore(Alternative((Sequence((A, B)), C))), O),
    "?s :a/:b* :k": Join(bgp((S, "a", B0)), Path(B0, ZeroOrMore(B), n("k"))),
    "?s !:a ?o": Filter(Call("NOT IN", (B0, Const(n("a")))), bgp((S, B0, O))),
    "?s !^:a ?o": Filter(Call("NOT IN", (B0, Const(n("a")))), bgp((O, B0, S))),
    "?s !() ?o": bgp((S, B0, O)),
    "?s !(:a|^:b|:c) ?o": Union(
        Filter(Call("NOT IN", (B0, Const(n("a")), Const(n("c")))), bgp((S, B0, O))),
        Filter(Call("NOT IN", (B1, Const(n("b")))), bgp((O, B1, S))),
    ),
    "?s (!(:a|:b))+ ?o": Path(S, OneOrMore(NegatedSet((n("a"), n("b")))), O),
    # A path stands in the basic graph pattern of the triples around it.
    "?s :a+ _:k . _:k :b ?o": Join(bgp((B0, "b", O)), Path(S, OneOrMore(A), B0)),
    "?s :a+ +1": Path(S, OneOrMore(A), integer("+1")),
    "?s :a +1": bgp((S, "a", integer("+1"))),
}


@pytest.mark.parametrize("text", GROUPS)
def test_groups(text):
    assert select(text) == GROUPS[text]


@pytest.mark.parametrize("text", SLICES)
def test_slices(text):
    assert select(text) == SLICES[text]


@pytest.mark.parametrize("text", SUBSELECTS)
def test_subselects(text):
    assert pattern(text) == SUBSELECTS[text]


@pytest.mark.parametrize("text", PATHS)
def test_paths(text):
    assert pattern(f"{{ {text} }}") == PATHS[text]


def test_a_path_inside_graph():
    assert pattern("{ GRAPH ?g { ?s :a+ ?o } }") == Path(S, OneOrMore(A), O, G)
    # A term is connected with itself in every graph that exists, and only there.
    names = Join(Values((B0,), ((n("g"),),)), GraphNames(B0))
    assert pattern("{ GRAPH :g { :k :a* ?o } }") == Join(
        names, Path(n("k"), ZeroOrMore(A), O, n("g"))
    )
    assert pattern("{ GRAPH :g { ?s :a* ?o } }") == Path(S, ZeroOrMore(A), O, n("g"))


def test_counting_in_every_named_graph():
    """Also where there is nothing to count: W3C test agg-empty-group-count-graph."""
    rows = bgp((Var("_:s.3"), "p", Var("_:o.2"), G))
    groups = Group(rows, (G,), (Aggregate(COUNT1, "COUNT", None),))
    none = Extend(Minus(GraphNames(G), Distinct(Project(rows, (G,)))), COUNT1, Const(integer("0")))
    assert pattern("{ GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :p ?o } } }") == Project(
        Extend(Union(groups, none), N, COUNT1), (N, G)
    )


def form(text):
    return parse_any_query(PROLOGUE + text)


def test_ask():
    query = form("ASK { ?s :p ?o } LIMIT 1")
    assert isinstance(query, AskQuery)
    assert query.select.variables == ()
    assert query.select.root == Slice(SP, (), limit=1)


def test_construct_shows_what_the_template_needs():
    query = form("CONSTRUCT { ?s :k ?o } WHERE { ?s :p ?o . ?o :q ?x }")
    assert isinstance(query, ConstructQuery)
    assert query.template == (t(S, "k", O),)
    assert query.select.variables == (S, O)
    assert query.select.root == Project(bgp((S, "p", O), (O, "q", X)), (S, O))


def test_construct_with_blank_nodes_shows_everything():
    query = form("CONSTRUCT { _:a :k ?s . _:a :m [] } { ?s :p ?o } ORDER BY ?o")
    first, second = BlankNode("l0"), BlankNode("b0")
    assert query.template == (t(first, "k", S), t(first, "m", second))
    assert query.select.root == Project(SP, (S, O))


def test_construct_where():
    query = form("CONSTRUCT WHERE { ?s :p _:a . _:a :q ?o }")
    node = BlankNode("l0")
    assert query.template == (t(S, "p", node), t(node, "q", O))
    assert query.select.root == Project(bgp((S, "p", B0), (B0, "q", O)), (S, O))


@pytest.mark.parametrize(
    ("text", "targets", "root"),
    [
        ("DESCRIBE :k", (n("k"),), Project(Bgp(()), ())),
        ("DESCRIBE ?s :k { ?s :p ?o }", (S, n("k")), Project(SP, (S,))),
        ("DESCRIBE * WHERE { ?s :p ?o }", (S, O), Project(SP, (S, O))),
        (
            "DESCRIBE ?s { ?s :p ?o } ORDER BY ?o LIMIT 1",
            (S,),
            Slice(SP, (S,), (OrderKey(O),), limit=1),
        ),
    ],
)
def test_describe(text, targets, root):
    query = form(text)
    assert isinstance(query, DescribeQuery)
    assert query.targets == targets
    assert query.select.root == root


def test_dataset_clauses():
    query = form("SELECT * FROM :a FROM NAMED :b FROM :c { ?s :p ?o }")
    assert query.dataset == Dataset((n("a"), n("c")), (n("b"),))
    assert form("ASK FROM NAMED :b { }").select.dataset == Dataset((), (n("b"),))
    assert form("SELECT * { }").dataset is None


def test_functions_that_only_a_question_asked_once_may_use():
    assert pattern("{ BIND(RAND() AS ?x) }") == Extend(Bgp(()), X, Call("RAND", ()))
    assert pattern("{ ?s :p ?o FILTER(:f(DISTINCT ?o, 1)) }") == Filter(
        Call("<http://e/f>", (O, ONE)), SP
    )
