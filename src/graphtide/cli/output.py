"""Rows and reports as output: coloured on a terminal, plain lines in a pipe, or JSON lines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from graphtide.cli.shorten import shortener
from graphtide.cli.told import NamedReport, ReportTally

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from graphtide.cli.session import Session
    from graphtide.cli.told import Tally, Told
    from graphtide.rdf.terms import Term

ROWS_AT_ONCE = 500
"""Rows that go to a terminal together: each print also draws the status again."""


class Output(Protocol):
    """Where delta rows go; used as a context, at the end of which all is written."""

    def rows(self, rows: Sequence[Told]) -> None:
        """Write delta rows."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Lines:
    """A line of text for each delta row and report, written at once."""

    def __init__(self, line: Callable[[Told], str]) -> None:
        self._line = line

    def rows(self, rows: Sequence[Told]) -> None:
        """Write delta rows, if there are any."""
        if rows:
            lines = (self._line(row) for row in rows)
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
        """Nothing is left to write."""


class Terminal:
    """Rows in green and red, above a live table of the answers' sizes."""

    def __init__(self, line: Callable[[Told], str], session: Session) -> None:
        self._line = line
        self._console = Console(highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=lambda: status(session),
            refresh_per_second=8,
            transient=True,
        )

    def rows(self, rows: Sequence[Told]) -> None:
        """Print delta rows above the table."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            text = Text("\n").join(self._styled(row) for row in rows[start : start + ROWS_AT_ONCE])
            self._console.print(text, soft_wrap=True)

    def _styled(self, found: Told) -> Text:
        if isinstance(found, NamedReport):
            style = "bold"
        elif found.output == "RSTREAM":
            style = ""
        else:
            style = "green" if found.row.diff > 0 else "red"
        return Text(self._line(found), style=style)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()


def open_output(session: Session, queries: Mapping[str, str], *, as_json: bool) -> Output:
    """The output that fits: JSON lines if wanted, else what standard output is made for."""
    if as_json:
        return Lines(json_line)
    line = plain_line(queries)
    return Terminal(line, session) if sys.stdout.isatty() else Lines(line)


def json_line(found: Told) -> str:
    """A row as a JSON object; terms are N-Triples texts, null is unbound. A report is its rows.

    >>> from graphtide.cli.told import NamedRow
    >>> from graphtide.engine.watch import DeltaRow
    >>> json_line(NamedRow("q", DeltaRow(17, 3, -1, {"x": None})))
    '{"query": "q", "time": 17, "tx": 3, "diff": -1, "row": {"x": null}}'
    """
    if isinstance(found, NamedReport):
        return ""
    row = found.row
    values = {name: None if term is None else str(term) for name, term in row.row.items()}
    head = {"query": found.query, "time": row.time, "tx": row.tx, "diff": row.diff}
    return json.dumps(head | {"row": values})


def plain_line(queries: Mapping[str, str]) -> Callable[[Told], str]:
    """A function from delta rows and reports to lines; with several queries it names them.

    >>> from graphtide.cli.told import NamedRow
    >>> from graphtide.engine.watch import DeltaRow
    >>> from pyoxigraph import Literal
    >>> line = plain_line({"q": "SELECT * { }"})
    >>> line(NamedRow("q", DeltaRow(17, 3, -2, {"x": Literal(5), "y": None})))
    '- time=17 tx=3 2× ?x=5'
    >>> line(NamedReport("q", 20)), line(NamedRow("q", DeltaRow(20, 0, 1, {"x": None}), "ISTREAM"))
    ('at 20', '  +')
    """
    shorteners: dict[str, Callable[[Term], str]] = {
        name: shortener(text) for name, text in queries.items()
    }
    named = len(queries) > 1

    def line(found: Told) -> str:
        name = [found.query] if named else []
        if isinstance(found, NamedReport):
            return " ".join([f"at {found.time}", *name])
        short, row = shorteners[found.query], found.row
        sign = "+" if row.diff > 0 else "-"
        values = [f"{abs(row.diff)}×"] if abs(row.diff) > 1 else []
        values += [f"?{name}={short(term)}" for name, term in row.row.items() if term is not None]
        if found.output is None:
            return " ".join([sign, f"time={row.time}", f"tx={row.tx}", *name, *values])
        return "  " + " ".join(values if found.output == "RSTREAM" else [sign, *values])

    return line


def status(session: Session) -> Table:
    """The live table: each query's answer and what has come and gone, then the rate."""
    table = Table.grid(padding=(0, 2))
    for name, tally in session.tallies.items():
        if isinstance(tally, ReportTally):
            reports, rows = counted(tally.reports, "report"), counted(tally.rows, "row")
            table.add_row(Text(name, style="bold"), reports, rows)
            continue
        table.add_row(
            Text(name, style="bold"),
            counted(tally.answer, "row"),
            Text(f"+{tally.more:,}", style="green"),
            Text(f"-{tally.fewer:,}", style="red"),
        )
    done = f"{session.transactions:,}" + (f" of {session.expected:,}" if session.expected else "")
    rate = f"{session.rate:,.0f} changes/s"
    table.add_row(f"time {session.graph.clock}", f"{done} transactions", rate)
    return table


def summary(session: Session) -> str:
    """What happened, in a few lines."""
    lines = [f"{name}: {_tally(tally)}" for name, tally in session.tallies.items()]
    changes, parts = (
        counted(session.changes, "change"),
        counted(session.transactions, "transaction"),
    )
    work = f"{session.busy:.2f} s of work, {session.rate:,.0f} changes/s"
    return "\n".join([*lines, f"{changes} in {parts}: {work}"])


def _tally(tally: Tally | ReportTally) -> str:
    if isinstance(tally, ReportTally):
        return f"{counted(tally.reports, 'report')}, {counted(tally.rows, 'row')}"
    return f"{counted(tally.answer, 'row')} now, +{tally.more:,} -{tally.fewer:,}"


def counted(count: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
