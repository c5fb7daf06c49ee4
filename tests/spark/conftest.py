"""One Spark session for all tests of a process: starting it takes longer than most tests."""

import pytest


@pytest.fixture(scope="session")
def spark():
    from graphtide.spark.session import make_session

    session = make_session(master="local[2]", partitions=2, name="tests")
    yield session
    session.stop()
