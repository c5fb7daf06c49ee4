"""Programs on partitions without Spark, and the same programs in one process."""

from __future__ import annotations

import json
from collections import Counter, deque

from graphtide import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.spark.driver.actions import ActionRunner, read_firings
from graphtide.spark.driver.feedback import FeedbackLog
from graphtide.spark.files import Location
from graphtide.spark.partition.program import event_span
from graphtide.spark.state.messages import AFTER_ALL, MessageKind, of_kind
from oracles.partitions import PartitionRun

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
iri = "<http://e/{}>".format
PREFIX = "PREFIX : <http://e/>\n"


class ProgramRun:
    """A program on partitions; `firings`, `events` and `deltas` are its output so far."""

    def __init__(self, program, partitions, *, workers=1, place=None, clock=None, layout=None):
        parsed = Program.parse(program)
        self.run = PartitionRun.of(
            parsed, partitions, workers=workers, place=place, clock=clock, layout=layout
        )
        self.spec = self.run.job.program
        self.spec.check()
        self.firings, self.events, self.deltas = [], [], []

    @property
    def rejected(self):
        return self.run.rejected

    def batch(self, tasks, now=None):
        """One micro-batch through all stages, at a processing time."""
        self.deltas += self.run.batch(tasks, now)
        messages = self.run.messages
        for name, type_ in self.spec.complex.items():
            for row in of_kind(messages, MessageKind.EVENT, self.spec.types[type_]).to_pylist():
                self.events.append((name, row["time"], tuple(row["values"])))
        for row in of_kind(messages, MessageKind.FIRING).to_pylist():
            spans = [event_span(each) for each in row["events"]]
            ends = tuple(each.end for each in spans)
            starts = tuple(each.start for each in spans)
            tx = None if row["tx"] == AFTER_ALL else row["tx"]
            name = self.spec.rules[row["id"]].name
            self.firings.append((name, row["time"], tx, tuple(row["values"]), ends, starts))

    def attempt(self, tasks):
        """A micro-batch that fails at its very end: caches have changed, the logs have not."""
        self.run.attempt(tasks)

    def lose(self, worker):
        """A worker dies; another takes its place with an empty cache."""
        self.run.lose(worker)


def on_partitions(program, rows, partitions, rng, clock=None, layout=None):
    """What comes out of partitions, with any cut of the rows, failed attempts and lost workers."""

    def place(_):
        return rng.randrange(2)

    running = ProgramRun(program, partitions, workers=2, place=place, clock=clock, layout=layout)
    at = 0
    while at < len(rows):
        tasks = []
        for _ in range(rng.randint(1, 2)):
            size = rng.choice((1, 2, 5, 9))
            tasks.append(rows[at : at + size])
            at += size
        if rng.random() < 0.2:
            running.attempt(tasks)
        if rng.random() < 0.1:
            running.lose(rng.randrange(2))
        running.batch(tasks)
    return running


def with_actions(program, batches, partitions, folder, functions=None, *, quiet, max_rounds=1000):
    """Micro-batches with the feedback of the one before; `quiet`: until there is no more of it."""
    running = ProgramRun(program, partitions)
    log = FeedbackLog(Location.of(folder), max_rounds)
    actions = ActionRunner(running.spec, functions or {}, log)
    fired, back = [], []
    waiting = deque(batches)
    number = 0
    while waiting or back:
        own = [] if quiet and back else waiting.popleft() if waiting else []
        running.batch([own, back])
        found = read_firings(running.run.messages, running.spec)
        actions.call(found)
        actions.feed_back(number, running.run.time, found)
        path = folder / f"batch-{number:08}.json"
        lines = path.read_text().splitlines() if path.exists() else []
        back = [tuple(json.loads(line).get(name) for name in ROW) for line in lines]
        fired += found
        number += 1
    return running, fired


ROW = ("time", "tx", "diff", "s", "p", "o", "g", "stream")


def in_process(program, rows, end):
    """The program in one process, transaction by transaction."""
    graph = LiveGraph()
    running = graph.run(Program.parse(program), functions={"f": lambda *_: None})
    for (time, _), part in transactions(rows):
        changes = [row for row in part if row[7] is None]
        if changes:
            with graph.transaction(time=time) as tx:
                for _, _, diff, s, p, o, *_ in changes:
                    (tx.insert if diff > 0 else tx.delete)(s, p, o)
        for stream in sorted({row[7] for row in part if row[7] is not None}):
            running.assert_event([row[3:6] for row in part if row[7] == stream], time=time)
    if end > graph.clock:
        running.advance(end)
    return running


def transactions(rows):
    found = {}
    for row in rows:
        found.setdefault((row[0], row[1]), []).append(row)
    return sorted(found.items())


def fired(running):
    """What a program in one process has fired, however it was ordered."""
    found = Counter()
    for firing in running.firings():
        values = tuple(str(firing.values[name]) for name in sorted(firing.values))
        ends = tuple(end for _, end in firing.events.values())
        found[firing.rule, firing.time, values, ends] += 1
    return found


def fired_on_partitions(running):
    found = Counter()
    for rule, time, _, values, ends, _ in running.firings:
        found[rule, time, values, ends] += 1
    return found


def event(time, tx, *triples, stream="s"):
    """The rows of a graph event."""
    return [(time, tx, 1, s, p, o, None, f"http://e/{stream}") for s, p, o in triples]


def change(time, tx, diff, s, p, o):
    """A change of the graph."""
    return (time, tx, diff, iri(s), iri(p), iri(o), None, None)


def watermark(time):
    """Nothing before a time comes any more."""
    return (time, 2**40, 0, None, None, None, None, None)
