"""What registration accepts and refuses, and the words it uses."""

from __future__ import annotations

import re

import pytest

from graphtide.errors import UnsupportedError
from graphtide.functions.table import FUNCTIONS, VOLATILE, check_call
from graphtide.functions.xsd import XSD

# The built-in calls of https://www.w3.org/TR/sparql11-query/#rBuiltInCall and the casts of
# https://www.w3.org/TR/sparql11-query/#FunctionMapping.
SPARQL_11 = [
    "STR",
    "LANG",
    "LANGMATCHES",
    "DATATYPE",
    "BOUND",
    "IRI",
    "URI",
    "BNODE",
    "RAND",
    "ABS",
    "CEIL",
    "FLOOR",
    "ROUND",
    "CONCAT",
    "STRLEN",
    "UCASE",
    "LCASE",
    "ENCODE_FOR_URI",
    "CONTAINS",
    "STRSTARTS",
    "STRENDS",
    "STRBEFORE",
    "STRAFTER",
    "YEAR",
    "MONTH",
    "DAY",
    "HOURS",
    "MINUTES",
    "SECONDS",
    "TIMEZONE",
    "TZ",
    "NOW",
    "UUID",
    "STRUUID",
    "MD5",
    "SHA1",
    "SHA256",
    "SHA384",
    "SHA512",
    "COALESCE",
    "IF",
    "STRLANG",
    "STRDT",
    "SAMETERM",
    "ISIRI",
    "ISURI",
    "ISBLANK",
    "ISLITERAL",
    "ISNUMERIC",
    "REGEX",
    "SUBSTR",
    "REPLACE",
]
SIGNS = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "&&", "||", "!", "IN", "NOT IN"]
CASTS = [
    f"<{XSD}{name}>"
    for name in ("string", "boolean", "integer", "decimal", "float", "double", "dateTime")
]


@pytest.mark.parametrize("name", [*SPARQL_11, *SIGNS, *CASTS])
def test_everything_of_the_recommendation_is_known_or_refused_with_a_reason(name):
    assert (name in FUNCTIONS) != (name in VOLATILE)


@pytest.mark.parametrize("name", sorted(VOLATILE))
@pytest.mark.parametrize("n_args", [0, 1])
def test_volatile_functions_are_refused(name, n_args):
    with pytest.raises(UnsupportedError, match=f"{name} cannot be maintained: {name} "):
        check_call(name, n_args)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("STRLENGTH", "did you mean STRLEN?"),
        ("strlen", "did you mean STRLEN?"),
        ("==", "did you mean =?"),
        (f"<{XSD}integr>", f"did you mean <{XSD}integer>?"),
        ("QQQQ", None),
    ],
)
def test_unknown_functions_name_the_nearest(name, hint):
    with pytest.raises(UnsupportedError, match=re.escape(f"unknown function {name}")) as caught:
        check_call(name, 1)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("name", "n_args", "message"),
    [
        ("STRLEN", 2, "STRLEN takes 1 argument, not 2"),
        ("=", 1, "= takes 2 arguments, not 1"),
        ("SUBSTR", 4, "SUBSTR takes 2 to 3 arguments, not 4"),
        ("IN", 0, "IN takes at least 1 argument, not 0"),
        ("IF", 2, "IF takes 3 arguments, not 2"),
    ],
)
def test_wrong_numbers_of_arguments(name, n_args, message):
    with pytest.raises(UnsupportedError, match=f"^{re.escape(message)}$"):
        check_call(name, n_args)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_right_numbers_of_arguments(name):
    entry = FUNCTIONS[name]
    check_call(name, entry.least)
    check_call(name, entry.least + 9 if entry.most is None else entry.most)
    if entry.most is not None:
        with pytest.raises(UnsupportedError):
            check_call(name, entry.most + 1)
