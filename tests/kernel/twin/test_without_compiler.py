"""The whole engine on the twins alone, in a process of its own, against the compiled engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel.batches import needs_jit

SCRIPT = Path(__file__).with_name("twelve_queries.py")


@pytest.fixture(scope="module")
def run():
    """What the script prints, by the value of the switch; each run happens once."""
    results = {}

    def lines(no_jit):
        if no_jit not in results:
            done = subprocess.run(
                [sys.executable, SCRIPT],
                env={**os.environ, "GRAPHTIDE_NO_JIT": no_jit},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            results[no_jit] = [json.loads(line) for line in done.stdout.splitlines()]
        return results[no_jit]

    return lines


@pytest.mark.slow
@needs_jit
def test_the_twins_give_the_same_deltas_as_the_compiled_engine(run):
    *compiled, counts, switch = run("0")
    *plain, plain_counts, plain_switch = run("1")
    assert switch["compiled"] and not plain_switch["compiled"]
    assert [name for name, *_ in plain] == [name for name, *_ in compiled]
    for mine, other in zip(plain, compiled, strict=True):
        assert mine == other
    assert plain_counts == counts


def test_every_query_of_the_script_has_deltas_of_both_signs(run):
    *queries, _, _ = run("1")
    assert len(queries) == 26
    for name, deltas, _ in queries:
        assert {diff > 0 for _, _, diff, _ in deltas} == {True, False}, name


def test_without_the_compiler_numba_is_not_even_imported(run):
    assert run("1")[-1] == {"compiled": False, "numba": False}
