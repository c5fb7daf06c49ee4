"""Update messages: a change log of one change per line, `<time, ins, (s, p, o)>`.

    # what happened today
    <17, ins, (<http://example.org/a>, <http://example.org/p>, "b")>
    <18, del, (<http://example.org/a>, <http://example.org/p>, "b", <http://example.org/graph>)>

Terms are written as in N-Triples; a fourth one names a graph. Each message is a transaction of its
own, numbered 0, 1, 2… in the order of the file. Times never decrease.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from graphtide.errors import TermError
from graphtide.rdf.changes import ChangeBatch, RejectedRows
from graphtide.rdf.formats.lines import LONG_LINE, NOT_UTF8, line_text, read_blocks
from graphtide.rdf.formats.patch import RowError
from graphtide.rdf.terms import POSITIONS, TRIPLE_START, canonical_text, triple_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_HEAD = re.compile(r"\s*<\s*([^\s,<>()]*)\s*,\s*([^\s,<>()]*)\s*,\s*\(\s*")
_TERM = re.compile(
    r'<[^<>]*>|_:[^\s,()]+|"(?:[^"\\]|\\.)*"(?:\^\^<[^<>]*>|@[A-Za-z0-9-]+)?|[^\s,()<>"]+'
)
_BETWEEN = re.compile(r"\s*([,)])\s*")
_TAIL = re.compile(r">\s*(?:#.*)?$")
_DIFFS: Final = {"ins": 1, "del": -1}
_SHAPE: Final = "a message is <time, ins, (s, p, o)> or <time, del, (s, p, o)>"
_POSITIONS: Final = tuple(POSITIONS.values())
_INT64: Final = range(-(2**63), 2**63)


class Message(NamedTuple):
    """A message: its time, +1 or -1, and the texts of its terms; the graph may be None."""

    time: int
    diff: int
    s: str
    p: str
    o: str
    g: str | None


def read_messages(file: IO[bytes], rejected: RejectedRows) -> Iterator[ChangeBatch]:
    r"""Read a file of update messages.

    >>> import io
    >>> from graphtide.rdf.changes import RejectedRows
    >>> file = io.BytesIO(b"<3, ins, (<ex:a>, <ex:p>, <ex:b>)>\n<4, del, (<ex:a>, <ex:p>, <ex:b>)>")
    >>> [
    ...     d
    ...     for batch in read_messages(file, RejectedRows("log.updates"))
    ...     for d in batch.diff.tolist()
    ... ]
    [1, -1]
    """
    number, last = 0, None
    for first_line, block in read_blocks(file, rejected.limits):
        found: list[tuple[int, int, int, str, str, str, str | None]] = []
        for line, raw in enumerate(block.split(b"\n"), first_line):
            if raw == LONG_LINE:
                rejected.report_long(line)
                continue
            text, wrong = line_text(raw)
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            try:
                if wrong:
                    raise RowError(wrong, NOT_UTF8)
                message = parse_message(text, last)
            except RowError as error:
                rejected.report(line, error.column, text, error.reason)
                continue
            last = message.time
            found.append((message.time, number, *message[1:]))
            number += 1
        if found:
            yield ChangeBatch.of(found)


def parse_message(text: str, last: int | None = None) -> Message:
    """Read one message, whose time is not before `last`; raises `RowError` with the column.

    >>> parse_message('<17, del, (<ex:a>, <ex:p>, "x"@en)>').o
    '"x"@en'
    >>> parse_message("<17, add, (<ex:a>, <ex:p>, <ex:b>)>")
    Traceback (most recent call last):
        ...
    graphtide.rdf.formats.patch.RowError: 'add' is not an operation; use ins or del
    """
    head = _HEAD.match(text)
    if head is None:
        raise RowError(len(text) - len(text.lstrip()) + 1, _SHAPE)
    time = _time(head, last)
    diff = _DIFFS.get(head[2])
    if diff is None:
        raise RowError(head.start(2) + 1, f"{head[2]!r} is not an operation; use ins or del")
    s, p, o, *graph = _terms(text, head.end())
    return Message(time, diff, s, p, o, graph[0] if graph else None)


def _time(head: re.Match[str], last: int | None) -> int:
    column = head.start(1) + 1
    try:
        time = int(head[1])
    except ValueError:
        raise RowError(column, f"{head[1]!r} is not a whole number") from None
    if time not in _INT64:
        raise RowError(column, f"{time} does not fit into 64 bits")
    if last is not None and time < last:
        raise RowError(column, f"time runs backwards: {time} comes after {last}")
    return time


def _terms(text: str, at: int) -> list[str]:
    """The canonical texts of the terms from index `at` to the end of the message."""
    found: list[str] = []
    while True:
        term, after = _match(text, at), None
        if term is not None:
            after = _BETWEEN.match(text, term.end())
        if term is None or after is None:
            where = at if term is None else term.end()
            raise RowError(where + 1, "expected a term, then a comma or a closing parenthesis")
        if len(found) == len(_POSITIONS):
            raise RowError(at + 1, "a quad has at most four terms")
        found.append(_term(term, len(found)))
        at = after.end()
        if after[1] == ")":
            break
    if len(found) < 3:
        raise RowError(at, f"{len(found)} terms where a triple has three")
    if _TAIL.match(text, at) is None:
        raise RowError(at + 1, "the message does not end with '>'")
    return found


def _match(text: str, at: int) -> re.Match[str] | None:
    if not text.startswith(TRIPLE_START, at):
        return _TERM.match(text, at)
    try:
        return re.compile(".*").fullmatch(text, at, triple_end(text, at))
    except TermError as error:
        raise RowError(at + 1, error.message) from None


def _term(term: re.Match[str], position: int) -> str:
    try:
        canonical = canonical_text(term.group())
    except TermError as error:
        raise RowError(term.start() + 1, error.message) from None
    if not _POSITIONS[position].allows(canonical):
        raise RowError(term.start() + 1, _POSITIONS[position].rule)
    return canonical


def write_messages(batches: Iterable[ChangeBatch], file: IO[bytes]) -> None:
    r"""Write changes as messages, each a transaction of its own.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_messages([ChangeBatch.of([(17, 0, -1, "<ex:a>", "<ex:p>", '"x"', None)])], file)
    >>> file.getvalue().decode()
    '<17, del, (<ex:a>, <ex:p>, "x")>\n'
    """
    for batch in batches:
        terms = zip(
            *(column.to_pylist() for column in (batch.s, batch.p, batch.o, batch.g)), strict=True
        )
        for time, diff, quad in zip(batch.time.tolist(), batch.diff.tolist(), terms, strict=True):
            inside = ", ".join(term for term in quad if term)
            file.write(f"<{time}, {'ins' if diff > 0 else 'del'}, ({inside})>\n".encode())
