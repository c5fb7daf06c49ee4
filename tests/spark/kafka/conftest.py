"""A Kafka broker for the tests of this folder."""

import pytest

from graphtide.errors import GraphtideError


@pytest.fixture(scope="module")
def broker(spark, tmp_path_factory):
    from kafka_broker import KafkaBroker

    if not spark.conf.get("spark.jars", ""):
        pytest.skip("the jars of Spark's Kafka connector cannot be had")
    try:
        made = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    except GraphtideError as error:
        pytest.skip(f"no Kafka broker: {error.message}")
    with made:
        yield made
