"""Loops are compiled anywhere, and it is seen that they are."""

import io
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import graphtide
from graphtide import code_cache, jit, loops, progress

pytestmark = pytest.mark.skipif(not jit.JIT, reason="there is no compiler")

SOURCE = """
from graphtide.jit import compiled, inlined
@inlined
def half(x):
    return x // 2
@compiled
def loop(x: "int"):
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
        monkeypatch.setitem(sys.modules, spec.name, module)
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
    (tmp_path / "probe.py").write_text(SOURCE)
    script = (
        "import pathlib, sys\n"
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        "from graphtide import code_cache\n"
        f"code_cache.PACKAGE = pathlib.Path({str(tmp_path)!r})\n"
        "spec = spec_from_file_location('graphtide.probe', code_cache.PACKAGE / 'probe.py')\n"
        "module = sys.modules[spec.name] = module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.loop(8), 'numba.np.linalg' in sys.modules)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["5", "True"], ["5", "False"]]


def test_a_loop_has_one_signature(load):
    """Whatever the first arguments are: a bool and an int32 are converted to the declared int64."""
    import numpy as np

    loop = load()
    assert [loop(True), loop(np.int32(8)), loop(8)] == [1, 5, 5]
    assert [str(signature) for signature in loop.signatures] == ["(int64,)"]
    assert load()(8) == 5 and len(loop.signatures) == 1


def test_arguments_that_do_not_fit_are_named(load):
    with pytest.raises(
        TypeError, match=r"argument 0 of probe\.loop is unicode_type, and must be int64"
    ):
        load()("8")


def test_a_second_process_waits_for_the_first_and_compiles_nothing(load, tmp_path, monkeypatch):
    """The lock of a loop is held here; a process that wants the loop finds it compiled then."""
    import fcntl

    loop = load()
    folder = Path(loop.stored.cache_path)
    folder.mkdir(parents=True, exist_ok=True)
    script = (
        "import pathlib, sys\n"
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        "from graphtide import code_cache\n"
        f"code_cache.PACKAGE = pathlib.Path({str(tmp_path)!r})\n"
        "spec = spec_from_file_location('graphtide.probe', code_cache.PACKAGE / 'probe.py')\n"
        "module = sys.modules[spec.name] = module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "sys.stderr.write('begins\\n')\n"
        "print(module.loop(8), sum(module.loop.stats.cache_misses.values()))\n"
    )
    with (folder / "loop.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert other.stderr.readline() == "begins\n"
        monkeypatch.setattr(loop.stored, "_acquire", lambda: False)  # the lock is held already
        assert loop(8) == 5
        assert other.poll() is None, "it waits"
    out, _ = other.communicate(timeout=120)
    assert out == "5 0\n"


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

    loop.stored._cache.save_overload = full
    assert loop(8) == 5
    assert "No space left on device" in caplog.messages[0]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_how_long_the_compiler_took_is_known(load):
    before = progress.compile_seconds()
    load()(8)
    compiled = progress.compile_seconds()
    assert compiled > before
    load()(8)  # found
    assert progress.compile_seconds() - compiled < compiled - before


SAYS = "compiling probe.loop, about 0 s, once; graphtide warm compiles all loops at once"


def test_an_interrupt_waits_until_a_loop_is_compiled(load, monkeypatch):
    loop, compile_once, done = load(), loops._compile_once, []

    def interrupted(*args):
        os.kill(os.getpid(), signal.SIGINT)
        done.append(compile_once(*args))
        return done[0]

    monkeypatch.setattr(loops, "_compile_once", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.prepare()
        assert done
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert loop(8) == 5


def test_a_terminal_shows_what_is_compiled(load, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    load()(8)
    assert sys.stderr.getvalue().split("\r\x1b[K") == ["", f"graphtide: {SAYS}", ""]


def test_verbose_commands_say_what_is_compiled(load, capsys):
    progress.show_progress(shown=True)
    try:
        load()(8)
    finally:
        progress.show_progress(shown=False)
    assert capsys.readouterr().err == f"graphtide: {SAYS}\n"


def test_otherwise_there_are_log_records(load, capsys, caplog):
    caplog.set_level("INFO", "graphtide")
    load()(8)
    assert caplog.messages[0] == SAYS
    assert (
        caplog.messages[1].startswith("the machine code of probe.loop took ")
        and len(caplog.messages) == 2
    )
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
