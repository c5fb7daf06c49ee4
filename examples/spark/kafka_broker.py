"""A Kafka broker of one node, for tests and demos: started, killed and started again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Final, Self

from graphtide.errors import GraphtideError
from graphtide.spark.kafka.admin import open_admin
from graphtide.spark.kafka.jars import fetch_jars

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pyspark.sql import SparkSession

START_SECONDS: Final = 90.0
STOP_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.1
CLUSTER_ID: Final = "graphtide-broker-00001"

JAVA: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


class KafkaBroker:
    """A broker and its data in a directory; `with` starts it, and stops it at the end."""

    def __init__(self, directory: Path) -> None:
        self._java = shutil.which("java")
        if self._java is None:
            raise GraphtideError("a Kafka broker needs Java", hint="install Java 17 or later")
        self._classes = ":".join(map(str, fetch_jars("broker")))
        self._directory = directory
        port, controller = free_ports(2)
        self.servers = f"127.0.0.1:{port}"
        self._address = ("127.0.0.1", port)
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self._settings = directory / "server.properties"
        self._settings.write_text(
            PROPERTIES.format(port=port, controller=controller, data=directory / "data"),
            encoding="utf-8",
        )
        formatted = self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c")
        if formatted.wait(START_SECONDS):
            raise self._failure("its storage cannot be formatted")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        self._process = self._run("kafka.Kafka")
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise self._failure("it ended while it started")
            try:
                socket.create_connection(self._address, timeout=1).close()
            except OSError:
                time.sleep(POLL_SECONDS)
            else:
                return
        self.kill()
        raise self._failure(f"it did not answer within {START_SECONDS} s")

    def stop(self) -> None:
        """Let the broker end well."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End the broker at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _run(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._java), *JAVA, "-cp", self._classes, main, *arguments]
        with (self._directory / "broker.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own command
                [*command, str(self._settings)], stdout=log, stderr=log
            )

    def _failure(self, what: str) -> GraphtideError:
        log = self._directory / "broker.log"
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        return GraphtideError(f"Kafka: {what}: {''.join(last)}", hint=f"{log} has all it printed")


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def create_topic(spark: SparkSession, servers: str, topic: str, partitions: int) -> None:
    """Create a topic, with the Kafka client of a Spark session."""
    with open_admin(spark, servers) as (admin, jvm):
        new = jvm.org.apache.kafka.clients.admin.NewTopic(topic, partitions, 1)
        admin.createTopics(jvm.java.util.Collections.singletonList(new)).all().get()
