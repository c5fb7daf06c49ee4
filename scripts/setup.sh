#!/usr/bin/env bash
# Makes the virtual environment: locked dependencies, then Graphtide itself in editable mode.
# Called by `make setup`, which skips it while neither pyproject.toml nor the lock has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
VENV="${VENV:-.venv}"
LOCK="${LOCK:-requirements/dev.lock}"

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if ! new_enough "$PYTHON"; then
    found="$("$PYTHON" --version 2>&1 || true)"
    echo "setup: Graphtide needs Python 3.11 or newer; '$PYTHON' is: ${found:-not found}" >&2
    echo "  hint: make setup PYTHON=python3.13" >&2
    exit 1
fi

if ! new_enough "$VENV/bin/python"; then
    echo "setup: making $VENV with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear "$VENV"
elif ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    "$VENV/bin/python" -m ensurepip --upgrade >/dev/null
fi

echo "setup: installing $LOCK"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$LOCK"
# The build backend is locked too, so building needs nothing from outside the environment.
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --editable .
echo "setup: done; try $VENV/bin/graphtide --help"
