"""What the process loads from which workers are forked."""

import subprocess
import sys

import pytest

CODE = """
import sys
from graphtide.spark.stages import worker
worker.load_modules = lambda names: print(*names)
worker.load_engine = lambda: print("engine")
import pyspark.daemon
pyspark.daemon.manager = lambda: None
worker.main()
"""


@pytest.mark.parametrize("stateless", [False, True])
def test_workers_of_stateless_stages_load_no_engine(stateless):
    environment = {"SPARK_SIMPLIFIED_TRACEBACK": "1"} if stateless else {}
    ran = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, check=True
    )
    assert ("engine" in ran.stdout) == (not stateless)
    assert ("graphtide.spark.stages.pack" in ran.stdout) == stateless
