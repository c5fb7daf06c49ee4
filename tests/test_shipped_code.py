"""Machine code that comes with the package is used where it can run, and nowhere else."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from graphtide import code_cache, jit, shipped_code

pytestmark = pytest.mark.skipif(not jit.JIT, reason="there is no compiler")

ROOT = Path(__file__).parents[1]
SOURCE = """
from graphtide.jit import compiled
@compiled
def loop(x: "int"):
    return x // 2 + 1
"""
FIRST_ANSWER = """
import graphtide
from graphtide.progress import compile_seconds
graph = graphtide.LiveGraph()
query = graph.watch("SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }")
graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
graph.insert("<ex:b>", "<ex:q>", "<ex:c>")
print(query.delta(), graphtide.__file__, compile_seconds() > 0, sep="|")
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of one module, of which nothing is compiled; its machine code was shipped."""
    shipped_code.shipped_target.cache_clear()
    (tmp_path / "probe.py").write_text(SOURCE)
    monkeypatch.setattr(code_cache, "PACKAGE", tmp_path)
    assert load(tmp_path)(8) == 5
    assert shipped_code.collect(tmp_path / "__pycache__", tmp_path / "machine_code", host()) == 1
    forget(tmp_path)
    yield tmp_path
    shipped_code.shipped_target.cache_clear()


def host():
    from numba.core.registry import cpu_target

    return shipped_code.Target(*cpu_target.target_context.codegen().magic_tuple())


def forget(package):
    """As after an install: nothing was stored so far."""
    shutil.rmtree(package / "__pycache__")
    code_cache.code_folder.cache_clear()


def load(package):
    """Import the module as a new process does."""
    spec = spec_from_file_location("graphtide.probe", package / "probe.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.loop


def test_shipped_code_is_found(package):
    loop = load(package)
    assert loop(8) == 5 and sum(loop.stats.cache_hits.values()) == 1


def test_it_does_not_depend_on_the_times_of_files(package):
    os.utime(package / "probe.py", (1, 1))
    loop = load(package)
    assert loop(8) == 5 and loop.stats.cache_hits


@pytest.mark.parametrize(
    "other",
    [{"features": "+avx,+no-such-feature"}, {"system": "sparc-sun-solaris"}],
    ids=["features", "system"],
)
def test_code_for_another_machine_is_not_used(package, other):
    target = package / "machine_code" / "target.json"
    target.write_text(json.dumps(json.loads(target.read_text()) | other))
    shipped_code.shipped_target.cache_clear()
    loop = load(package)
    assert loop(8) == 5 and not loop.stats.cache_hits


def test_code_of_another_source_is_not_used(package):
    (package / "probe.py").write_text(SOURCE.replace("+ 1", "+ 2"))
    loop = load(package)
    assert loop(8) == 6 and not loop.stats.cache_hits


@pytest.mark.parametrize("suffix", ["nbi", "nbc", "json"])
def test_a_damaged_file_costs_a_compilation(package, caplog, suffix):
    (damaged,) = (package / "machine_code").rglob(f"*.{suffix}")
    damaged.write_bytes(damaged.read_bytes()[:20])
    shipped_code.shipped_target.cache_clear()
    loop = load(package)
    assert loop(8) == 5 and not loop.stats.cache_hits
    assert "machine code" in caplog.messages[0]
    again = load(package)
    assert again(8) == 5 and again.stats.cache_hits, "what was compiled is stored"


def test_code_that_checks_indexes_is_not_gathered(package):
    shutil.rmtree(package / "machine_code")
    shipped_code.shipped_target.cache_clear()
    load(package)(8)
    (index,) = (package / "__pycache__").rglob("*.nbi")
    shutil.copytree(index.parent, index.parent.parent / "checked")
    shutil.rmtree(index.parent)
    assert shipped_code.collect(package / "__pycache__", package / "gathered", host()) == 0


@pytest.mark.slow
def test_a_wheel_gives_its_first_answer_without_the_compiler(tmp_path):
    """The wheel is built as `pip install .` builds it, but for the environment of the build."""
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run([*build, "--quiet", "--wheel-dir", str(tmp_path), str(ROOT)])
    (wheel,) = tmp_path.glob("graphtide-*.whl")
    assert not wheel.name.endswith("none-any.whl"), "it is one for this platform"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    packages = {name.split("/")[1] for name in names if name.startswith("graphtide/")}
    assert not packages & {"bench", "benchmarks", "oracles"}
    (tmp_path / "cache").mkdir(mode=0o700)
    places = {"PYTHONPATH": str(tmp_path / "installed"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    answer, file, compiled = run([sys.executable, "-c", FIRST_ANSWER], places).split("|")
    assert answer == "+ a=<ex:a> c=<ex:c>"
    assert Path(file).is_relative_to(tmp_path)
    assert compiled.strip() == "False"


def run(command, environment=()):
    done = subprocess.run(
        command, env=os.environ | dict(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
