#!/usr/bin/env bash
# Runs the pipeline on a standalone Spark cluster: a master, three workers and a driver, each on a
# host of its own (a network namespace with a private /tmp) if this is root on Linux, else as
# processes on the loopback interface. Hosts are cut off and killed while a stream runs; its deltas
# must equal the in-process engine's. Called by `make cluster-test`; arguments are passed on.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON_BIN:-$PWD/.venv/bin/python}"
PYTHONPATH="src:tests:examples/spark" exec "$PYTHON" tests/spark/faults/cluster.py "$@"
