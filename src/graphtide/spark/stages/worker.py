"""The process from which Spark forks its Python workers, with the engine already loaded.

Spark's own one is bare: each worker imports and loads compiled code for itself, seconds of work for
each, and after each kill. Spark's setting `spark.python.daemon.module` names this module.

Nothing here may start a thread, because only the thread that forks lives on in a worker.
"""

from __future__ import annotations

import gc
import importlib
import os
from typing import Final

_LOADED_FIRST: Final = (
    "pyspark.worker",
    "pandas",
    "pyarrow.parquet",
    "graphtide.spark.stages.pack",
    "graphtide.spark.stages.unpack",
)
"""What all workers need; those of stages with state need more."""

_LOADED_FOR_STATE: Final = (
    "pyspark.sql.streaming.stateful_processor_util",
    "graphtide.spark.stages.processor",
)

_WARM_QUERY: Final = """SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c FILTER (?c > 1)
FILTER NOT EXISTS { ?a <ex:r> ?c } OPTIONAL { ?c <ex:s> ?d } }"""


_WARM_WINDOW: Final = """REGISTER ISTREAM <ex:o> AS SELECT ?a FROM NAMED WINDOW <ex:w> ON <ex:s>
[RANGE 10 STEP 5] WHERE { WINDOW <ex:w> { ?a <ex:p> ?b } }"""


_WARM_RULES: Final = """EVENT A(?x) AS { ?x <ex:q> ?y } EVENT B(?x) AS { ?x <ex:r> ?y }
PATTERN P(?x) AS (A(?x) -> B(?x)) WITHIN 5s
RULE R WHEN FACT { ?x <ex:p> ?z } EVENT a = A(?x) EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)"""


def is_stateless() -> bool:
    """Whether the workers to be forked run stateless stages only (see `session.SETTINGS`)."""
    return "SPARK_SIMPLIFIED_TRACEBACK" in os.environ


def load_modules(names: tuple[str, ...]) -> None:
    """Import modules, without threads."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in names:
        importlib.import_module(name)


def load_engine() -> None:
    """Import what every worker needs, and run the engine once so that its code is in memory."""
    load_modules((*_LOADED_FIRST, *_LOADED_FOR_STATE))
    from graphtide.graph import LiveGraph  # noqa: PLC0415 - loaded when the worker warms up

    for strategy in ("rete", "search"):
        graph = LiveGraph()
        watch = graph.watch(_WARM_QUERY, strategy=strategy)
        graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
        graph.insert("<ex:b>", "<ex:q>", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>')
        watch.delta()
    windowed = LiveGraph()
    windowed.watch(_WARM_WINDOW)
    windowed.stream("<ex:s>").push([("<ex:a>", "<ex:p>", "<ex:b>")], time=1)
    windowed.advance(30)
    warm_rules()


def warm_rules() -> None:
    """Run rules and patterns once, for the code of their memories and tokens."""
    from graphtide.graph import LiveGraph  # noqa: PLC0415 - loaded when the worker warms up
    from graphtide.lang.tide.program import Program  # noqa: PLC0415

    graph = LiveGraph()
    graph.run(Program.parse(_WARM_RULES), functions={"f": lambda _: None})
    graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
    for time, predicate in enumerate(("<ex:q>", "<ex:r>")):
        graph.publish([("<ex:a>", predicate, "<ex:b>")], time=time)
    graph.advance(30)


def main() -> None:
    """Load, then do as Spark's own daemon does."""
    from pyspark.daemon import manager  # noqa: PLC0415

    stateless = is_stateless()
    if stateless:
        load_modules(_LOADED_FIRST)
    else:
        load_engine()
    # Workers collect garbage after every task; what is loaded here is none.
    gc.collect()
    gc.freeze()
    if not stateless:
        from graphtide.spark.stages.engine_processes import start_engine_processes  # noqa: PLC0415

        start_engine_processes()
    manager()


if __name__ == "__main__":
    main()
