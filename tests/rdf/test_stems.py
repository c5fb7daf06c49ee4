"""What texts have in common is stored once: every text comes back, whatever it shares."""

from __future__ import annotations

import random

import pytest
from kernel.batches import needs_jit

from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.kernels.stems import LONGEST, MOST

XSD = "http://www.w3.org/2001/XMLSchema#"


def texts(rng: random.Random, many: int) -> list[str]:
    """Texts of more namespaces and datatypes than there are stems, and some that share nothing."""
    places = [f"http://example.org/{'a' * rng.randrange(300)}{n}" for n in range(2 * MOST)]
    types = [f"{XSD}integer", f"{XSD}decimal", *(f"{place}/type" for place in places[:60])]
    found = []
    for _ in range(many):
        name = "".join(rng.choices("abcé/#", k=rng.randrange(9)))
        found.append(
            rng.choice(
                [
                    f"<{rng.choice(places)}{rng.choice('/#')}{name.replace('#', '')}>",
                    f"<urn:{name.replace('#', '')}x>",
                    f'"{name}"',
                    f'"{name}"@en',
                    f'"{rng.randrange(-99, 99)}"^^<{XSD}integer>',
                    f'"{name}"^^<{rng.choice(types[2:])}>',
                    f'"\\">"^^<{rng.choice(types[2:])}>',
                    f"_:b{rng.randrange(99)}",
                ]
            )
        )
    return found


@needs_jit
@pytest.mark.parametrize("seed", range(4))
def test_every_text_comes_back_also_when_others_are_freed(seed):
    rng = random.Random(seed)
    terms = TermDictionary()
    known: dict[str, int] = {}
    for _ in range(6):
        new = texts(rng, 2000)
        if rng.random() < 0.5:
            ids = terms.encode_column(new).tolist()
        else:
            ids = [terms.encode(text) for text in new]
        for text, found in zip(new, ids, strict=True):
            assert known.setdefault(text, found) == found
        assert len(set(known.values())) == len(known)
        assert terms.decode_column(list(known.values())).to_pylist() == list(known)
        assert [terms.text(found) for found in known.values()] == list(known)
        gone = [text for text in known if rng.random() < 0.4]
        for text in gone:
            terms.release(known.pop(text))
        terms.reclaim()
        assert len(terms) == len(known)
        assert all(terms.lookup(text) == 0 for text in gone)
        assert all(terms.lookup(text) == found for text, found in known.items())


@needs_jit
@pytest.mark.parametrize("end", ["#", "/"])
def test_a_namespace_is_stored_once(end):
    """By hand: an IRI takes its own bytes, 25 of columns, and at most 27 of the hash table."""
    terms, namespace = TermDictionary(), f"http://example.org/{'long/' * 40}ns{end}"
    assert len(namespace) < LONGEST
    many = 20_000
    terms.encode_column([f"<{namespace}{n}>" for n in range(many)])
    assert terms.nbytes / many < 6 + 25 + 27 + 1


@needs_jit
def test_two_namespaces_in_turns_are_both_stems():
    terms, many = TermDictionary(), 10_000
    for n in range(many):
        terms.encode(f"<http://example.org/{'one' * 30}/{n}>")
        terms.encode(f'"{n}"^^<http://example.org/{"two" * 30}/type>')
    assert terms.nbytes / (2 * many) < 7 + 25 + 27 + 1
