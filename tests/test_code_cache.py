"""Machine code is never stale, never a stranger's, and stored wherever there is room for it."""

import os
import shutil
import tempfile

import pytest

from graphtide import code_cache

LOOP = """from graphtide.helpers import draw as d, other
from graphtide.helpers.names import (
    A,
)
"""


@pytest.fixture
def roots(tmp_path, monkeypatch):
    """A package of four modules, and the places for its machine code."""
    package, cache, temporary = (tmp_path / name for name in ("package", "cache", "temporary"))
    for name, text in {
        "loop.py": LOOP,
        "helpers/__init__.py": "",
        "helpers/draw.py": "import math\n\nfrom graphtide.deep import far  # two steps away\n",
        "helpers/names.py": "A = 1\n",
        "helpers/other.py": "",
        "deep/__init__.py": "far = 1\n",
        "apart.py": "",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    temporary.mkdir()
    monkeypatch.setattr(code_cache, "PACKAGE", package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return {"given": tmp_path / "given", "package": package / "__pycache__"} | {
        "user": cache,
        "temporary": temporary,
    }


def folder(roots, given=""):
    """The folder of `loop.py`, as a new process finds it."""
    for remembered in (code_cache.code_folder, code_cache._imports, code_cache._private):
        remembered.cache_clear()
    code_cache._warn_once.cache_clear()
    return code_cache.code_folder(roots["package"].parent / "loop.py", str(given))


@pytest.mark.parametrize("name", ["given", "package", "user", "temporary"])
def test_workers_are_told_of_a_directory_that_they_would_not_find(roots, name):
    """They find the package's own folder; with a read-only package they may have another home."""
    code_cache._private.cache_clear()
    found = code_cache.directory_for_workers(str(only(roots, name)))
    assert found == (None if name == "package" else roots[name])


def test_workers_are_told_of_nothing_if_there_is_no_room(roots):
    only(roots, "temporary")
    roots["temporary"].rmdir()
    roots["temporary"].write_text("")
    assert code_cache.directory_for_workers() is None


def test_a_session_passes_the_directory_on(roots, monkeypatch):
    from graphtide.spark.session import all_settings

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    key = "spark.executorEnv.NUMBA_CACHE_DIR"
    assert key not in all_settings("spark://head:7077", 2, {})
    shutil.rmtree(roots["package"])
    only(roots, "user")
    settings = all_settings("spark://head:7077", 2, {})
    assert settings[key] == str(roots["user"])
    assert all_settings("local", 2, {key: "/mine"})[key] == "/mine"


def test_javas_classes_are_used_where_they_are_stored(roots, monkeypatch):
    from graphtide.spark import session

    archive = roots["temporary"] / "java.jsa"
    monkeypatch.setattr(session, "class_archive", lambda: archive)
    key = session.DRIVER_JAVA
    assert "SharedArchiveFile" not in session.all_settings("local[2]", 2, {})[key]
    archive.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={archive} " in session.all_settings("local[2]", 2, {})[key]
    assert key not in session.all_settings("spark://head:7077", 2, {})
    assert session.all_settings("local[2]", 2, {key: "-Xmx2g"})[key] == "-Xmx2g"


def only(roots, name):
    """Leave one place to write to; `given` as an argument. A file is no directory, not for root."""
    if name in {"user", "temporary"}:
        roots["package"].write_text("")
    if name == "temporary":
        roots["user"].write_text("")
    return roots["given"] if name == "given" else ""


@pytest.mark.parametrize("name", ["given", "package", "user", "temporary"])
@pytest.mark.parametrize(
    "changed", ["loop.py", "helpers/draw.py", "helpers/names.py", "deep/__init__.py"]
)
def test_code_of_other_sources_is_neither_used_nor_left(roots, name, changed):
    given = only(roots, name)
    before = folder(roots, given)
    assert before.is_relative_to(roots[name] / f"graphtide-{os.geteuid()}")
    (before / "loop.nbc").write_text("machine code")
    assert folder(roots, given) == before and (before / "loop.nbc").exists()
    source = roots["package"].parent / changed
    source.write_text(f"{source.read_text()}\n# changed")
    after = folder(roots, given)
    assert after != before and not before.exists() and list(after.iterdir()) == []


def test_what_is_not_imported_makes_no_code_stale(roots):
    before = folder(roots)
    (roots["package"].parent / "apart.py").write_text("changed")
    assert folder(roots) == before


def test_another_copy_of_the_package_has_code_of_its_own(roots, tmp_path, monkeypatch):
    here = folder(roots, roots["given"])
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "loop.py").write_text("another version")
    monkeypatch.setattr(code_cache, "PACKAGE", copy)
    there = code_cache.code_folder(copy / "loop.py", str(roots["given"]))
    assert there != here and here.exists() and there.exists()


def test_the_folder_is_private(roots):
    only(roots, "temporary")
    before = os.umask(0)
    try:
        folder(roots)
    finally:
        os.umask(before)
    made = roots["temporary"] / f"graphtide-{os.geteuid()}"
    assert made.stat().st_mode & 0o777 == 0o700


def of_somebody_else(own, monkeypatch):
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    own.with_name(f"graphtide-{uid + 1}").mkdir(mode=0o700)


def open_to_all(own, monkeypatch):
    own.mkdir()
    own.chmod(0o777)


def a_link(own, monkeypatch):
    elsewhere = own.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    own.symlink_to(elsewhere)


def replaceable(own, monkeypatch):
    own.parent.chmod(0o777)


@pytest.mark.parametrize("trap", [of_somebody_else, open_to_all, a_link, replaceable])
def test_code_that_others_may_have_written_is_not_used(roots, monkeypatch, caplog, trap):
    only(roots, "temporary")
    trap(roots["temporary"] / f"graphtide-{os.geteuid()}", monkeypatch)
    assert folder(roots) is None
    assert "others can write to it" in caplog.messages[0]
    assert "every start compiles again" in caplog.messages[1]


def test_a_place_that_is_not_ours_is_passed_over(roots):
    own = roots["package"] / f"graphtide-{os.geteuid()}"
    own.mkdir(parents=True)
    own.chmod(0o755)
    assert folder(roots).is_relative_to(roots["user"])


def test_without_any_place_there_is_one_warning(roots, monkeypatch, caplog):
    only(roots, "temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(roots["package"] / "below a file"))
    assert folder(roots) is None
    assert code_cache.code_folder(roots["package"].parent / "apart.py") is None
    assert len(caplog.messages) == 1


def test_a_module_in_a_zip_has_no_folder(roots, tmp_path):
    assert code_cache.code_folder(tmp_path / "package.zip" / "graphtide" / "loop.py") is None
