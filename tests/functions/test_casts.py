"""Casts to derived datatypes and the functions of XPath's math namespace; expected by hand."""

from __future__ import annotations

import math

import pytest
from pyoxigraph import Literal, NamedNode

from graphtide import LiveGraph

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = (
    f"PREFIX xsd: <{XSD}> PREFIX math: <http://www.w3.org/2005/xpath-functions/math#> "
    "PREFIX ex: <http://example.org/> "
)


def value(expression):
    """The value of an expression in a standing query, as an N-Triples text."""
    watch = LiveGraph().watch(f"{PREFIXES} SELECT ({expression} AS ?v) {{}}")
    return watch.table(terms=True)["v"].to_pylist()[0]


@pytest.mark.parametrize(
    ("expression", "lexical", "datatype"),
    [
        ('xsd:int("+07")', "7", "int"),
        ("xsd:int(-5.9)", "-5", "int"),
        ("xsd:int(true)", "1", "int"),
        ("xsd:byte(127)", "127", "byte"),
        ('xsd:byte("-128")', "-128", "byte"),
        ('xsd:unsignedLong("18446744073709551615")', "18446744073709551615", "unsignedLong"),
        ("xsd:nonNegativeInteger(0)", "0", "nonNegativeInteger"),
        ("xsd:negativeInteger(-1e0)", "-1", "negativeInteger"),
        ('xsd:normalizedString("a\\tb ")', "a b ", "normalizedString"),
        ('xsd:token("  a \\n b ")', "a b", "token"),
        ('xsd:language("en-GB")', "en-GB", "language"),
        ('xsd:NCName("a-1")', "a-1", "NCName"),
        ("xsd:anyURI(ex:a)", "http://example.org/a", "anyURI"),
        ('xsd:hexBinary("0aFf")', "0AFF", "hexBinary"),
        ('xsd:base64Binary(xsd:hexBinary("0aff"))', "Cv8=", "base64Binary"),
        ('xsd:hexBinary(xsd:base64Binary("Cv8="))', "0AFF", "hexBinary"),
        ('xsd:dateTimeStamp("2024-01-01T00:00:00Z")', "2024-01-01T00:00:00Z", "dateTimeStamp"),
    ],
)
def test_a_cast_keeps_the_derived_type(expression, lexical, datatype):
    assert value(expression) == str(Literal(lexical, datatype=NamedNode(XSD + datatype)))


@pytest.mark.parametrize(
    "expression",
    [
        "xsd:byte(128)",
        "xsd:unsignedInt(-1)",
        "xsd:positiveInteger(0)",
        "xsd:nonPositiveInteger(1)",
        "xsd:long(9223372036854775808)",
        'xsd:int("1.0")',
        "xsd:int(1e0/0e0)",
        'xsd:NCName("a:b")',
        'xsd:language("")',
        'xsd:hexBinary("0")',
        "xsd:hexBinary(1)",
        'xsd:base64Binary("?")',
        'xsd:dateTimeStamp("2024-01-01T00:00:00")',
    ],
)
def test_what_does_not_fit_is_an_error(expression):
    assert value(expression) is None


def test_a_derived_integer_is_a_number():
    assert value('xsd:int("5") + xsd:byte(1) = 6') == str(Literal(value=True))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("math:pi()", math.pi),
        ("math:sqrt(2)", math.sqrt(2)),
        ("math:pow(2, 0.5)", 2**0.5),
        ("math:exp(1)", math.e),
        ("math:exp10(3)", 1000.0),
        ("math:log10(1000)", 3.0),
        ("math:log(0)", -math.inf),
        ("math:exp(1000)", math.inf),
        ("math:sin(math:pi() / 2)", 1.0),
        ("math:cos(0)", 1.0),
        ("math:atan2(0, -1)", math.pi),
        ("math:acos(-1)", math.pi),
    ],
)
def test_mathematics(expression, expected):
    lexical = value(expression).split('"')[1]
    assert float(lexical) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("expression", ["math:sqrt(-1)", "math:log(-1)", "math:asin(2)"])
def test_where_there_is_no_result_it_is_not_a_number(expression):
    assert value(f"STR({expression})") == '"NaN"'


def test_a_text_is_no_number():
    assert value('math:sqrt("4")') is None
