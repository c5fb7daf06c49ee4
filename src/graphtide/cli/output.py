"""Output of a session: coloured on a terminal, plain lines in a pipe, or JSON lines."""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, assert_never

from pyoxigraph import Literal, NamedNode
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from graphtide.cli import session as sess
from graphtide.lang.sparql.terms import TermParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from graphtide.rdf.terms import Term

ROWS_AT_ONCE: Final = 500
"""Rows that are printed on a terminal together: each print also redraws the status table."""

FRAMES_PER_SECOND: Final = 8


class OutputWriter(Protocol):
    """Where output goes; used as a context, at the end of which all is written."""

    def write(self, found: Sequence[sess.SessionOutput]) -> None:
        """Write some output."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class LineWriter:
    """Writes a line of text for each row, flushed at once."""

    def __init__(self, line: Callable[[sess.SessionOutput], str]) -> None:
        self._line = line

    def write(self, found: Sequence[sess.SessionOutput]) -> None:
        """Write lines, if there are any."""
        if found:
            lines = (self._line(each) for each in found)
            sys.stdout.write("".join(f"{line}\n" for line in lines if line))
            sys.stdout.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: all is written."""


class TerminalWriter:
    """Writes rows in green and red, above a live table of the answers' sizes if there is one."""

    def __init__(
        self,
        line: Callable[[sess.SessionOutput], str],
        table: Callable[[], Table] | None = None,
    ) -> None:
        self._line = line
        self._console = Console(highlight=False)
        self._live = None
        if table is not None:
            self._live = Live(
                console=self._console,
                get_renderable=table,
                refresh_per_second=FRAMES_PER_SECOND,
                transient=True,
            )

    def write(self, found: Sequence[sess.SessionOutput]) -> None:
        """Print rows above the table."""
        for start in range(0, len(found), ROWS_AT_ONCE):
            part = found[start : start + ROWS_AT_ONCE]
            text = Text("\n").join(Text(self._line(each), style=style_of(each)) for each in part)
            self._console.print(text, soft_wrap=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()


def open_output(
    prologues: Mapping[str, str], session: sess.Session | None = None, *, as_json: bool
) -> OutputWriter:
    """The writer for standard output: JSON lines if wanted, else for a terminal or for a pipe.

    `prologues` has for each query a text whose prefixes shorten IRIs; as `plain_line` takes it.
    """
    if as_json:
        return LineWriter(json_line)
    line = plain_line(prologues)
    if not sys.stdout.isatty():
        return LineWriter(line)
    return TerminalWriter(line, None if session is None else lambda: status(session))


def style_of(found: sess.SessionOutput) -> str:
    """The colour of a line on a terminal."""
    match found:
        case sess.RowOutput(output="RSTREAM"):
            return ""
        case sess.RowOutput():
            return "green" if found.row.diff > 0 else "red"
        case sess.ResultOutput() | sess.FiringOutput():
            return "bold"
        case sess.EventOutput():
            return "cyan"
        case _:
            assert_never(found)


# --- lines ---


def json_line(found: sess.SessionOutput) -> str:
    """Output as a JSON object; terms are N-Triples texts, null is unbound.

    The result of a window is only its rows, so it gives no line of its own.

    >>> from graphtide.engine.results import DeltaRow
    >>> json_line(sess.RowOutput("q", DeltaRow(17, 3, -1, {"x": None})))
    '{"query": "q", "time": 17, "tx": 3, "diff": -1, "row": {"x": null}}'
    >>> json_line(sess.FiringOutput("Tell", 5, {"x": NamedNode("ex:a")}, {"Seen": 5}))
    '{"rule": "Tell", "time": 5, "values": {"x": "<ex:a>"}, "events": {"Seen": 5}}'
    """
    found_object: dict[str, Any]
    match found:
        case sess.RowOutput(query, row):
            found_object = {"query": query, "time": row.time, "tx": row.tx, "diff": row.diff}
            found_object["row"] = _texts(row.row)
        case sess.ResultOutput():
            return ""
        case sess.EventOutput(pattern, start, time, values):
            found_object = {"pattern": pattern, "start": start, "time": time}
            found_object["values"] = _texts(values)
        case sess.FiringOutput(rule, time, values, events):
            found_object = {"rule": rule, "time": time, "values": _texts(values)}
            found_object["events"] = dict(events)
        case _:
            assert_never(found)
    return json.dumps(found_object)


def _texts(values: Mapping[str, Term | None]) -> dict[str, str | None]:
    return {name: None if term is None else str(term) for name, term in values.items()}


def plain_line(prologues: Mapping[str, str]) -> Callable[[sess.SessionOutput], str]:
    """A function from output to lines; with several names in `prologues`, it names queries.

    >>> from graphtide.engine.results import DeltaRow
    >>> line = plain_line({"q": "SELECT * { }"})
    >>> line(sess.RowOutput("q", DeltaRow(17, 3, -2, {"x": Literal(5), "y": None})))
    '- time=17 tx=3 2× ?x=5'
    >>> (
    ...     line(sess.ResultOutput("q", 20)),
    ...     line(sess.RowOutput("q", DeltaRow(20, 0, 1, {"x": None}), "ISTREAM")),
    ... )
    ('at 20', '  +')
    >>> line(sess.EventOutput("Left", 3, 33, {"d": Literal(7)}))
    '* time=3..33 Left ?d=7'
    >>> line(sess.FiringOutput("Tell", 33, {"d": Literal(7)}, {}))
    '! time=33 Tell ?d=7'
    """
    shorteners = {name: shortener(text) for name, text in prologues.items()}
    common = next(iter(shorteners.values()), str)
    named = len(prologues) > 1

    def line(found: sess.SessionOutput) -> str:
        match found:
            case sess.RowOutput(query, row, output):
                name = [query] if named else []
                sign = "+" if row.diff > 0 else "-"
                copies = [f"{abs(row.diff)}×"] if abs(row.diff) > 1 else []
                values = [*copies, *_pairs(row.row, shorteners.get(query, common))]
                if output is None:
                    return " ".join([sign, f"time={row.time}", f"tx={row.tx}", *name, *values])
                return "  " + " ".join(values if output == "RSTREAM" else [sign, *values])
            case sess.ResultOutput(query, time):
                return f"at {time} {query}" if named else f"at {time}"
            case sess.EventOutput(pattern, start, time, values):
                when = f"time={time}" if start == time else f"time={start}..{time}"
                return " ".join(["*", when, pattern, *_pairs(values, common)])
            case sess.FiringOutput(rule, time, values):
                return " ".join(["!", f"time={time}", rule, *_pairs(values, common)])
            case _:
                assert_never(found)

    return line


def _pairs(values: Mapping[str, Term | None], short: Callable[[Term], str]) -> Iterable[str]:
    return (f"?{name}={short(term)}" for name, term in values.items() if term is not None)


# --- terms ---

_LOCAL = re.compile(r"[\w-]*")
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_TYPE = re.compile(rf"\^\^<{re.escape(_XSD)}(\w+)>\Z")
_BARE: Final = {f"{_XSD}{name}" for name in ("integer", "decimal", "boolean")}
CACHED_TERMS: Final = 10_000


def shortener(query: str) -> Callable[[Term], str]:
    """A function from terms to texts as this query would write them, with its prefixes.

    >>> short = shortener("PREFIX ex: <http://example.org/> SELECT * { }")
    >>> short(NamedNode("http://example.org/a")), short(NamedNode("http://example.org/a/b"))
    ('ex:a', '<http://example.org/a/b>')
    >>> short(Literal(7)), short(Literal("x"))
    ('7', '"x"')
    """
    parser = TermParser(query)
    parser.prologue()
    spaces = sorted(parser.prefixes.items(), key=lambda item: -len(item[1]))

    @lru_cache(maxsize=CACHED_TERMS)
    def short(term: Term) -> str:
        if isinstance(term, NamedNode):
            for prefix, space in spaces:
                local = term.value[len(space) :]
                if term.value.startswith(space) and _LOCAL.fullmatch(local):
                    return f"{prefix}:{local}"
        elif isinstance(term, Literal) and term.datatype.value in _BARE:
            return term.value
        elif isinstance(term, Literal):
            return _TYPE.sub(r"^^xsd:\1", str(term))
        return str(term)

    return short


# --- totals ---


def status(session: sess.Session) -> Table:
    """The live table: each query's answer and its changes so far, then time and rate."""
    table = Table.grid(padding=(0, 2))
    for name, tally in session.tallies.items():
        if isinstance(tally, sess.CountTally):
            table.add_row(Text(name, style="bold"), *_counts(tally))
            continue
        table.add_row(
            Text(name, style="bold"),
            counted(tally.answer, "row"),
            Text(f"+{tally.added:,}", style="green"),
            Text(f"-{tally.removed:,}", style="red"),
        )
    done = f"{session.transactions:,}" + (f" of {session.expected:,}" if session.expected else "")
    rate = f"{session.rate:,.0f} changes/s"
    table.add_row(f"time {session.graph.clock}", f"{done} transactions", rate)
    return table


def summary(session: sess.Session) -> str:
    """Totals at the end: a line for each query, and one for the changes."""
    lines = [f"{name}: {_total(tally)}" for name, tally in session.tallies.items()]
    changes = counted(session.changes, "change")
    transactions = counted(session.transactions, "transaction")
    work = f"{session.busy:.2f} s of work, {session.rate:,.0f} changes/s"
    return "\n".join([*lines, f"{changes} in {transactions}: {work}"])


def _total(tally: sess.Tally) -> str:
    if isinstance(tally, sess.CountTally):
        return ", ".join(_counts(tally))
    return f"{counted(tally.answer, 'row')} now, +{tally.added:,} -{tally.removed:,}"


def _counts(tally: sess.CountTally) -> list[str]:
    rows = [] if tally.rows is None else [counted(tally.rows, "row")]
    return [counted(tally.count, tally.thing), *rows]


def counted(count: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(2000, "query"), counted(2, "fix")
    ('1 row', '2,000 queries', '2 fixes')
    """
    if count == 1:
        return f"{count:,} {thing}"
    if thing.endswith("ry"):
        return f"{count:,} {thing[:-1]}ies"
    return f"{count:,} {thing}{'es' if thing.endswith('x') else 's'}"
