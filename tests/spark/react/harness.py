"""Programs on cells without Spark, and the same programs in one process."""

from __future__ import annotations

import json
from collections import Counter, deque
from copy import deepcopy

import pyarrow as pa
from support.programs import run

from graphtide import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.spark.actors import Actors
from graphtide.spark.cache import Cache
from graphtide.spark.cell_state import take_batch
from graphtide.spark.chunk import from_chunk
from graphtide.spark.consolidate import consolidate
from graphtide.spark.feedback import FeedbackLog
from graphtide.spark.frontier import START, Frontier
from graphtide.spark.log import DictLog
from graphtide.spark.matched import by_cell
from graphtide.spark.pack import pack_task
from graphtide.spark.react import react_batch, stages_of
from graphtide.spark.react_send import send_matched
from graphtide.spark.reaction import FIRED, LAST, TYPES, reaction_of
from graphtide.spark.schemas import DELTAS, REJECTS
from graphtide.spark.task import Task
from graphtide.spark.windows import Clock
from graphtide.testing.cells import record_batches

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
iri = "<http://e/{}>".format
PREFIX = "PREFIX : <http://e/>\n"


class ReactRun:
    """All stages of a program, cell by cell; `firings` and `events` are what came out."""

    def __init__(self, program, cells, *, workers=1, place=lambda _: 0, clock=None):
        clock = clock or Clock()
        parsed = Program.parse(program)
        self.reaction = reaction_of(parsed, cells, clock.tick_ms)
        self.reaction.check()
        self.task = Task(tuple(parsed.texts.items()), cells, (), clock, self.reaction)
        self.stages = stages_of(self.reaction)
        names = ["match", "meet", *(stage.name for stage in self.stages)]
        self.logs = {name: [DictLog() for _ in range(cells)] for name in names}
        self.workers = [Cache() for _ in range(workers)]
        self.place = place
        self.firings, self.events, self.deltas, self.rejects = [], [], [], []
        self.last = DELTAS.empty_table()

    def batch(self, tasks):
        """One micro-batch through all stages."""
        cells = range(self.task.cells)
        packed = [
            line
            for number, rows in enumerate(tasks)
            for out in pack_task(record_batches(rows), self.task, number)
            for line in out.to_pylist()
        ]
        seen = max((Frontier(*(p[n] for n in Frontier._fields)) for p in packed), default=START)
        seen = seen.delayed(self.task.clock.lateness)
        self._set_aside(from_chunk(p["rejects"]) for p in packed if p["rejects"])
        meets = any(query.meets for query in self.task.cell_queries)
        sent = []
        for cell in cells:
            lines = [p for at, p in enumerate(packed) if at % self.task.cells == cell]
            chunks = [p["chunk"] for p in lines if p["chunk"]]
            outcome = take_batch(
                self.logs["match"][cell], self._cache(cell), self.task, "run", cell, chunks, seen
            )
            self._set_aside([outcome.late])
            if meets:
                sent += by_cell(outcome.deltas, self.task, cell)
            else:
                sent += send_matched(outcome.deltas, self.reaction, cell)
        if meets:
            met, sent = self._by_target(sent), []
            for cell in cells:
                log = self.logs["meet"][cell]
                deltas = consolidate(met[cell], self.task, log, self._cache(cell), "run", cell)
                sent += send_matched(deltas, self.reaction, cell)
        for stage in self.stages:
            inputs, sent = self._by_target(sent), []
            for cell in cells:
                log = self.logs[stage.name][cell]
                out = react_batch(log, self._cache(cell), stage, "run", cell, inputs[cell])
                sent += stage.sent(out, cell)
        self._take(pa.concat_tables([DELTAS.empty_table(), *(part for _, part in sent)]))

    def attempt(self, tasks):
        """A micro-batch that fails at its very end: workers remember it, the logs do not."""
        kept = deepcopy((self.logs, self.firings, self.events, self.deltas, self.rejects))
        self.batch(tasks)
        self.logs, self.firings, self.events, self.deltas, self.rejects = kept

    def forget(self, worker):
        """A worker dies; another takes its place and remembers nothing."""
        self.workers[worker] = Cache()

    def engines(self, stage):
        return [
            cached.engine
            for worker in self.workers
            for (_, name, _), cached in worker.engines.items()
            if name == stage
        ]

    def _cache(self, cell):
        return self.workers[self.place(cell)]

    def _by_target(self, sent):
        parts = {cell: [DELTAS.empty_table()] for cell in range(self.task.cells)}
        for target, part in sent:
            parts[target].append(part)
        return {cell: pa.concat_tables(tables) for cell, tables in parts.items()}

    def _take(self, rows):
        self.last = rows
        patterns = {TYPES + self.reaction.types[t]: n for n, t in self.reaction.complex.items()}
        for row in rows.to_pylist():
            number, time, tx, values = row["query"], row["time"], row["tx"], row["row"]
            if 0 <= number < len(self.task.queries):
                name = self.task.queries[number][0]
                self.deltas.append((name, time, tx, row["diff"], tuple(values)))
            elif number in patterns:
                self.events.append((patterns[number], time, tuple(values)))
            elif FIRED <= number < FIRED + len(self.reaction.rules):
                rule = self.reaction.rules[number - FIRED]
                width = len(values) - len(rule.positive)
                ends = tuple(int(name.split("/")[0]) for name in values[width:])
                stamp = None if tx == LAST else tx
                self.firings.append((rule.name, time, stamp, tuple(values[:width]), ends))

    def _set_aside(self, tables):
        for line in pa.concat_tables([REJECTS.empty_table(), *tables]).to_pylist():
            self.rejects.append((line["time"], line["tx"], line["text"], line["reason"]))


def on_cells(program, rows, cells, rng, clock=None):
    """What comes out of cells, with any cut of the rows, failed attempts and lost workers."""
    place = (lambda _: rng.randrange(2)) if rng else (lambda _: 0)
    running = ReactRun(program, cells, workers=2, place=place, clock=clock)
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
            running.forget(rng.randrange(2))
        running.batch(tasks)
    return running


def with_actions(program, batches, cells, folder, functions=None, *, quiet, most_rounds=1000):
    """Micro-batches with the feedback of the one before; `quiet`: until there is no more of it."""
    running = ReactRun(program, cells)
    log = FeedbackLog(folder, most_rounds)
    actors = Actors(running.reaction, functions or {}, log)
    fired, back = [], []
    waiting = deque(batches)
    number = 0
    while waiting or back:
        own = [] if quiet and back else waiting.popleft() if waiting else []
        running.batch([own, back])
        found, _, _ = actors.tables(running.last)
        actors.call(found)
        actors.feed_back(number, running.last, found)
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
    running = run(program, graph, functions={"f": lambda *_: None})
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


def fired_on_cells(running):
    found = Counter()
    for rule, time, _, values, ends in running.firings:
        found[rule, time, values, ends] += 1
    return found


def event(time, tx, *triples, stream="s"):
    """The rows of a graph event."""
    return [(time, tx, 1, s, p, o, None, f"http://e/{stream}") for s, p, o in triples]


def change(time, tx, diff, s, p, o):
    """A change of the graph."""
    return (time, tx, diff, iri(s), iri(p), iri(o), None, None)


def mark(time):
    """Nothing before a time comes any more."""
    return (time, 2**40, 0, None, None, None, None, None)
