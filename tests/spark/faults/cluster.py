"""The cluster test: hosts are cut off and killed while a stream runs, and nothing is lost.

    python tests/spark/faults/cluster.py [--loopback]

A master, three workers of one core and a driver. One worker's host is cut off from the network in
the middle of a micro-batch and comes back, another is killed for good, and so is the driver, which
is started again. The job is submitted with the package as a zip. Such a zip carries no compiled
loops, and compiling takes longer than this small job: the engine runs without the compiler. It does
carry bytecode, which Python cannot store for a zip: each worker would make it again.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import urllib.request
import zipfile
from compileall import compile_file
from importlib.util import cache_from_source
from pathlib import Path

import pyspark
from kafka_broker import free_ports
from spark.faults.hosts import ROOT, LoopbackHost, NamespaceHost, Network, namespaces_work
from spark.faults.stream import TWO_STAGES, read_output, write_stream

FILES = 14
PATIENCE = 400.0
"""Seconds that each step may take, on a busy machine."""

SPARK_HOME = Path(pyspark.__file__).parent
JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    # Lost hosts are noticed within seconds; by default it takes two minutes.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.task.maxFailures": "8",
    "spark.executor.cores": "1",
    "spark.executor.memory": "700m",
    "spark.cores.max": "3",
    "spark.driver.memory": "700m",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executorEnv.PYTHONPATH": "graphtide.zip",
    "spark.executorEnv.GRAPHTIDE_NO_JIT": "1",
}
DAEMONS = f"{JAVA} -Dspark.worker.timeout=10 -Dspark.deploy.maxExecutorRetries=-1"


class Cluster:
    """The hosts, and a stream that is fed file by file."""

    def __init__(self, folder: Path, *, loopback: bool) -> None:
        self.folder = folder
        self.network = None if loopback else Network()
        names = ("master", "worker-1", "worker-2", "worker-3", "driver")
        self.hosts = {name: self._host(name) for name in names}
        lines = [f"{host.address} {name}\n" for name, host in self.hosts.items()]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines), encoding="utf-8")
        self._port, self._web = free_ports(2)
        self.url = f"spark://{self.hosts['master'].address}:{self._port}"
        self._fed = 0

    def _host(self, name: str) -> LoopbackHost:
        if self.network is None:
            return LoopbackHost(name, self.folder)
        return NamespaceHost(name, self.folder, self.network)

    def start(self) -> None:
        """Start the master and the workers."""
        address = self.hosts["master"].address
        self._daemon(
            "master", "master.Master", "--port", str(self._port), "--webui-port", str(self._web),
            "--host", address,
        )  # fmt: skip
        for name in ("worker-1", "worker-2", "worker-3"):
            host = self.hosts[name]
            self._daemon(
                name, "worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0",
                "--work-dir", str(host.private / "work"), "--host", host.address, self.url,
            )  # fmt: skip
        self.await_workers(3)

    def _daemon(self, name: str, main: str, *arguments: str) -> None:
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}"]
        self.hosts[name].start([*command, *arguments], self._environment())

    def _environment(self) -> dict[str, str]:
        return {
            "SPARK_HOME": str(SPARK_HOME),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": DAEMONS,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}:{ROOT / 'examples' / 'spark'}",
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
        }

    def submit(self) -> None:
        """Start the driver, for the first time or again."""
        host = self.hosts["driver"]
        settings = {
            **SETTINGS,
            "spark.driver.host": host.address,
            "spark.driver.bindAddress": host.address,
        }
        options = [part for each in settings.items() for part in ("--conf", "=".join(each))]
        host.start(
            [
                str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.url, *options,
                "--py-files", str(self.folder / "graphtide.zip"),
                str(ROOT / "tests" / "spark" / "faults" / "cluster_job.py"),
                str(self.folder), self.url,
            ],
            {**self._environment(), "GRAPHTIDE_NO_JIT": "1"},
        )  # fmt: skip

    def feed(self, files: int) -> None:
        """Give the stream some more files."""
        for path in sorted((self.folder / "parts").iterdir())[:files]:
            path.rename(self.folder / "input" / path.name)
            self._fed += 1

    def await_workers(self, count: int) -> None:
        """Wait until the master knows so many workers."""
        url = f"http://{self.hosts['master'].address}:{self._web}/json/"

        def alive() -> bool:
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return json.load(answer)["aliveworkers"] == count
            except OSError:
                return False

        self._await(alive, f"there are no {count} workers")

    def await_commit(self) -> None:
        """Wait until all files that were fed are through."""
        self._await(lambda: self._last("commits") >= self._fed - 1, "the stream stands still")

    def await_running(self) -> None:
        """Wait until a micro-batch of what was fed last runs."""
        self._await(lambda: self._last("offsets") > self._last("commits"), "nothing runs")

    def _last(self, kind: str) -> int:
        folder = self.folder / "checkpoint" / kind
        found = [int(p.name) for p in folder.glob("[0-9]*")] if folder.exists() else []
        return max(found, default=-1)

    def _await(self, reached, failure: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {PATIENCE:.0f} s {failure}")
            time.sleep(0.1)

    def finish(self) -> None:
        """Feed the rest, and wait for the driver's end."""
        self.feed(FILES)
        (self.folder / "done").touch()
        code = self.hosts["driver"].process.wait(PATIENCE)
        if code:
            raise RuntimeError(f"the driver ended with {code}")

    def close(self) -> None:
        """Stop everything."""
        for host in self.hosts.values():
            host.close()
        if self.network is not None:
            self.network.close()


def prepare(folder: Path):
    """Write the stream and the package as a zip; the deltas that the stream must lead to."""
    expected = write_stream(folder / "parts", TWO_STAGES, files=FILES, seed=5)
    (folder / "input").mkdir()
    package = ROOT / "src" / "graphtide"
    with zipfile.ZipFile(folder / "graphtide.zip", "w") as archive:
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                name = path.relative_to(package.parent)
                archive.write(path, name)
                if path.suffix == ".py" and compile_file(path, quiet=1):
                    archive.write(cache_from_source(str(path)), name.with_suffix(".pyc"))
    return expected


def attack(cluster: Cluster) -> None:
    """The faults, each in the middle of a micro-batch."""
    cluster.start()
    cluster.submit()
    cluster.feed(3)
    cluster.await_commit()
    cluster.feed(3)
    cluster.await_running()
    say("worker-2 is cut off")
    cluster.hosts["worker-2"].cut()
    cluster.await_workers(2)
    cluster.await_commit()
    cluster.hosts["worker-2"].join()
    cluster.await_workers(3)
    say("worker-2 is back")
    cluster.feed(2)
    cluster.await_commit()
    cluster.feed(2)
    cluster.await_running()
    say("worker-3 is killed")
    cluster.hosts["worker-3"].kill()
    cluster.await_workers(2)
    cluster.await_commit()
    cluster.feed(1)
    cluster.await_running()
    say("the driver is killed, and started again")
    cluster.hosts["driver"].kill()
    cluster.submit()
    cluster.finish()


def check(folder: Path, expected) -> None:
    """Compare the output with what was expected."""
    found = read_output(folder / "out")
    homes = json.loads((folder / "homes.json").read_text(encoding="utf-8"))
    assert all("graphtide.zip" in home for home in homes), f"not the shipped package: {homes}"
    assert expected, "the stream must lead to something"
    assert found == expected, f"lost {expected - found}, double {found - expected}"
    say(f"{sum(found.values())} delta rows, equal to the in-process engine's")


def say(text: str) -> None:
    print(f"cluster-test: {text}", flush=True)


def main() -> int:
    """Run the test; the exit code."""
    loopback = "--loopback" in sys.argv or not namespaces_work()
    # Not below /tmp: each host has one of its own.
    folder = Path(tempfile.mkdtemp(prefix="graphtide-cluster-", dir="/var/tmp"))
    began = time.monotonic()
    cluster = None
    try:
        expected = prepare(folder)
        where = "the loopback interface, as one host" if loopback else "five network namespaces"
        say(f"a master, three workers and a driver on {where}")
        cluster = Cluster(folder, loopback=loopback)
        attack(cluster)
        check(folder, expected)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - say what every host said last
        print(f"cluster-test: {type(error).__name__}: {error}", file=sys.stderr)
        for log in sorted(folder.glob("*.log")):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            last = [line[:300] for line in lines if not line.startswith("\tat ")][-20:]
            print(f"--- {log.name}", *last, sep="\n", file=sys.stderr)
        return 1
    finally:
        if cluster is not None:
            cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    say(f"done in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
