"""Flink's MATCH_RECOGNIZE on the same events, read from a file, where PyFlink is installed.

Each A takes the next B, C and D of its key, as AFTER MATCH SKIP TO NEXT ROW says: an event may be
part of several matches, so there are more of them than in the CHRONICLE context.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphtide.bench.sequence.events import TYPES, WITHIN_MS

if TYPE_CHECKING:
    from graphtide.bench.sequence.events import Events
    from graphtide.bench.sequence.plain import Match

SOURCE: Final = """
CREATE TABLE events (number BIGINT, type STRING, k BIGINT, ms BIGINT,
    at AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""

QUERY: Final = """
SELECT number, k, start FROM events MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY at
    MEASURES D.number AS number, A.ms AS start
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B Y* C Z* D) WITHIN INTERVAL '{seconds}' SECOND
    DEFINE A AS A.type = 'A', X AS X.type <> 'B', B AS B.type = 'B', Y AS Y.type <> 'C',
        C AS C.type = 'C', Z AS Z.type <> 'D', D AS D.type = 'D')
"""


def flink_matches(events: Events) -> list[Match]:
    """The matches that Flink finds, in one thread."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    names = np.array(list(TYPES))
    with TemporaryDirectory() as folder:
        path = Path(folder, "events.csv")
        columns = zip(
            names[events.types].tolist(), events.keys.tolist(), events.times.tolist(), strict=True
        )
        lines = (f"{number},{t},{k},{ms}\n" for number, (t, k, ms) in enumerate(columns))
        path.write_text("".join(lines), encoding="utf-8")
        table: Any = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        table.get_config().set("parallelism.default", "1")
        table.execute_sql(SOURCE.format(path=path))
        answer = table.execute_sql(QUERY.format(seconds=WITHIN_MS // 1000))
        with answer.collect() as rows:
            return [(row[0], row[1], row[2]) for row in rows]
