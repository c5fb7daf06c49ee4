"""The home of Spark from which Python processes import PySpark as it is installed."""

import os
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from graphtide.spark import home


@pytest.fixture
def own_home(monkeypatch):
    """An environment in which nothing names a home or a Python."""
    for name in (home.VARIABLE, "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return Path(pyspark.__file__).parent


def test_it_has_what_spark_needs_and_not_the_zip(own_home):
    linked = home.linked_home()
    assert not (linked / "python").exists()
    assert (linked / "bin" / "spark-submit").resolve() == own_home / "bin" / "spark-submit"
    assert (linked / "jars").resolve() == own_home / "jars"
    assert home.linked_home() == linked


@pytest.mark.usefixtures("own_home")
def test_the_variable_is_set_only_while_java_starts(monkeypatch):
    linked = home.linked_home()
    with home.home_without_zip():
        assert os.environ[home.VARIABLE] == str(linked)
    assert home.VARIABLE not in os.environ
    monkeypatch.setenv(home.VARIABLE, "/opt/spark")
    with home.home_without_zip():
        assert os.environ[home.VARIABLE] == "/opt/spark"


@pytest.mark.usefixtures("own_home")
def test_another_python_may_need_the_zip(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another-python")
    assert home.linked_home() is None
    with home.home_without_zip():
        assert home.VARIABLE not in os.environ


@pytest.mark.usefixtures("own_home")
def test_without_room_spark_uses_its_own_home(monkeypatch):
    monkeypatch.setattr(home, "code_folder", lambda *_: None)
    assert home.linked_home() is None


def test_workers_import_the_installed_package(spark):
    def place(batches):
        import pyspark

        for _ in batches:
            yield pa.record_batch({"place": [pyspark.__file__]})

    found = spark.range(1, numPartitions=1).mapInArrow(place, "place string").collect()
    assert [row.place for row in found] == [pyspark.__file__]
