"""Guards between a file and its parser: what is too large is an error before it is in memory.

A compressed file is unpacked piece by piece and counted (`UnpackedFile`). The parsers of documents
read through a `DocumentGuard`, which stops at a statement or a string without end, and adds up what
the entities of RDF/XML expand to. Lines that are too long are cut out in `lines.py`.
"""

from __future__ import annotations

import io
import re
from codecs import BOM_UTF8, getincrementaldecoder
from typing import IO, TYPE_CHECKING, Final, Literal

import numpy as np

from graphtide.errors import DataError

if TYPE_CHECKING:
    from graphtide.limits import Limits
    from graphtide.rdf.changes import RejectedRows

SLACK: Final = 1 << 16
"""Bytes that a parser may have read ahead."""

DEEPEST: Final = 500
"""Levels of triple terms, of JSON, and of elements of XML that are given to a parser. Its functions
call each other for each level: many thousands end the process, and fewer take long."""

MOST_CONTEXTS: Final = 20
"""Contexts of JSON-LD in objects that are inside of each other. The parser copies all terms that
are known at each of them, and holds the copies."""

_TRIPLES: Final = re.compile(rb"(<<\()|(\)>>)")
_TAGS: Final = re.compile(rb"(<(?![/!?]))|(</|/>)|<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
_LONGEST: Final = 9
"""Bytes of the longest beginning of such a token."""
_CONTEXT: Final = re.compile(
    b'"' + b"".join(rb"(?:%c|\\u00%02x)" % (c, c) for c in b"@context") + b'"', re.IGNORECASE
)
"""The key `@context`, however its characters are escaped."""
_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class UnpackedFile(io.RawIOBase):
    """What a compressed file unpacks to, up to a limit."""

    def __init__(self, packed: IO[bytes], stored: IO[bytes], source: str, limits: Limits) -> None:
        super().__init__()
        self._packed = packed
        self._stored = stored
        self._source = source
        self._limits = limits
        self._bytes = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Unpack as much as fits into a buffer."""
        count: int = self._packed.readinto(buffer)  # type: ignore[attr-defined]
        self._bytes += count
        most = self._limits.unpacked_bytes
        if most is not None and self._bytes > most:
            what = f"unpacks to more than {most:,} bytes"
            raise self._limits.data_error("unpacked_bytes", what, source=self._source)
        return count

    def close(self) -> None:
        """Close the file."""
        self._packed.close()
        self._stored.close()
        super().close()


def json_depth(data: bytes) -> int:
    r"""Return how deep arrays and objects are nested.

    >>> json_depth(b'[{"a\\"[[[": [1]}, []]')
    3
    """
    text = np.frombuffer(_JSON_STRING.sub(b"", data), np.uint8)
    begins = (text == ord("[")) | (text == ord("{"))
    ends = (text == ord("]")) | (text == ord("}"))
    steps = begins.astype(np.int8) - ends.astype(np.int8)
    return int(np.cumsum(steps[steps != 0], dtype=np.int64).max(initial=0))


def context_depth(data: bytes) -> int:
    r"""Return how many objects that have a context of JSON-LD are inside of each other, at most.

    >>> context_depth(
    ...     b'{"@context": {"a": "ex:a"}, "a": [{"@\\u0063ontext": {}}, {"@context": {}}]}'
    ... )
    2
    """
    marked = _CONTEXT.sub(b"\1", data)
    if b"\1" not in marked:
        return 0
    text = np.frombuffer(_JSON_STRING.sub(b"", marked), np.uint8)
    steps = ((text == ord("[")) | (text == ord("{"))).astype(np.int8)
    steps -= (text == ord("]")) | (text == ord("}"))
    keys = text == 1
    kept = keys | (steps != 0)
    levels, places = np.cumsum(steps[kept], dtype=np.int32), np.flatnonzero(keys[kept])
    lowest = np.minimum.reduceat(levels, places)
    inside: list[int] = []
    deepest = 0
    for level, least in zip(levels[places].tolist(), lowest.tolist(), strict=True):
        if not inside or inside[-1] < level:
            inside.append(level)
            deepest = max(deepest, len(inside))
        while inside and inside[-1] > least:
            inside.pop()
    return deepest


class Levels:
    r"""Counts levels in text that comes in pieces: tokens that begin one, and that end one.

    Triple terms in strings and comments of Turtle count, too: as many are not there by chance.

    >>> levels = Levels(_TAGS)
    >>> levels.take(b"<a><b><![CDATA[<c><d>"), levels.take(b"<e>]]><f/></b>" + 9 * b" ")
    (2, 3)
    >>> levels.depth
    1
    """

    def __init__(self, tokens: re.Pattern[bytes]) -> None:
        self._tokens = tokens
        self._rest = b""
        self.depth = 0

    def take(self, data: bytes) -> int:
        """Return the most levels at one place of the next piece."""
        text = self._rest + data
        deepest, done = self.depth, 0
        end = self._certain(text)
        for token in self._tokens.finditer(text):
            if token.start() >= end:
                break
            done = token.end()
            self.depth += bool(token.group(1)) - bool(token.group(2))
            deepest = max(deepest, self.depth)
        self._rest = text[max(end, done) :]
        return deepest

    def _certain(self, text: bytes) -> int:
        """Return up to where no token goes on in the next piece."""
        end = max(0, len(text) - _LONGEST)
        if self._tokens is _TAGS:
            for begin, last in ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>")):
                at = text.rfind(begin)
                if at >= 0 and text.find(last, at) < 0:
                    end = min(end, at)
        return end


class DocumentGuard:
    """A file for a parser of documents; `next_statement` says that it has got one further.

    What it guards against depends on the syntax: a statement without end in Turtle and XML; in
    JSON, where statements may come at the end only, a string without end; in XML also entities.
    """

    def __init__(
        self, file: IO[bytes], syntax: Literal["turtle", "xml", "json"], rejected: RejectedRows
    ) -> None:
        self._file = file
        self._limits = rejected.limits
        self._source = rejected.source
        self._syntax = syntax
        self._strings = syntax == "json"
        self._entities = EntityCount(rejected) if syntax == "xml" else None
        self._since = 0
        self._lines = 1
        self._begins = True
        self._levels = Levels(_TAGS if syntax == "xml" else _TRIPLES)
        self.line = 1

    def read(self, size: int = -1) -> bytes:
        """Read some bytes, after a look at them."""
        most_bytes = SLACK if size < 0 else min(size, SLACK)
        data = self._file.read(most_bytes)
        if self._begins:
            self._begins = False
            data = data.removeprefix(BOM_UTF8) or self._file.read(most_bytes)
        if self._entities is not None:
            self._entities.take(data)
        if self._strings:
            self._since_quote(data)
        else:
            self._since += len(data)
            self._measure(data)
        most = self._limits.literal_length
        if most is not None and self._since > most + SLACK:
            what = f"{'a string' if self._strings else 'a statement'} of more than {most:,} bytes"
            raise self._limits.data_error(
                "literal_length", what, source=self._source, line=self.line
            )
        self._lines += data.count(b"\n")
        if self._since <= SLACK:  # a long one has begun by then
            self.line = self._lines
        return data

    def next_statement(self) -> None:
        """The parser has found a statement in what it has read."""
        if not self._strings:
            self._since = 0
        if self._syntax == "turtle":
            self._levels.depth = 0

    def _measure(self, data: bytes) -> None:
        """Count the levels of what was read, and raise an error for too many."""
        if self._levels.take(data) > DEEPEST:
            self.refuse_depth()

    def refuse_depth(self) -> None:
        """Raise the error for what is nested too deeply."""
        what = f"something is nested more than {DEEPEST} levels deep"
        raise DataError(what, source=self._source, line=self.line)

    def _since_quote(self, data: bytes) -> None:
        plain = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
        last = plain.rfind(b'"')
        self._since = self._since + len(plain) if last < 0 else len(plain) - last


# As pyoxigraph reads them, which is laxer than XML: what it does not accept need not be counted.
_BLANK = r"[ \t\n\f\r]"
_DECLARATION = re.compile(rf'<!ENTITY\s*%?\s*([^ \t\n\f\r<]+){_BLANK}\s*"([^"<]*)"', re.DOTALL)
_REFERENCE = re.compile("&([^&;]+);")
_TOKEN = re.compile(f"{_DECLARATION.pattern}|{_REFERENCE.pattern}", re.DOTALL)
_BEGUN = re.compile(r'<!ENTITY[^"<]*(?:"[^"<]*)?')
_START: Final = "<!ENTITY"


class EntityCount:
    r"""Adds up what the entities of an XML text expand to, without expanding them.

    An entity may only refer to those declared before it, so its size is known at once.

    >>> from graphtide.limits import Limits
    >>> from graphtide.rdf.changes import RejectedRows
    >>> count = EntityCount(RejectedRows("a.rdf", limits=Limits(entity_bytes=50)))
    >>> count.take(b'<!ENTITY a "012345678"> <!ENTITY b "&a;&a;">]>')
    >>> count.total
    35
    >>> count.take(b"<p>&b;&b;</p></rdf:RDF>")
    Traceback (most recent call last):
        ...
    graphtide.errors.DataLimitError: a.rdf: its entities expand to more than 50 bytes
      hint: the limit entity_bytes is 50; raise it with Limits(entity_bytes=…), or on the command
      line with --limit entity_bytes=…
    """

    def __init__(self, rejected: RejectedRows) -> None:
        self._limits = rejected.limits
        self._source = rejected.source
        self._sizes: dict[str, int] = {}
        self._rest = ""
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self.total = 0

    def take(self, data: bytes) -> None:
        """Look at the next piece of the text."""
        text = self._rest + self._decoder.decode(data)
        if not self._sizes and _START not in text:
            self._rest = text[-len(_START) :]
            return
        end = self._complete(text)
        done = 0
        for found in _TOKEN.finditer(text, 0, end):
            name, value, reference = found.groups()
            done = found.end()
            if reference is None:
                self._sizes[name] = self._expanded(value)
                self._add(self._sizes[name] + len(name))
            else:
                self._add(self._sizes.get(reference, 0))
        self._rest = text[max(done, min(end, len(text) - len(_START))) :]
        if len(self._rest) > SLACK:  # one declaration: it counts before it is complete
            self._add(len(self._rest) if self._rest.startswith(_START) else 0)

    @staticmethod
    def _complete(text: str) -> int:
        """Where a declaration or reference begins that may go on in the next piece, or the end."""
        begun = text.rfind(_START)
        if begun >= 0 and _BEGUN.fullmatch(text, begun) and not _DECLARATION.match(text, begun):
            return begun
        reference = text.rfind("&", max(0, len(text) - SLACK))
        if reference >= 0 and text.find(";", reference) < 0:
            return reference
        return len(text)

    def _expanded(self, value: str) -> int:
        return len(value) + sum(self._sizes.get(name, 0) for name in _REFERENCE.findall(value))

    def _add(self, size: int) -> None:
        self.total += size
        most = self._limits.entity_bytes
        if most is not None and self.total > most:
            what = f"its entities expand to more than {most:,} bytes"
            raise self._limits.data_error("entity_bytes", what, source=self._source)
