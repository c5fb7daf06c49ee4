"""`graphtide why`: why a row is in the answer of a query, or why it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from graphtide.algebra.nodes import SelectQuery, Values
from graphtide.algebra.traverse import walk
from graphtide.cli import inputs
from graphtide.cli import options as opt
from graphtide.cli.session import Session
from graphtide.errors import GraphtideError, QueryError
from graphtide.graph import LiveGraph
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.sparql.terms import TermParser

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

WhyFormat = Literal["text", "json", "mermaid", "html"]

NO_SUCH_ROW: Final = 1
"""The exit code for a row that is not in the answer."""

TICK_MS: Final = 1000


def why(
    query: Path,
    /,
    *,
    row: Annotated[
        list[str] | None,
        Parameter(
            help="A column and its value, as in route=:route5 or speed=80, with the prefixes of "
            "the query; UNDEF is unbound. Columns that are left out may have any value."
        ),
    ] = None,
    data: opt.DataOption = None,
    changes: opt.ChangesOption = None,
    format: Annotated[  # noqa: A002 - the name of the option
        WhyFormat, Parameter(help=f"{opt.FORMAT_HELP} text, json, mermaid or html.")
    ] = "text",
    all: bool = False,  # noqa: A002 - the name of the option
    max_derivations: int = 100,
    tick_ms: opt.TickOption = TICK_MS,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> int:
    """Explain a row of a query's answer, or its absence.

    Parameters
    ----------
    query
        A file with a SPARQL or RSP-QL query that can be watched.
    all
        Show every derivation of the row.
    max_derivations
        With --all, the most derivations to show.
    """
    opt.at_least("--max-derivations", max_derivations, 1)
    opt.at_least("--tick-ms", tick_ms, 1)
    bounds = limits.limits()
    rejects = inputs.Rejects(limits=bounds)
    log = None if changes is None else inputs.ChangeLog(changes, rejects=rejects)
    if log is not None:
        log.check()
    parsed = inputs.read_query(query)
    select = parsed if isinstance(parsed, SelectQuery) else parsed.select
    values = dict(row_value(each, select.text) for each in row or ())
    graph = LiveGraph(tick_ms=tick_ms, limits=bounds)
    session = Session(graph, {query.stem: select.text}, tick_ms=tick_ms)
    inputs.load_data(graph, data or ())
    if log is not None:
        for _ in session.follow(log):
            pass
    watched = session.queries[query.stem]
    explanation = watched.why_not(values)
    is_there = explanation.first_failure() is None
    if is_there:
        explanation = watched.why(values, all=all, limit=max_derivations)
    views = {"json": explanation.json, "mermaid": explanation.mermaid, "html": explanation.html}
    print(views.get(format, explanation.text)())
    return 0 if is_there else NO_SUCH_ROW


def row_value(text: str, query: str) -> tuple[str, Term | None]:
    """The column and the term of `name=value`; the term as the query would write it.

    >>> name, term = row_value("route=:r5", "PREFIX : <http://example.org/> SELECT * {}")
    >>> name, str(term)
    ('route', '<http://example.org/r5>')
    """
    name, sign, value = text.partition("=")
    parser = TermParser(query)
    parser.prologue()
    prologue = " ".join(f"PREFIX {short}: <{space}>" for short, space in parser.prefixes.items())
    try:
        if not sign:
            raise QueryError("there is no = in it")
        made = parse_query(f"{prologue} SELECT * {{ VALUES ?x {{ {value} }} }}")
        ((term,),) = next(part for part in walk(made.root) if isinstance(part, Values)).rows
    except (QueryError, ValueError) as error:
        problem = error.message if isinstance(error, GraphtideError) else "it is not one term"
        allowed = "write a column and a term, such as route=:route5, speed=80 or name='Harbour'"
        raise opt.invalid("--row", text, f"{problem}; {allowed}") from None
    return name.removeprefix("?"), term
