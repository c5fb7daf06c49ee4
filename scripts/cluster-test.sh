#!/usr/bin/env bash
# Runs the pipeline on a real standalone cluster of this machine: a master, two workers of one core
# each, and a job that is submitted with the package shipped as a zip. Its deltas must equal the
# in-process engine's. Called by `make cluster-test`; everything is stopped at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON="${PYTHON_BIN:-$PWD/.venv/bin/python}"
JOB="tests/spark/faults/cluster_job.py"
folder="$(mktemp -d -t graphtide-cluster-XXXXXX)"
started=()

stop() {
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT

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

launch() { # NAME CLASS ARGUMENTS...: a Java process in the background, with a log of its own
    local name="$1"
    shift
    "$SPARK_HOME/bin/spark-class" "$@" >"$folder/$name.log" 2>&1 &
    started+=("$!")
}

echo "cluster-test: starting a master and two workers"
launch master org.apache.spark.deploy.master.Master \
    --host 127.0.0.1 --port "$port" --webui-port "$web"
for number in 1 2; do
    launch "worker-$number" org.apache.spark.deploy.worker.Worker \
        --host 127.0.0.1 --cores 1 --memory 1g --webui-port 0 --work-dir "$folder/work-$number" \
        "$master"
done
"$PYTHON" "$JOB" await "$web" 2 || fail "the workers did not come up"

echo "cluster-test: writing a stream and the package"
PYTHONPATH="src:tests" "$PYTHON" "$JOB" prepare "$folder"

# A zip carries no compiled code, and compiling takes longer than this small job: no compiler.
echo "cluster-test: submitting the job"
PYTHONPATH="src:tests" "$SPARK_HOME/bin/spark-submit" --master "$master" \
    --py-files "$folder/graphtide.zip" \
    --driver-java-options "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" \
    --conf spark.executor.cores=1 --conf spark.executor.memory=900m \
    --conf spark.executorEnv.PYTHONPATH=graphtide.zip --conf spark.executorEnv.GRAPHTIDE_NO_JIT=1 \
    "$JOB" run "$folder" "$master" >"$folder/job.log" 2>&1 || fail "the job failed"

PYTHONPATH="src:tests" "$PYTHON" "$JOB" check "$folder" || fail "the output is wrong"
