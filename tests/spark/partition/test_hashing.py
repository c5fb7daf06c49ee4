"""Hashes are the same with and without the compiler, and neither warns."""

import os
import subprocess
import sys

import pyarrow as pa

from graphtide.spark.partition.hashing import text_hashes

TEXTS = ["<http://e/a>", "", None, '"ü"@de', "_:b0"]


def test_without_the_compiler():
    code = (
        "import pyarrow as pa\n"
        "from graphtide.spark.partition.hashing import text_hashes\n"
        f"print(text_hashes(pa.array({TEXTS!r})).tolist())"
    )
    environment = {**os.environ, "GRAPHTIDE_NO_JIT": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == str(text_hashes(pa.array(TEXTS)).tolist())
