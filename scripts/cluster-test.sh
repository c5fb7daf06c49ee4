#!/usr/bin/env bash
# Runs the pipeline on a real standalone cluster of this machine: a master, two workers of one core
# each, and a job that is submitted with the package shipped as a zip. Its deltas must equal the
# in-process engine's. Called by `make cluster-test`; everything is stopped at the end, whatever the
# end is.
set -euo pipefail
set -m # each process that is started here leads a group, so that its children can be stopped too
cd "$(dirname "$0")/.."

PYTHON="${PYTHON_BIN:-$PWD/.venv/bin/python}"
JOB="tests/spark/faults/cluster_job.py"
folder="$(mktemp -d -t graphtide-cluster-XXXXXX)"
started=()

stop() {
    trap - EXIT INT TERM
    local signal
    for signal in TERM KILL; do
        for pid in "${started[@]}"; do
            kill -s "$signal" -- "-$pid" 2>/dev/null || true
        done
        for _ in $(seq 50); do # ten seconds to end well
            kill -s 0 -- "${started[@]/#/-}" 2>/dev/null || break
            sleep 0.2
        done
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

fail() {
    echo "cluster-test: $1" >&2
    tail -n 20 "$folder"/master.log "$folder"/worker-*.log "$folder"/job.log >&2 || true
    exit 1
}

SPARK_HOME="$("$PYTHON" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')"
export SPARK_HOME PYSPARK_PYTHON="$PYTHON" PYSPARK_DRIVER_PYTHON="$PYTHON"
export SPARK_LOCAL_IP=127.0.0.1 SPARK_DAEMON_MEMORY=256m
export SPARK_DAEMON_JAVA_OPTS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
read -r port web < <("$PYTHON" "$JOB" ports)
master="spark://127.0.0.1:$port"

launch() { # NAME COMMAND ARGUMENTS...: a process in the background, with a log of its own
    local name="$1"
    shift
    "$SPARK_HOME/bin/$1" "${@:2}" >"$folder/$name.log" 2>&1 &
    started+=("$!")
}

echo "cluster-test: starting a master and two workers"
launch master spark-class org.apache.spark.deploy.master.Master \
    --host 127.0.0.1 --port "$port" --webui-port "$web"
for number in 1 2; do
    launch "worker-$number" spark-class org.apache.spark.deploy.worker.Worker \
        --host 127.0.0.1 --cores 1 --memory 1g --webui-port 0 --work-dir "$folder/work-$number" \
        "$master"
done
"$PYTHON" "$JOB" await "$web" 2 || fail "the workers did not come up"

echo "cluster-test: writing a stream and the package"
PYTHONPATH="src:tests" "$PYTHON" "$JOB" prepare "$folder"

# A zip carries no compiled code, and compiling takes longer than this small job: no compiler.
echo "cluster-test: submitting the job"
PYTHONPATH="src:tests" launch job spark-submit --master "$master" \
    --py-files "$folder/graphtide.zip" \
    --driver-java-options "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" \
    --conf spark.executor.cores=1 --conf spark.executor.memory=900m \
    --conf spark.executorEnv.PYTHONPATH=graphtide.zip --conf spark.executorEnv.GRAPHTIDE_NO_JIT=1 \
    "$JOB" run "$folder" "$master"
wait "$!" || fail "the job failed"

PYTHONPATH="src:tests" "$PYTHON" "$JOB" check "$folder" || fail "the output is wrong"
