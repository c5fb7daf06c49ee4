"""The file system for checkpoints on this machine."""

import os
from zipfile import ZipFile

import pytest

from graphtide.spark import local_files, session


def test_the_class_is_compiled_by_what_spark_brings_along():
    with ZipFile(local_files.compiled_jar()) as jar:
        assert sorted(jar.namelist()) == [
            "graphtide/LocalFiles$Raw.class",
            "graphtide/LocalFiles.class",
        ]


def test_class_paths_of_the_user_come_after_ours():
    key = local_files.CLASS_PATHS[0]
    jar = str(local_files.compiled_jar())
    settings = session.all_settings("local[2]", 2, {key: "/mine.jar"})
    if settings.get("spark.hadoop.fs.file.impl"):
        assert settings[key] == os.pathsep.join((jar, "/mine.jar"))


def test_without_it_hadoops_own_files_are_used(monkeypatch):
    monkeypatch.setattr(local_files, "code_folder", lambda *_: None)
    assert local_files.local_file_settings() == {}


def test_a_compiler_that_fails_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(local_files, "code_folder", lambda *_: tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    assert local_files.compiled_jar() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_session_writes_files_with_it(spark, tmp_path):
    jvm, context = spark.sparkContext._jvm, spark.sparkContext._jsc
    where = jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/file")
    files = where.getFileSystem(context.hadoopConfiguration())
    assert files.getClass().getName() == local_files.CLASS
    files.create(where, True).close()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
