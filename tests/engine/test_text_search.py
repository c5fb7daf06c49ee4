"""text:query against its definition: the words of every literal, looked at one by one."""

from __future__ import annotations

import unicodedata
from collections import Counter
from random import Random

import pytest
from pyoxigraph import Literal, NamedNode

import graphtide as gt
from graphtide.engine.dataflow import text_index
from graphtide.errors import ExpressionError, QueryError
from graphtide.functions.extensions.text import matches, parse_text_query, words_of

HEAD = "PREFIX text: <http://jena.apache.org/text#> PREFIX : <http://e/>\n"
VOCABULARY = ["tide", "tidal", "Ebb", "STRASSE", "straße", "low", "no", "é", "e\u0301", "x1"]
SPACES = [" ", ", ", "-", "_", "  ", "'"]


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.casefold())


# ---- the oracle: a query as text, and what it says of a list of words ----------------------------


def phrase_at(wanted, words, at, *, prefix):
    """Whether words begin at a place; the last may be longer."""
    if at + len(wanted) > len(words):
        return False
    pairs = list(zip(wanted, words[at:], strict=False))
    exact = pairs[:-1] if prefix else pairs
    return all(a == b for a, b in exact) and pairs[-1][1][: len(pairs[-1][0])] == pairs[-1][0]


def random_query(random: Random, depth: int = 2):
    """A text, its truth for words, and the places of words that it counts."""
    kind = random.choice(
        ["word", "prefix", "phrase", "joined"] if depth == 0 else ["and", "or", "not", "word", "+"]
    )
    if kind in ("and", "or"):
        parts = [random_query(random, depth - 1) for _ in range(random.randint(2, 3))]
        sign = random.choice([" ", " AND "]) if kind == "and" else " OR "
        every = all if kind == "and" else any
        return (
            f"({sign.join(text for text, _, _ in parts)})",
            lambda words: every(holds(words) for _, holds, _ in parts),
            lambda words: set().union(*(hits(words) for _, _, hits in parts)),
        )
    if kind in ("not", "+"):
        text, holds, hits = random_query(random, depth - 1)
        if kind == "+":
            return f"+{text}", holds, hits
        sign = random.choice(["-", "NOT ", "!"])
        return f"{sign}{text}", lambda words: not holds(words), lambda _: set()
    if kind == "word" or depth:
        wanted = [random.choice(VOCABULARY)]
        text, prefix = wanted[0], False
    elif kind == "prefix":
        wanted, prefix = [random.choice(VOCABULARY)[: random.randint(1, 3)]], True
        text = f"{wanted[0]}*"
    else:
        wanted, prefix = random.choices(VOCABULARY, k=random.randint(2, 3)), False
        text = f'"{" ".join(wanted)}"' if kind == "phrase" else "-".join(wanted)
    wanted = [folded(word) for word in wanted]

    def places(words):
        at = (i for i in range(len(words)) if phrase_at(wanted, words, i, prefix=prefix))
        return {i + j for i in at for j in range(len(wanted))}

    return text, lambda words: bool(places(words)), places


def random_literal(random: Random):
    """A literal, and its words: none if it is not a text."""
    words = random.choices(VOCABULARY, k=random.randint(0, 4))
    spaces = [random.choice(SPACES) for _ in words]
    text = "".join(w + s for w, s in zip(words, spaces, strict=True))
    match random.randint(0, 5):
        case 0:
            return Literal(7), None
        case 1:
            return NamedNode("http://e/tide"), None
        case 2:
            return Literal(text, language="en"), list(map(folded, words))
        case _:
            return Literal(text), list(map(folded, words))


def rows(table) -> Counter:
    return Counter(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize("strategy", ["search", "rete"])
@pytest.mark.parametrize("seed", range(4))
def test_standing_and_one_off_searches_are_what_the_definition_says(
    seed, strategy, few, monkeypatch
):
    """With the index for every batch, and for none of these small ones."""
    monkeypatch.setattr(text_index, "FEW", few)
    random = Random(seed + few)
    graph = gt.LiveGraph()
    words_by_literal: dict = {}
    triples: set = set()
    subjects = [NamedNode(f"http://e/s{i}") for i in range(4)]
    names = [NamedNode(f"http://e/p{i}") for i in range(3)]
    queries = []
    for _ in range(4):
        text, holds, hits = random_query(random)
        quoted = str(Literal(text))
        properties = random.sample(names, random.randint(0, 2))
        listed = " ".join(map(str, properties))
        limit = random.choice([None, None, 1, 3])
        of = f"({listed} {quoted} {'' if limit is None else limit})"
        full = f"{HEAD} SELECT ?s ?l ?score {{ (?s ?score ?l) text:query {of} }}"
        only = f"{HEAD} SELECT ?s ?o {{ ?s text:query ({listed} {quoted}) ; :p0 ?o }}"
        queries.append(((holds, hits, properties, limit), full, only))
    watches = [tuple(graph.watch(q, strategy=strategy) for q in each[1:]) for each in queries]
    for _ in range(8):
        with graph.transaction() as tx:
            for _ in range(random.randint(1, 6)):
                if triples and random.random() < 0.4:
                    gone = random.choice(sorted(triples, key=str))
                    triples.discard(gone)
                    tx.delete(*gone)
                else:
                    literal, words = random_literal(random)
                    words_by_literal[literal] = words
                    added = (random.choice(subjects), random.choice(names), literal)
                    triples.add(added)
                    tx.insert(*added)
        for ((holds, hits, properties, limit), full, only), (scored, joined) in zip(
            queries, watches, strict=True
        ):
            found = [
                (s, o, len(hits(words)) / len(words) if words else 0.0)
                for s, p, o in triples
                if (words := words_by_literal[o]) is not None
                and (not properties or p in properties)
                and holds(words)
            ]
            wanted = Counter((s, o) for s, o, _ in found)
            both = Counter()
            for (s, _), count in wanted.items():
                for subject, p, o in triples:
                    if subject == s and p == names[0]:
                        both[str(s), str(o)] += count
            assert rows(joined.table(terms=True)) == both
            assert rows(graph.query(only, terms=True)) == both
            found.sort(key=lambda row: (-row[2], str(row[0]), str(row[1])))
            top = Counter((str(s), str(o), score) for s, o, score in found[:limit])
            for answer in (scored.table(terms=True), graph.query(full, terms=True)):
                shown = Counter()
                for s, o, score in rows(answer).elements():
                    shown[s, o, float(score.split('"')[1])] += 1
                assert shown == top


def test_the_index_outlives_terms_that_are_freed():
    """Ids are given to other terms, so what the index knows of them is forgotten."""
    graph = gt.LiveGraph()
    search = f'{HEAD} SELECT ?l {{ (?s ?score ?l) text:query (:name "even") }}'
    for turn in range(4):
        with graph.transaction() as tx:
            for n in range(100):
                word = "even" if (n + turn) % 2 else "odd"
                tx.insert(f"<http://e/{n}>", "<http://e/name>", f'"{word} {turn} {n}"')
        found = graph.query(search)
        assert sorted(found["l"].to_pylist()) == sorted(
            f"even {turn} {n}" for n in range(100) if (n + turn) % 2
        )
        with graph.transaction() as tx:
            for n in range(100):
                word = "even" if (n + turn) % 2 else "odd"
                tx.delete(f"<http://e/{n}>", "<http://e/name>", f'"{word} {turn} {n}"')
        graph.terms.reclaim()
        assert graph.terms.generation > turn


def test_the_limit_takes_the_best_and_the_next_one_moves_in():
    graph = gt.LiveGraph()
    best = graph.watch(f'{HEAD} SELECT ?s {{ ?s text:query (:name "tide" 1) }}')
    graph.insert("<http://e/a>", "<http://e/name>", '"low tide"')
    graph.insert("<http://e/b>", "<http://e/name>", '"Tide"')
    assert [row["s"] for row in best.table().to_pylist()] == ["<http://e/b>"]
    graph.delete("<http://e/b>", "<http://e/name>", '"Tide"')
    assert [row["s"] for row in best.table().to_pylist()] == ["<http://e/a>"]


def test_languages():
    graph = gt.LiveGraph()
    tagged = graph.watch(f'{HEAD} SELECT ?l {{ (?s ?score ?l) text:query (:name "tide"@en) }}')
    named = graph.watch(
        f'{HEAD} SELECT ?l {{ (?s ?score ?l) text:query (:name "tide" "lang:en") }}'
    )
    for text in ('"tide"', '"tide"@en', '"tide"@en-GB', '"tide"@de'):
        graph.insert("<http://e/a>", "<http://e/name>", text)
    assert tagged.count() == named.count() == 2


def test_named_graphs_and_windows_have_their_own_texts():
    graph = gt.LiveGraph()
    inside = graph.watch(f'{HEAD} SELECT ?g ?s {{ GRAPH ?g {{ ?s text:query (:name "tide" 1) }} }}')
    for at, name in enumerate("xyx"):
        graph.insert(f"<http://e/{at}>", "<http://e/name>", '"tide"', f"<http://e/{name}>")
    found = sorted(tuple(row.values()) for row in inside.table().to_pylist())
    assert found == [("<http://e/x>", "<http://e/0>"), ("<http://e/y>", "<http://e/1>")]


def test_programs_search_texts():
    graph = gt.LiveGraph()
    program = graph.run(
        gt.Program.parse(
            HEAD
            + 'QUERY Calls AS SELECT ?s { ?s text:query (:says "help*") }\n'
            + "RULE Tell ON APPEAR OF Calls(?s) THEN CALL tell(?s)"
        ),
        functions={"tell": lambda *_: None},
    )
    graph.insert("<http://e/a>", "<http://e/says>", '"HELP, please"')
    graph.insert("<http://e/b>", "<http://e/says>", '"all is well"')
    assert len(program.firings()) == 1


def test_words_of_scripts():
    assert words_of("don't re-read naïve Ⅷ ﬁne") == (
        "don",
        "t",
        "re",
        "read",
        "naïve",
        "viii",
        "fine",
    )
    assert words_of("東京タワー ひら हिन्दी") == ("東", "京", "タワー", "ひ", "ら", "हिन्दी")
    assert matches(Literal("東京タワー"), Literal("京タワ*")).value == "true"
    assert matches(Literal("東京タワー"), Literal("タワ")).value == "false"


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "()", "a OR", "AND a", "(a", "a)", '"a', "a~2", "te?t", "*a", "a^2", "name:a"),
        *("- a", "+", "*", "..", "!" * 500 + "a", "(" * 500 + "a" + ")" * 500),
    ],
)
def test_what_is_no_query_is_refused_at_registration(text):
    with pytest.raises(ExpressionError):
        parse_text_query(text)
    with pytest.raises(QueryError, match="text query"):
        gt.LiveGraph().watch(f"{HEAD} SELECT * {{ ?s text:query {Literal(text)} }}")
    call = f"<urn:graphtide:text#matches>(?o, {Literal(text)})"
    with pytest.raises(QueryError, match="text query"):
        gt.LiveGraph().watch(f"SELECT * {{ ?s ?p ?o FILTER ({call}) }}")


@pytest.mark.parametrize(
    "pattern",
    [
        "?s text:query ?words",
        "?s text:query (:name ?words)",
        "?s text:query :name",
        "?s text:query ()",
        "?s text:query (5)",
        '?s text:query (:name "a" :name)',
        '?s text:query ("a" "b")',
        '(?s ?score ?l ?g) text:query "a"',
        '(?s ?s) text:query "a"',
        '(?s 1) text:query "a"',
        '(?s (?score)) text:query "a"',
        '([ :p 1 ] ?score) text:query "a"',
        '() text:query "a"',
    ],
)
def test_other_forms_are_refused(pattern):
    with pytest.raises(QueryError):
        gt.LiveGraph().watch(f"{HEAD} SELECT * {{ {pattern} }}")


@pytest.mark.parametrize("text", ["CONSTRUCT WHERE {}", "DELETE WHERE {}"])
def test_short_forms_are_refused(text):
    graph = gt.LiveGraph()
    run = graph.update if text.startswith("DELETE") else graph.query
    with pytest.raises(QueryError, match="text:query"):
        run(HEAD + text.replace("{}", '{ ?s text:query "a" }'))


def test_inside_of_other_clauses():
    graph = gt.LiveGraph()
    query = f"""{HEAD} SELECT ?s ?l {{ ?s :is :doc OPTIONAL {{ (?s ?x ?l) text:query (:name "a") }}
        FILTER NOT EXISTS {{ ?s text:query (:name "b") }} }}"""
    watch = graph.watch(query)
    for name, text in (("1", "a"), ("2", "a b"), ("3", "c")):
        graph.insert(f"<http://e/{name}>", "<http://e/is>", "<http://e/doc>")
        graph.insert(f"<http://e/{name}>", "<http://e/name>", f'"{text}"')
    rows = sorted(tuple(row.values()) for row in watch.table(terms=True).to_pylist())
    assert rows == [("<http://e/1>", '"a"'), ("<http://e/3>", None)]
    graph.delete("<http://e/2>", "<http://e/name>", '"a b"')
    assert watch.count() == 3


def test_as_data_it_is_a_predicate_like_others():
    graph = gt.LiveGraph()
    assert graph.update(f"{HEAD} INSERT DATA {{ :a text:query 'word' }}") == 1
