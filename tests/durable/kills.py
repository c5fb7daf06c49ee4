"""Processes that write to a store and are killed; what is found afterwards, and what should be."""

from __future__ import annotations

import os
import random
import signal
import time

import graphtide as gt

OPEN = b"o"
QUERY = "SELECT ?x ?y { ?x <ex:next> ?y . ?y <ex:is> <ex:even> }"
PROGRAM = """
EVENT Seen(?x) AS { ?x <ex:seen> ?y }
RULE Count ON Seen(?x) THEN INSERT { ?x <ex:was> <ex:seen> }
RULE Note ON APPEAR OF Even THEN INSERT { ?x <ex:note> ?y }
QUERY Even AS SELECT ?x ?y { ?x <ex:next> ?y . ?y <ex:is> <ex:even> }
"""


def changes(number):
    """The changes of a transaction: sign and triple."""
    kind = "even" if number % 2 == 0 else "odd"
    yield 1, (f"<ex:{number}>", "<ex:is>", f"<ex:{kind}>")
    yield 1, (f"<ex:{number - 1}>", "<ex:next>", f"<ex:{number}>")
    if number >= 10:
        yield -1, (f"<ex:{number - 10}>", "<ex:next>", f"<ex:{number - 9}>")


def expected(count, *, rules):
    """The triples after a number of transactions, from their definition alone."""
    present = set()
    for number in range(count):
        for diff, triple in changes(number):
            (present.add if diff > 0 else present.discard)(triple)
        if rules and number % 2 == 0:
            present.add((f"<ex:{number - 1}>", "<ex:note>", f"<ex:{number}>"))
        if rules and number % 3 == 0:
            present.add((f"<ex:{number}>", "<ex:was>", "<ex:seen>"))
    return present


def written(graph):
    """How many of the transactions are in a graph: each inserts one <ex:is>."""
    return graph.query("SELECT (COUNT(*) AS ?n) { ?x <ex:is> ?k }")["n"][0].as_py()


def write(folder, durability, seed, acknowledged, *, rules=False, until=None):
    """Write on from where the store is, until killed; say what was acknowledged."""
    chance = random.Random(seed)
    retain = chance.choice([None, "1KB", "0s"])
    graph = gt.LiveGraph.open(folder, durability=durability, retain=retain)
    if "even" not in {query.name for query in graph.queries}:
        graph.watch(QUERY, name="even")
    if rules and not graph.programs:
        graph.run(gt.Program.parse(PROGRAM))
    number = written(graph)
    os.write(acknowledged, OPEN)
    if rules and number:
        seen(graph, number - 1)
    while number != until:
        with graph.transaction(time=number) as tx:
            for diff, triple in changes(number):
                (tx.insert if diff > 0 else tx.delete)(*triple)
        os.write(acknowledged, b".")
        if rules:
            seen(graph, number)
        number += 1
        if chance.random() < 0.02:
            graph.checkpoint()
        elif chance.random() < 0.02:
            graph.close()
            graph = gt.LiveGraph.open(folder, durability=durability, retain=retain)
    graph.close()


def seen(graph, number):
    """Publish the event of a transaction; once more makes no difference."""
    if number % 3 == 0:
        graph.publish([(f"<ex:{number}>", "<ex:seen>", "<ex:now>")])


def kill_once(folder, durability, seed, *, longest=0.4, rules=False):
    """Let a process write, and kill it; how many transactions were acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            write(folder, durability, seed, writing, rules=rules)
        finally:
            os._exit(1)
    os.close(writing)
    chance = random.Random(seed)
    if chance.random() < 0.75:
        os.read(reading, len(OPEN))  # most are killed while they write, some while they open
    time.sleep(chance.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    count = 0
    while data := os.read(reading, 1 << 16):
        count += data.count(b".")
    os.close(reading)
    return count


def check(folder, durability, before, acknowledged, *, rules=False):
    """The store has whole transactions, in order, none of them lost; how many."""
    with gt.LiveGraph.open(folder) as graph:
        count = written(graph)
        found = {tuple(map(str, quad[:3])) for quad in graph.quads()}
        wanted = expected(count, rules=False)
        if rules:  # an event comes after its transaction
            whole = expected(count, rules=True)
            event = (f"<ex:{count - 1}>", "<ex:was>", "<ex:seen>")
            wanted = whole if event in found else whole - {event}
        assert found == wanted, (sorted(found - wanted)[:5], sorted(wanted - found)[:5])
        if durability == "transaction":
            assert count >= before + acknowledged, (count, before, acknowledged)
        queries = {query.name: query for query in graph.queries}
        if "even" in queries:
            answer = queries["even"].table(terms=True).to_pylist()
            pairs = {(x, y) for x, p, y in wanted if p == "<ex:next>" and int(y[4:-1]) % 2 == 0}
            assert {(row["x"], row["y"]) for row in answer} == pairs
    return count


def kill_often(folder, durability, times, seed, **options):
    """Kill processes again and again on one store; how many transactions there are at the end."""
    count = 0
    for turn in range(times):
        acknowledged = kill_once(folder, durability, seed + turn, **options)
        rules = options.get("rules", False)
        count = check(folder, durability, count, acknowledged, rules=rules)
    return count
