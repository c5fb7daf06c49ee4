"""The options of `graphtide run` for Kafka, and a run from topic to topic."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from graphtide.cli import options as opt
from graphtide.cli.output import open_output
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from graphtide.cli.run import RunRequest
    from graphtide.spark.driver.options import RunOptions
    from graphtide.spark.driver.sink import OnBatch

RecordFormat = Literal["json", "rdf-patch", "debezium"]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """The options for topics of Kafka. Without `--kafka` there are none."""

    servers: Annotated[
        str | None,
        Parameter(
            name="--kafka",
            help="Kafka's servers, HOST:PORT,…: read changes from --in-topic, not --changes.",
        ),
    ] = None
    in_topics: Annotated[
        tuple[str, ...],
        Parameter(name="--in-topic", help="Topic of changes. Repeat the option for several."),
    ] = ()
    record_format: Annotated[
        RecordFormat, Parameter(name="--record-format", help="What the records of --in-topic are.")
    ] = "json"
    tables: Annotated[
        Path | None,
        Parameter(
            name="--tables",
            help="JSON file that says how the rows of tables become triples, for debezium.",
        ),
    ] = None
    idle: Annotated[
        int | None,
        Parameter(
            name="--idle",
            help="Do not wait for a partition of --in-topic that is more ticks behind the others "
            "than this. By default a partition without records holds back all others.",
        ),
    ] = None
    out_topic: Annotated[
        str | None,
        Parameter(name="--out-topic", help="Topic for the deltas of queries and complex events."),
    ] = None
    rejected_topic: Annotated[
        str | None, Parameter(name="--rejected-topic", help="Topic for rejected rows.")
    ] = None
    firings_topic: Annotated[
        str | None, Parameter(name="--firings-topic", help="Topic for the firings of rules.")
    ] = None
    settings: Annotated[
        tuple[str, ...],
        Parameter(
            name="--kafka-option",
            help="NAME=VALUE for Spark's Kafka source and sink, such as "
            "kafka.security.protocol=SSL. Repeat the option for several.",
        ),
    ] = ()

    def check(self) -> None:
        """Reject options that do not go together."""
        if self.servers is None:
            if self != NO_KAFKA:
                raise GraphtideError(
                    "options for topics need --kafka", hint="give its servers: --kafka HOST:9092"
                )
            return
        if not self.in_topics:
            raise GraphtideError("--kafka needs --in-topic", hint="name the topic of changes")
        if (self.tables is None) != (self.record_format != "debezium"):
            raise GraphtideError("--tables is for --record-format debezium, which needs it")
        if self.out_topic is None and (self.rejected_topic or self.firings_topic):
            raise GraphtideError("--rejected-topic and --firings-topic need --out-topic")
        opt.at_least("--idle", self.idle, 0)
        for text in self.settings:
            if not text.partition("=")[1]:
                raise opt.invalid("--kafka-option", text, "write NAME=VALUE")

    @property
    def source_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink."""
        pairs = (text.partition("=") for text in self.settings)
        return {name.strip(): value.strip() for name, _, value in pairs}


NO_KAFKA: Final = KafkaOptions()


def run_over_kafka(request: RunRequest) -> int:
    """Run a program over topics to the end of what is there, or until Ctrl-C; the exit code."""
    from graphtide.cli import spark_engine as engine
    from graphtide.spark import kafka_settings
    from graphtide.spark.driver.run import start
    from graphtide.spark.session import open_session

    kafka = request.kafka
    with ExitStack() as stack:
        home = Path(stack.enter_context(engine.temporary_directory("graphtide-run-")))
        options = engine.run_options(request, home, home)
        if request.data:
            raise GraphtideError(
                "--data is loaded before change logs, and --kafka reads none",
                hint="write the data to the topic first",
            )
        topics = ", ".join(kafka.in_topics)
        print(f"{engine.what_runs(request.program)} over {topics} of Kafka", file=sys.stderr)
        printed = request.out is None and kafka.out_topic is None
        output = None
        if printed:
            output = stack.enter_context(open_output(request.prologues, as_json=request.as_json))
        log = home / "spark.log"
        session = open_session(request.master, options.partitions, log, kafka_settings())
        spark = stack.enter_context(session)
        stop = stack.enter_context(engine.stop_requested())
        options = _with_changes(spark, request, options)
        printer = None
        if output is not None:
            printer = engine.BatchPrinter(output, options.out, request.program)
        on_batch = _topic_writer(spark, kafka)
        job = start(spark, request.program, options, printer, request.functions, on_batch)
        engine.follow_status(job, stop, as_json=request.as_json, quiet=printed)
        return engine.end_of_run(request, options, job, interrupted=stop())


def _with_changes(spark: SparkSession, request: RunRequest, options: RunOptions) -> RunOptions:
    """The options of a run, with the changes of its topics."""
    from graphtide.spark import kafka_changes, kafka_shards

    kafka = request.kafka
    servers, topics = str(kafka.servers), list(kafka.in_topics)
    changes = kafka_changes(
        spark,
        servers,
        topics,
        format=kafka.record_format,
        tables=kafka.tables,
        tick_ms=request.tick_ms,
        start=request.start,
        records_per_batch=request.rows_per_batch,
        options=kafka.source_options,
        checkpoint=options.checkpoint,
    )
    shards = kafka_shards(spark, servers, topics, kafka.source_options)
    # As with change logs, a late row is rejected, and --on-error says whether the run goes on.
    return replace(options, changes=changes, shards=shards, idle=kafka.idle, late="reject")


def _topic_writer(spark: SparkSession, kafka: KafkaOptions) -> OnBatch | None:
    from graphtide.spark import TopicWriter

    if kafka.out_topic is None:
        return None
    return TopicWriter(
        spark,
        str(kafka.servers),
        kafka.out_topic,
        rejected_topic=kafka.rejected_topic,
        firings_topic=kafka.firings_topic,
        options=kafka.source_options,
    )
