"""MD5, SHA1, SHA256, SHA384, SHA512: checksums of the UTF-8 bytes of a string, in lower-case hex.

https://www.w3.org/TR/sparql11-query/#func-hash
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from graphtide.functions.values import Text, plain_of, to_term

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.term import Term


def hash_function(algorithm: str) -> Callable[[Term], Term]:
    """The SPARQL function for one algorithm of `hashlib`.

    >>> from graphtide.rdf.term import Literal
    >>> print(hash_function("md5")(Literal("abc")))
    "900150983cd24fb0d6963f7d28e17f72"
    """

    def checksum(term: Term) -> Term:
        content = plain_of(term).encode()
        return to_term(Text(hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()))

    return checksum
