"""Functions on strings, https://www.w3.org/TR/sparql11-query/#func-strings, and hash functions.

The language tags of two string arguments must be compatible.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pyoxigraph import Literal

from graphtide.errors import ExpressionError
from graphtide.functions import values
from graphtide.functions.numbers import NumericType
from graphtide.functions.regex import compile_pattern, compile_replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.rdf.terms import Term


def strlen(term: Term) -> Term:
    """STRLEN: the number of characters (code points)."""
    return values.integer_term(len(values.text_of(term).text))


def substr(source: Term, start: Term, length: Term | None = None) -> Term:
    """SUBSTR: counts from 1; a start before the string uses up length, as in XPath.

    >>> from pyoxigraph import Literal
    >>> print(substr(Literal("metadata"), values.integer_term(4), values.integer_term(3)))
    "ada"
    """
    whole = values.text_of(source)
    first = _position(start) - 1
    last = len(whole.text) if length is None else first + _position(length)
    return values.to_term(values.Text(whole.text[max(first, 0) : max(last, 0)], whole.language))


def ucase(term: Term) -> Term:
    """UCASE: upper case, same language."""
    source = values.text_of(term)
    return values.to_term(values.Text(source.text.upper(), source.language))


def lcase(term: Term) -> Term:
    """LCASE: lower case, same language."""
    source = values.text_of(term)
    return values.to_term(values.Text(source.text.lower(), source.language))


def strstarts(source: Term, prefix: Term) -> Term:
    """STRSTARTS."""
    whole, part = _compatible(source, prefix)
    return values.boolean_term(whole.text.startswith(part))


def strends(source: Term, suffix: Term) -> Term:
    """STRENDS."""
    whole, part = _compatible(source, suffix)
    return values.boolean_term(whole.text.endswith(part))


def contains(source: Term, inner: Term) -> Term:
    """CONTAINS."""
    whole, part = _compatible(source, inner)
    return values.boolean_term(part in whole.text)


def strbefore(source: Term, separator: Term) -> Term:
    """STRBEFORE: what precedes the first separator; an empty string without language if absent."""
    whole, part = _compatible(source, separator)
    before, found, _ = _partition(whole.text, part)
    return values.to_term(values.Text(before, whole.language) if found else values.Text(""))


def strafter(source: Term, separator: Term) -> Term:
    """STRAFTER: what follows the first separator; an empty string without language if absent."""
    whole, part = _compatible(source, separator)
    _, found, after = _partition(whole.text, part)
    return values.to_term(values.Text(after, whole.language) if found else values.Text(""))


def encode_for_uri(term: Term) -> Term:
    """ENCODE_FOR_URI: percent-encode all but the unreserved characters of RFC 3986."""
    return values.to_term(values.Text(quote(values.text_of(term).text, safe="-_.~")))


def concat(*terms: Term) -> Term:
    """CONCAT: keeps the language tag that all arguments share."""
    texts = [values.text_of(term) for term in terms]
    values.check_length(sum(len(each.text) for each in texts))
    languages = {each.language for each in texts}
    language = languages.pop() if len(languages) == 1 else None
    return values.to_term(values.Text("".join(each.text for each in texts), language))


def lang_matches(tag: Term, language_range: Term) -> Term:
    """LANGMATCHES: basic filtering of RFC 4647; `*` matches every tag but the empty one.

    >>> from pyoxigraph import Literal
    >>> print(lang_matches(Literal("en-GB"), Literal("EN")))
    "true"^^<http://www.w3.org/2001/XMLSchema#boolean>
    """
    given, wanted = values.plain_of(tag).lower(), values.plain_of(language_range).lower()
    if wanted == "*":
        return values.boolean_term(given != "")
    return values.boolean_term(given == wanted or given.startswith(f"{wanted}-"))


def regex(text: Term, pattern: Term, flags: Term | None = None) -> Term:
    """REGEX: whether the pattern matches somewhere in the text."""
    compiled = compile_pattern(
        values.plain_of(pattern), "" if flags is None else values.plain_of(flags)
    )
    return values.boolean_term(compiled.search(values.text_of(text).text))


def replace(source: Term, pattern: Term, replacement: Term, flags: Term | None = None) -> Term:
    r"""REPLACE: every match; `$1` in the replacement is the first group, `\$` a dollar sign.

    >>> from pyoxigraph import Literal
    >>> print(replace(Literal("abab"), Literal("(a)(b)"), Literal("$2$1")))
    "baba"
    """
    options = "" if flags is None else values.plain_of(flags)
    compiled = compile_pattern(values.plain_of(pattern), options)
    whole = values.text_of(source)
    if compiled.matches_empty:
        raise ExpressionError(f"the pattern of REPLACE matches the empty string: {pattern}")
    parts = compile_replacement(values.plain_of(replacement), compiled.groups, options)
    return values.to_term(values.Text(compiled.replace(whole.text, parts), whole.language))


PATTERN_FUNCTIONS: Final[dict[str, Callable[..., Term]]] = {"REGEX": regex, "REPLACE": replace}


def check_pattern(name: str, constants: Sequence[Term | None]) -> None:
    """Raise an error if a call cannot have a value, by those arguments that are constant.

    They are all but the first; None stands for one that is not constant.

    >>> check_pattern("REGEX", [Literal("(a"), None])
    Traceback (most recent call last):
        ...
    graphtide.errors.ExpressionError: an unclosed ( at 3 in the regular expression '(a'
    """
    harmless = (
        (Literal("a"), Literal("")) if name == "REGEX" else (*map(Literal, "aa"), Literal(""))
    )
    given = [given or use for given, use in zip(constants, harmless, strict=False)]
    PATTERN_FUNCTIONS[name](Literal(""), *given)


def _position(term: Term) -> int:
    number = values.number_of(term)
    if number.type is not NumericType.INTEGER:
        raise ExpressionError(f"SUBSTR takes integers, not {term}")
    return int(number.value)


def _compatible(source: Term, other: Term) -> tuple[values.Text, str]:
    """https://www.w3.org/TR/sparql11-query/#func-arg-compatibility."""
    whole, part = values.text_of(source), values.text_of(other)
    if part.language is not None and part.language != whole.language:
        raise ExpressionError(f"{source} and {other} have different languages")
    return whole, part.text


def _partition(whole: str, part: str) -> tuple[str, bool, str]:
    if part == "":
        return "", True, whole
    before, found, after = whole.partition(part)
    return before, found != "", after


def hash_function(algorithm: str) -> Callable[[Term], Term]:
    """MD5, SHA1, SHA256, SHA384 or SHA512 of the UTF-8 bytes of a string, in lower-case hex.

    https://www.w3.org/TR/sparql11-query/#func-hash

    >>> from pyoxigraph import Literal
    >>> print(hash_function("md5")(Literal("abc")))
    "900150983cd24fb0d6963f7d28e17f72"
    """

    def checksum(term: Term) -> Term:
        content = values.plain_of(term).encode()
        return values.to_term(
            values.Text(hashlib.new(algorithm, content, usedforsecurity=False).hexdigest())
        )

    return checksum
