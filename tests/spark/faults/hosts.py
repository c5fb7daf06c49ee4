"""Hosts of a cluster on one machine: network namespaces, or processes on the loopback interface.

A host of the first kind has an address, a name, a process tree and a /tmp of its own, and shares
one directory with the others. It needs root, iproute2 and util-linux.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]

SET_UP = """set -e
hostname "$1"
mount --make-rprivate /
mount --bind "$2/hosts" /etc/hosts
case "$3" in
/tmp/*)
    mkdir -p "$2/stage-$1"
    mount --bind "$3" "$2/stage-$1"
    mount -t tmpfs tmpfs /tmp
    mkdir -p "$3"
    mount --bind "$2/stage-$1" "$3" ;;
*) mount -t tmpfs tmpfs /tmp ;;
esac
mkdir /tmp/home
export HOME=/tmp/home
cd "$3"
shift 3
exec "$@"
"""
"""What a host does before its process: arguments are its name, the shared directory, this tree."""


def run(*command):
    """Run a command of the system, which must work."""
    subprocess.run(command, check=True, capture_output=True, text=True)


def namespaces_work() -> bool:
    """Whether this user may make network namespaces and mount file systems in them."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "unshare", "mount"))):
        return False
    name = f"gt{os.getpid()}x"
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "exec", name, "unshare", "-m", "-u", "-p", "--fork", "true")
        run("ip", "link", "add", f"{name}b", "type", "bridge")
        run("ip", "link", "del", f"{name}b")
    except subprocess.CalledProcessError:
        return False
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return True


class LoopbackHost:
    """A process on this machine; cut off, it and its children are stopped."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.address, self.folder = name, "127.0.0.1", folder
        self.private = folder / name
        self.process: subprocess.Popen | None = None

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        """Start the host with its process, which writes a log into the shared directory."""
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._inside(command),
                stdout=log,
                stderr=log,
                env={**os.environ, **environment, "SPARK_LOCAL_IP": self.address},
                start_new_session=True,
                cwd=ROOT,
            )

    def _inside(self, command: list[str]) -> list[str]:
        return command

    def cut(self) -> None:
        """Let nothing through to the host."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def join(self) -> None:
        """Let everything through again."""
        os.killpg(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the host and all its processes at once."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        """Kill the host, and remove what is left of it."""
        self.kill()


class NamespaceHost(LoopbackHost):
    """A network namespace on a bridge."""

    def __init__(self, name: str, folder: Path, network: Network) -> None:
        super().__init__(name, folder)
        self.address, self._namespace = network.add()
        self._port = f"{self._namespace}v"
        self.private = Path("/tmp")

    def _inside(self, command: list[str]) -> list[str]:
        namespaces = ["unshare", "-m", "-u", "-p", "--fork", "--kill-child", "--mount-proc"]
        shell = ["bash", "-c", SET_UP, "host", self.name, str(self.folder), str(ROOT)]
        return ["ip", "netns", "exec", self._namespace, *namespaces, *shell, *command]

    def cut(self) -> None:
        run("ip", "link", "set", self._port, "down")

    def join(self) -> None:
        run("ip", "link", "set", self._port, "up")

    def close(self) -> None:
        super().close()
        for thing in (("link", self._port), ("netns", self._namespace)):
            command = ["ip", thing[0], "del", thing[1]]
            subprocess.run(command, check=False, capture_output=True)


class Network:
    """A bridge between namespaces, with an address in this one."""

    def __init__(self) -> None:
        self._prefix = f"gt{os.getpid() % 100_000}"
        self._subnet = f"198.18.{os.getpid() % 250 + 1}"
        self._count = 1
        run("ip", "link", "add", self._prefix, "type", "bridge")
        run("ip", "addr", "add", f"{self._subnet}.1/24", "dev", self._prefix)
        run("ip", "link", "set", self._prefix, "up")

    def add(self) -> tuple[str, str]:
        """A new namespace on the bridge: its address and its name."""
        self._count += 1
        name, address = f"{self._prefix}n{self._count}", f"{self._subnet}.{self._count}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"{name}v", "master", self._prefix, "up")
        inside = ("ip", "-n", name)
        run(*inside, "addr", "add", f"{address}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "link", "set", "lo", "up")
        return address, name

    def close(self) -> None:
        """Remove the bridge."""
        subprocess.run(["ip", "link", "del", self._prefix], check=False, capture_output=True)
