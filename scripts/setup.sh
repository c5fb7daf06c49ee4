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
# Spark needs Java 17 or newer. Everything but the pipeline works without it.
java_version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'
}

if [ "$(java_version || true)" -lt 17 ] 2>/dev/null || [ -z "$(java_version || true)" ]; then
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        echo "setup: installing Java 17 for Spark"
        (apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless) >/dev/null 2>&1 || true
    fi
    if [ -z "$(java_version || true)" ]; then
        echo "setup: no Java 17 found: the in-process engine works, the Spark pipeline will not" >&2
        echo "  hint: install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless)" >&2
    fi
fi
# A browser for the tests of the page; they say so and are skipped where there is none.
if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "setup: installing Chromium for the tests of the page"
    (apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 || true
fi
echo "setup: done; try $VENV/bin/graphtide --help"
