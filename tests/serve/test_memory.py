"""A server that runs on: what its own code holds does not grow with the changes that pass."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import tracemalloc
from itertools import count

import pytest
from pyoxigraph import Literal
from serve.event_streams import Copy, events, subscribe

from graphtide.serve.host import ServerSettings
from graphtide.serve.subscriptions import channels

FRAMES = 8
BETWEEN = 250
"""Transactions after which memory is looked at again."""

MOST = 10 << 20
"""Bytes that the server may hold when its caches are full."""

ABOUT = "<http://e/sensor> <http://e/reading>"
QUERY = "SELECT ?v { <http://e/sensor> <http://e/reading> ?v }"


def held_by_server():
    """Bytes that code of the server asked for, itself or through libraries, and still holds."""
    gc.collect()
    found = 0
    for trace in tracemalloc.take_snapshot().traces:
        files = [frame.filename for frame in reversed(trace.traceback)]  # the newest is first
        ours = next((file for file in files if "/graphtide/" in file), "")
        if "/graphtide/serve/" in ours:
            found += trace.size
    return found


@pytest.mark.slow
def test_what_the_server_holds_does_not_grow_with_transactions(serve):
    """Every reading is a term that never came before, as measured values are."""
    readings, copy, last = count(10**12), Copy(), 0
    with (
        serve(settings=ServerSettings(history=4 * BETWEEN)) as client,
        events(client, subscribe(client, QUERY)) as stream,
    ):
        copy.take(next(stream))

        def read(times):
            """Replace the reading so often, a transaction each, and take every delta."""
            nonlocal last
            lines = []
            for _ in range(times):
                old, last = last, next(readings)
                lines.append(f'TX .\nD {ABOUT} "{old}" .\nA {ABOUT} "{last}" .\nTC .\n')
            kind = {"content-type": "application/rdf-patch"}
            done = client.post("/changes", content="".join(lines), headers=kind)
            assert done.status_code == 202, done.text
            while copy.seq < done.json()["tx"]:
                copy.take(next(stream))

        read(BETWEEN)  # whatever is imported and compiled
        tracemalloc.start(FRAMES)
        try:
            for number in range(channels.CACHED_TERMS):
                channels.term_json(Literal(f"of others {number}"))
            read(BETWEEN)
            before = held_by_server()
            for _ in range(4):
                read(BETWEEN)
            grown = held_by_server() - before
        finally:
            tracemalloc.stop()
    assert (len(copy.seen), copy.rows.total()) == (1 + 6 * BETWEEN, 1)  # every delta
    assert before < MOST, f"{before:,} bytes"
    assert grown < 20 * 4 * BETWEEN, f"{grown:,} bytes in {4 * BETWEEN:,} transactions"


THREADS = 6
HEAPS = f"""
import ctypes, sys, threading
from graphtide.serve.server import share_heap

if sys.argv[1] == "shared":
    assert share_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.fopen.restype = ctypes.c_void_p, ctypes.c_void_p
libc.malloc.argtypes, libc.fopen.argtypes = [ctypes.c_size_t], [ctypes.c_char_p] * 2
libc.malloc_info.argtypes, libc.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
together = threading.Barrier({THREADS})

def allocate():
    together.wait()
    libc.malloc(1000)

threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
file = libc.fopen(b"/dev/stdout", b"w")
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="of glibc")
def test_all_threads_share_one_heap():
    def heaps(how):
        command = [sys.executable, "-c", HEAPS, how]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.count("<heap nr=")

    assert heaps("shared") <= heaps("default") - THREADS + 1  # libraries may have made some before
