"""Loops are compiled anywhere, and it is seen that they are."""

import io
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import graphtide
from graphtide import code_cache, jit

pytestmark = pytest.mark.skipif(not jit.JIT, reason="there is no compiler")

SOURCE = """
from graphtide.jit import compiled, inlined
@inlined
def half(x):
    return x // 2
@compiled
def loop(x):
    return half(x) + 1
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import a module of a package of its own, as a new process does."""
    (tmp_path / "probe.py").write_text(SOURCE)
    monkeypatch.setattr(code_cache, "PACKAGE", tmp_path)

    def load():
        spec = spec_from_file_location("graphtide.probe", tmp_path / "probe.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.loop

    return load


def stored(folder, suffix):
    return sorted(folder.rglob(f"*.{suffix}"))


def test_machine_code_is_stored_and_found_again(load, tmp_path):
    assert load()(8) == 5
    assert len(stored(tmp_path, "nbc")) == 1
    again = load()
    assert again(8) == 5 and sum(again.stats.cache_hits.values()) == 1


def test_stored_machine_code_is_loaded_without_what_compiles_it(tmp_path):
    (tmp_path / "probe.py").write_text(SOURCE.replace("compiled", "allocating"))
    script = (
        "import pathlib, sys\n"
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        "from graphtide import code_cache\n"
        f"code_cache.PACKAGE = pathlib.Path({str(tmp_path)!r})\n"
        "spec = spec_from_file_location('graphtide.probe', code_cache.PACKAGE / 'probe.py')\n"
        "module = sys.modules[spec.name] = module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.loop(8), 'numba.np.linalg' in sys.modules, end=' ')\n"
        "print(module.loop(8.5), 'numba.np.linalg' in sys.modules)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script.replace("8.5", number)],
            check=True, capture_output=True, text=True,
        ).stdout.split()
        for number in ("8.5", "8.5", "True")
    ]  # fmt: skip
    assert said[0] == ["5", "True", "5.0", "True"]
    assert said[1] == ["5", "False", "5.0", "False"]
    assert said[2] == ["5", "False", "1", "True"], "what is not stored is compiled"


def test_a_start_imports_no_more_than_it_needs():
    script = (
        "import sys, graphtide\n"
        "graph = graphtide.LiveGraph()\n"
        "query = graph.watch('SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }')\n"
        "graph.insert('<ex:a>', '<ex:p>', '<ex:b>')\n"
        "graph.insert('<ex:b>', '<ex:q>', '<ex:c>')\n"
        "assert len(query.delta()) == 1\n"
        "late = ['graphtide.' + name for name in ('durable', 'repair', 'rules', 'patterns')]\n"
        "late += ['asyncio', 'lark', 'pandas', 'pyarrow.compute', 'pyarrow.parquet', 'ssl']\n"
        "print([name for name in late if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_file_costs_a_compilation(load, tmp_path, caplog, suffix):
    load()(8)
    (damaged,) = stored(tmp_path, suffix)
    damaged.write_bytes(damaged.read_bytes()[:40])
    again = load()
    assert again(8) == 5 and not again.stats.cache_hits
    assert "cannot read machine code" in caplog.messages[0]
    assert load()(8) == 5
    assert len(caplog.messages) == 1, "it has been replaced"


def test_a_full_disk_costs_a_compilation(load, caplog):
    loop = load()

    def full(*_):
        raise OSError(28, "No space left on device")

    loop._cache._cache.save_overload = full
    assert loop(8) == 5
    assert "No space left on device" in caplog.messages[0]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_how_long_the_compiler_took_is_known(load):
    before = jit.compile_seconds()
    load()(8)
    compiled = jit.compile_seconds()
    assert compiled > before
    load()(8)  # found
    assert jit.compile_seconds() - compiled < compiled - before


def test_a_terminal_shows_how_far_the_compiler_is(load, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    load()(8)
    shown = sys.stderr.getvalue().split("\r\x1b[K")
    says = "graphtide: compiling probe.loop: {} of 2 functions are done".format
    assert shown == ["", says(0), says(0), ""]


def test_verbose_commands_say_what_is_compiled(load, capsys, caplog):
    jit.show_progress(shown=True)
    try:
        load()(8)
    finally:
        jit.show_progress(shown=False)
    shown = capsys.readouterr().err
    assert shown == "graphtide: compiling probe.loop: 0 of 2 functions are done\n"
    assert not caplog.messages


def test_otherwise_there_is_one_log_record(load, capsys, caplog, monkeypatch):
    monkeypatch.setattr(jit.PROGRESS, "_announced", False)
    caplog.set_level("INFO", "graphtide")
    load()(8)
    load()(8.5)
    assert [text.split(",")[0] for text in caplog.messages] == ["compiling the inner loops"]
    assert capsys.readouterr().err == ""


def test_nobody_listening_is_no_failure(load, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    sys.stderr.close()
    assert load()(8) == 5


@pytest.mark.slow
def test_it_starts_where_neither_the_package_nor_the_home_can_be_written_to(tmp_path):
    """A file where a directory is wanted stops even root from writing."""
    package = tmp_path / "graphtide"
    own = Path(graphtide.__file__).parent
    shutil.copytree(own, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").touch()
    (tmp_path / "no-home").touch()
    (tmp_path / "temporary").mkdir()
    environment = {key: os.environ[key] for key in ("PATH",)} | {
        "HOME": str(tmp_path / "no-home"),
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": str(tmp_path),
    }
    text = (
        "import pyarrow as pa; from graphtide.spark.partition import hashing as h;"
        "print(h.text_hashes(pa.array(['a'])), dict(h.hash_texts.stats.cache_hits) != {})"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", text],
            env=environment, check=True, capture_output=True, text=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert [hits for _, hits in said] == ["False", "True"]
    assert said[0][0] == said[1][0]
    assert len(stored(tmp_path / "temporary" / f"graphtide-{os.geteuid()}", "nbc")) == 1
