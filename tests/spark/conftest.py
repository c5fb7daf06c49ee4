"""One Spark session for all tests of a process: starting it takes longer than most tests."""

import pytest

from graphtide.errors import GraphtideError


@pytest.fixture(scope="session")
def spark():
    from graphtide.spark.kafka.jars import kafka_settings
    from graphtide.spark.session import make_session

    try:
        settings = kafka_settings()
    except GraphtideError:  # the tests of Kafka say so
        settings = {}
    session = make_session(
        master="local[2]", partitions=2, name="tests", settings=settings, brief=True
    )
    yield session
    session.stop()
