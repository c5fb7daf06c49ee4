"""What a broker is asked on the driver, with the Kafka client of Spark's connector."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

CONNECTOR_HINT: Final = (
    "make_session(settings=graphtide.spark.kafka_settings()) fetches it; or submit with "
    "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION"
)
TIMEOUT_MS: Final = "20000"


def kafka_shards(
    spark: SparkSession,
    servers: str,
    topic: str | Sequence[str],
    options: Mapping[str, str] | None = None,
) -> int:
    """How many partitions topics have together: the `shards` of `watch` and `run`."""
    topics = [topic] if isinstance(topic, str) else list(topic)
    with open_admin(spark, servers, options) as (admin, jvm):
        names = jvm.java.util.ArrayList()
        for name in topics:
            names.add(name)
        try:
            described = admin.describeTopics(names).allTopicNames().get()
        except Py4JError as error:
            raise GraphtideError(
                f"{servers} does not tell the partitions of {', '.join(topics)}: {reason(error)}",
                hint="is the broker running, and does the topic exist?",
            ) from None
        return sum(described.get(name).partitions().size() for name in topics)


@contextmanager
def open_admin(
    spark: SparkSession, servers: str, options: Mapping[str, str] | None = None
) -> Iterator[tuple[Any, Any]]:
    """An admin client, and Java's packages; `options` are those of Spark's Kafka source."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - Spark has no other way to its classes
    settings = jvm.java.util.Properties()
    for name in ("request.timeout.ms", "default.api.timeout.ms"):
        settings.put(name, TIMEOUT_MS)
    for name, value in (options or {}).items():
        if name.startswith("kafka."):
            settings.put(name.removeprefix("kafka."), value)
    settings.put("bootstrap.servers", servers)
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
    except TypeError:  # Py4J takes an unknown class for a package
        raise GraphtideError(
            "this Spark session has no Kafka connector", hint=CONNECTOR_HINT
        ) from None
    except Py4JError as error:
        raise GraphtideError(f"no connection to Kafka at {servers}: {reason(error)}") from None
    try:
        yield admin, jvm
    finally:
        admin.close()


def reason(error: Py4JError) -> str:
    """The innermost message of an exception in Java."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(error) if cause is None else str(cause.getMessage())
