"""The W3C's syntax tests: what must be read is read, what must not is refused with a place."""

from __future__ import annotations

import pytest
from w3c.manifest import SyntaxTest, path_of, suite_folder, syntax_tests
from w3c.suites import line, parameters

from graphtide.errors import QueryError, UnsupportedError
from graphtide.lang.sparql.parse import parse_any_query, parse_update

EXCLUDED: dict[str, str] = {}
"""Tests that are not run: name and reason."""

TESTS = syntax_tests()


@pytest.mark.parametrize("test", parameters(TESTS))
def test_syntax(test: SyntaxTest, record_property) -> None:
    record_property(*line(test, "parser"))
    if test.name in EXCLUDED:
        pytest.skip(f"excluded: {EXCLUDED[test.name]}")
    text = path_of(test.file).read_bytes().decode("utf-8")
    parse = parse_update if test.update else parse_any_query
    if test.positive:
        parse(text, base=test.file)
        return
    with pytest.raises(QueryError) as caught:
        parse(text, base=test.file)
    assert not isinstance(caught.value, UnsupportedError)
    assert caught.value.line is not None


@pytest.mark.skipif(not suite_folder().is_dir(), reason="the W3C suites are absent")
def test_the_manifests_name_every_test_once():
    assert len({test.iri for test in TESTS}) == len(TESTS) > 350
    assert {test.name for test in TESTS} >= set(EXCLUDED)
