"""DuckDB on the same edges: no standing query, so the query is run again after every update."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.route_sensor import RELATIONS
from graphtide.bench.route_sensor.timing import microseconds, time_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    from graphtide.bench.route_sensor.workload import Workload

SQL = """
SELECT count(*)
FROM follows
JOIN target ON target.s = follows.o
JOIN monitoredBy ON monitoredBy.s = target.o
WHERE NOT EXISTS (
  FROM requires WHERE requires.s = follows.s AND requires.o = monitoredBy.o
)
"""

UPDATES = 20


def measure_duckdb(workload: Workload) -> dict[str, float]:
    """Load tables of numbers in bulk; then some updates with the query after each."""
    import duckdb

    database = duckdb.connect()
    for number, name in enumerate(RELATIONS):
        chosen = workload.relation == number
        edges = pa.table({"s": workload.s[chosen], "o": workload.o[chosen]})
        database.register("edges", edges)
        database.execute(f"CREATE TABLE {name} AS FROM edges")
        database.unregister("edges")
    matches = _run(database)
    spent = time_each(_updates(database, workload))
    return {
        "edges": len(workload),
        "rss_mb": peak_rss_mb(),
        "matches": matches,
        **microseconds(spent),
    }


def _updates(
    database: duckdb.DuckDBPyConnection, workload: Workload
) -> Iterator[Callable[[], object]]:
    for place in workload.updated[: UPDATES // 2].tolist():
        name = RELATIONS[workload.relation[place]]
        edge = [int(workload.s[place]), int(workload.o[place])]
        for statement in (
            f"DELETE FROM {name} WHERE s = ? AND o = ?",  # noqa: S608 - one of our own four names
            f"INSERT INTO {name} VALUES (?, ?)",  # noqa: S608 - same
        ):
            yield partial(_update, database, statement, edge)


def _update(database: duckdb.DuckDBPyConnection, statement: str, edge: list[int]) -> int:
    database.execute(statement, edge)
    return _run(database)


def _run(database: duckdb.DuckDBPyConnection) -> int:
    row = database.execute(SQL).fetchone()
    return int(row[0]) if row else 0
