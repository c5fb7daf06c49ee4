"""The steps of scripts/cluster-test.sh that are not shell: `python cluster_job.py STEP …`."""

from __future__ import annotations

import json
import socket
import sys
import time
import urllib.request
import zipfile
from collections import Counter
from pathlib import Path

FILES = 6

PATIENCE = 120.0


def ports():
    """Two free ports of this machine."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    print(*(each.getsockname()[1] for each in sockets))
    for each in sockets:
        each.close()


def await_workers(web, count):
    """Wait until the master knows so many workers."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == int(count):
                    return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"after {PATIENCE} s there are no {count} workers")


def prepare(folder):
    """Write the stream, the deltas that it must lead to, and the package as a zip."""
    from spark.faults.stream import TWO_STAGES, write_stream

    expected = write_stream(folder / "input", TWO_STAGES, files=FILES, seed=5)
    rows = [[*key[:4], sorted(key[4]), count] for key, count in expected.items()]
    (folder / "expected.json").write_text(json.dumps(rows), encoding="utf-8")
    package = Path("src/graphtide")
    with zipfile.ZipFile(folder / "graphtide.zip", "w") as archive:
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))


def run(folder, master):
    """The job: the files one after the other into Parquet; and where the code came from."""
    from spark.faults.stream import TWO_STAGES
    from spark.faults.stream_job import CHANGES

    from graphtide.spark import watch
    from graphtide.spark.session import make_session

    session = make_session(master=master, partitions=2)
    changes = session.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1)
    query = (
        watch(changes.parquet(str(folder / "input")), TWO_STAGES, partitions=2)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    homes = session.sparkContext.parallelize(range(2), 2).map(home_of_graphtide).collect()
    (folder / "homes.json").write_text(json.dumps(homes), encoding="utf-8")
    session.stop()


def home_of_graphtide(_):
    """Where a worker found the package."""
    import graphtide

    return graphtide.__file__


def check(folder):
    """Compare the output with what was expected."""
    from spark.faults.stream import read_output

    rows = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    expected = Counter({(*row[:4], frozenset(map(tuple, row[4]))): row[5] for row in rows})
    found = read_output(folder / "out")
    homes = json.loads((folder / "homes.json").read_text(encoding="utf-8"))
    assert all("graphtide.zip" in home for home in homes), f"not the shipped package: {homes}"
    assert expected, "the stream must lead to something"
    assert found == expected, f"lost {expected - found}, double {found - expected}"
    print(f"cluster-test: {sum(found.values())} delta rows, equal to the in-process engine's")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ports"]:
            ports()
        case ["await", web, count]:
            await_workers(web, count)
        case ["prepare", folder]:
            prepare(Path(folder))
        case ["run", folder, master]:
            run(Path(folder), master)
        case ["check", folder]:
            check(Path(folder))
        case other:
            sys.exit(f"no such step: {other}")
