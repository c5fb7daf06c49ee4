#!/usr/bin/env bash
# Makes the virtual environment: locked dependencies, Graphtide itself in editable mode, and the
# machine code of the loops that README and demo use. SETUP=demo installs what the demo needs,
# SETUP=dev (the default) also what the tests need. Called by make, which skips it while neither
# pyproject.toml nor the lock has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
VENV="${VENV:-.venv}"
SETUP="${SETUP:-dev}"
LOCK="requirements/$SETUP.lock"

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}
say() {
    echo "setup: $* (${SECONDS} s)"
}
# Bytecode is made when a module is imported first: making it for all takes longer than installing.
install() {
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}
java_version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'
}
has_java() {
    [ "$(java_version || true)" -ge 17 ] 2>/dev/null
}
by_apt() {
    (apt-get update -qq && apt-get install -y -qq "$@") >/dev/null 2>&1 || true
}

if ! new_enough "$PYTHON"; then
    found="$("$PYTHON" --version 2>&1 || true)"
    echo "setup: Graphtide needs Python 3.11 or newer; '$PYTHON' is: ${found:-not found}" >&2
    echo "  hint: make setup PYTHON=python3.13" >&2
    exit 1
fi

# Spark needs Java 17 or newer; the tests of the page need a browser, and are skipped without one.
packages=()
has_java || packages+=(openjdk-17-jre-headless)
[ "$SETUP" = demo ] || command -v chromium >/dev/null || packages+=(chromium)
apt=""
if [ ${#packages[@]} -gt 0 ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "installing ${packages[*]} in the background"
    by_apt "${packages[@]}" &
    apt=$!
fi

if ! new_enough "$VENV/bin/python"; then
    say "making $VENV with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear "$VENV"
elif ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    "$VENV/bin/python" -m ensurepip --upgrade >/dev/null
fi

say "installing the compiler"
parts="$(mktemp -d)"
trap 'rm -rf "$parts"' EXIT
# The lines of the lock for some packages, and for all others.
awk -v parts="$parts" '
    /^[a-z0-9-]+==/ { part = /^(numba|llvmlite|numpy)==/ ? "compiler" : /^(pyspark|py4j)==/ ? "spark" : "rest" }
    part { print > (parts "/" part) }' "$LOCK"
install --require-hashes -r "$parts/compiler"

say "compiling the loops of the demo, and installing $LOCK: half a minute or more"
"$VENV/bin/python" scripts/machine_code.py demo >/dev/null 2>&1 &
compiling=$!
# PySpark is by far the largest package, and is built from its sources: meanwhile come the others.
install --require-hashes --no-deps -r "$parts/spark" &
spark=$!
install --require-hashes --no-deps -r "$parts/rest"
wait "$spark"
# The build backend is locked too, so building needs nothing from outside the environment.
install --no-deps --no-build-isolation --editable .
if kill -0 "$compiling" 2>/dev/null; then
    say "waiting for the compiler"
fi
wait "$compiling" || echo "setup: the loops are compiled when they are first used" >&2

if [ -n "$apt" ]; then
    say "waiting for ${packages[*]}"
    wait "$apt" || true
fi
if ! has_java; then
    echo "setup: no Java 17 found: the in-process engine works, the Spark pipeline will not" >&2
    echo "  hint: install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless)" >&2
fi
say "done; try $VENV/bin/graphtide --help"
