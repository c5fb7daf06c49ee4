#!/usr/bin/env bash
# Measures a newcomer's first minutes: a fresh clone of HEAD, a new HOME, no virtual environment,
# empty caches of pip and of machine code. Prints a line for each time, and fails if the first
# answer after `pip install .` compiled anything or if a process is left. TESTS=1 times `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/home" "$work/tmp"
git clone --quiet . "$work/clone"
[ -d ../shared ] && ln -s "$(cd ../shared && pwd)" "$work/shared"
cd "$work/clone"
export HOME="$work/home" TMPDIR="$work/tmp" PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=
unset VIRTUAL_ENV NUMBA_CACHE_DIR XDG_CACHE_HOME

now() {
    date +%s.%N
}
since() {
    awk -v a="$1" -v b="${2:-$(now)}" 'BEGIN { printf "%.1f s", b - a }'
}
say() {
    printf '%-62s %s\n' "$1" "$2"
}

program='
import time
begin = time.perf_counter()
import graphtide as gt
from graphtide.progress import compile_seconds

def first():
    graph = gt.LiveGraph()
    query = graph.watch("""PREFIX ex: <http://example.org/>
        SELECT ?route ?sensor WHERE { ?route ex:follows ?switch . ?switch ex:monitoredBy ?sensor
                                      FILTER NOT EXISTS { ?route ex:requires ?sensor } }""")
    iri = "<http://example.org/{}>".format
    with graph.transaction(time=17) as tx:
        tx.insert(iri("route1"), iri("follows"), iri("switch7"))
        tx.insert(iri("switch7"), iri("monitoredBy"), iri("sensor3"))
    assert len(query.delta()) == 1

first()
print(f"{time.perf_counter() - begin:.2f} s")
begin = time.perf_counter()
first()
print(f"{time.perf_counter() - begin:.3f} s")
assert compile_seconds() == 0, f"the first answer compiled for {compile_seconds():.1f} s"
'

begin="$(now)"
make demo PYTHON="$PYTHON" >"$work/rows" 2>"$work/said" &
demo=$!
row=""
while kill -0 "$demo" 2>/dev/null; do
    if [ -z "$row" ] && grep -q '^+ ' "$work/rows"; then
        row="$(now)"
    fi
    sleep 0.2
done
wait "$demo" || { tail -20 "$work/said"; exit 1; }
say "make demo: set-up" "$(sed -n 's/.*setup: done.*(\([0-9]* s\)).*/\1/p' "$work/rows")"
say "make demo: first live row" "$(since "$begin" "$row")"
say "make demo: its end" "$(since "$begin")"

cp -r "$work/clone" "$work/empty"
rm -rf "$work/empty/.venv"
find "$work/empty" -name __pycache__ -type d -prune -exec rm -rf {} +
"$PYTHON" -m venv "$work/venv"
begin="$(now)"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$work/empty"
say "pip install . (compiles the loops of README, demo and tutorial)" "$(since "$begin")"
cd "$work/home"
mapfile -t answers < <("$work/venv/bin/python" -c "$program")
[ ${#answers[@]} -eq 2 ] || { echo "first-minutes: the first answer compiled" >&2; exit 1; }
say "first answer of the README's program after it" "${answers[0]}"
say "the same program again in that process" "${answers[1]}"
mapfile -t answers < <("$work/venv/bin/python" -c "$program")
say "first answer in the next process" "${answers[0]}"
cd "$work/clone"

if [ -n "${TESTS:-}" ]; then
    rm -rf .venv
    find . -name __pycache__ -type d -prune -exec rm -rf {} +
    begin="$(now)"
    make test PYTHON="$PYTHON" >"$work/tests" 2>&1 || { tail -30 "$work/tests"; exit 1; }
    say "make test, with its set-up: $(tail -n 1 "$work/tests" | tr -d '=')" "$(since "$begin")"
fi
left="$(pgrep -f "$work/" || true)"
if [ -n "$left" ]; then
    echo "first-minutes: processes are left: $left" >&2
    exit 1
fi
